package cli

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
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
