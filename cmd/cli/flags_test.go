package cli

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jenga-nlp/jenga/docs"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	_ "github.com/jenga-nlp/jenga/internal/sample" // has the flag -update
	"github.com/jenga-nlp/jenga/plugin"
)

func TestErrorsOfLibrariesNameFlags(t *testing.T) {
	force, base := plugin.Argument("force"), plugin.Argument("base")
	for _, c := range []struct {
		err  error
		want string
	}{
		{errors.New("as it is"), "as it is"},
		{fmt.Errorf("runs/a holds a run: %w replaces it", force), "runs/a holds a run: --force replaces it"},
		{usageError{fmt.Errorf("%w: none; %w", base, errors.Join(errors.New("a"), fmt.Errorf("b: %w", force)))},
			"--base: none; a\nb: --force"},
		{withFlags(fmt.Errorf("%w: once", force)), "--force: once"},
	} {
		got := withFlags(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("withFlags(%v) = %v, want %s", c.err, got, c.want)
		}
	}
}

func TestWarningsOfLibrariesNameFlags(t *testing.T) {
	var log strings.Builder
	place := plugin.Place{File: "runs/a"}
	(&commands{log: &log}).warn([]plugin.Warning{
		plugin.Warn(place, "interrupted; %v runs/a finishes it", runfolder.ResumeArgument)})
	if want := "runs/a: warning: interrupted; jenga train --resume runs/a finishes it\n"; log.String() != want {
		t.Errorf("got %s, want %s", log.String(), want)
	}
}

// flagsTable returns the rows of the flags of a command.
func flagsTable(cmd *cobra.Command) string {
	var rows strings.Builder
	cell := strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;")
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" || f.Hidden {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		name := strings.TrimSpace("--" + f.Name + " " + cmp.Or(value, ""))
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		standard := ""
		if f.DefValue != "" && f.DefValue != "[]" && f.DefValue != "false" && f.DefValue != "0" {
			standard = "`" + cell.Replace(f.DefValue) + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", cell.Replace(name), standard, cell.Replace(usage))
	})
	if rows.Len() == 0 {
		return ""
	}
	return docs.FlagsTable + "|---|---|---|\n" + rows.String()
}

// TestCommandsPage compares the flags in docs/commands.md with those of the program.
func TestCommandsPage(t *testing.T) {
	page := docs.Commands()
	for _, cmd := range (&commands{}).root().Commands() {
		start, rest, found := strings.Cut(page, "\n## "+cmd.Name()+"\n")
		if !found {
			t.Errorf("docs/commands.md has no section %s", cmd.Name())
			continue
		}
		section, others, more := strings.Cut(rest, "\n## ")
		text, _, _ := strings.Cut(section, docs.FlagsTable)
		page = start + "\n## " + cmd.Name() + "\n" + strings.TrimRight(text, "\n") + "\n" + flagsTable(cmd)
		if more {
			page += "\n## " + others
		}
	}
	if page == docs.Commands() {
		return
	}
	if flag.Lookup("update").Value.String() != "true" {
		t.Error("docs/commands.md has other flags than the program: go test ./cmd/cli -run CommandsPage -update")
	} else if err := os.WriteFile("../../docs/commands.md", []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
}
