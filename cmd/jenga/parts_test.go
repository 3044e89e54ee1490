package main

import (
	"cmp"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/docs"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

var update = flag.Bool("update", false, "rewrite docs/parts.md")

// kind is a registry, and the folder of its parts.
type kind struct {
	title, folder string
	registry      interface {
		Kind() string
		Names() []string
		Fields(name string) []plugin.Field
	}
}

var kinds = []kind{
	{"Encoders", "encoders", encoders.Registry()},
	{"Fusion", "fusion", fusion.Registry()},
	{"Heads", "heads", heads.Registry()},
	{"Tasks", "tasks", tasks.Registry()},
	{"Samplers: which task's batch trains next", "multitask/samplers", samplers.Registry()},
	{"Weightings: many losses into one", "multitask/weightings", weightings.Registry()},
	{"Optimizers: gradients into new weights", "multitask/updates", updates.Optimizers()},
	{"Schedules: the learning rate after the warmup", "multitask/updates", updates.Schedules()},
}

// preface begins the page, with ' for a backtick.
const preface = `# The parts

What each 'type:' of an experiment file is, with its options. 'jenga parts' prints the same of the parts that a binary
has. A default in parentheses depends on other values; an option without a default is not set. An option 'a.b' is the
key b of the mapping a.

[formulas.md](formulas.md) has what parts share: windows, pools, what losses are means over, how logits become
predictions, evaluations. [checkpoints.md](checkpoints.md#tensors) lists the tensors of each part,
[metrics.md](metrics.md) describes the metrics of an evaluation as a whole, [experiment.md](experiment.md) what the
sections are for, [jenga-nlp.md](jenga-nlp.md) the keys of files of Jenga-NLP.

This page is written by 'go test ./cmd/jenga -run PartsPage -update' from the comments and options of the parts.
`

// TestPartsPage compares docs/parts.md with the registries and the parts' comments.
func TestPartsPage(t *testing.T) {
	var page strings.Builder
	page.WriteString(strings.ReplaceAll(preface, "'", "`"))
	for _, k := range kinds {
		fmt.Fprintf(&page, "\n## %s\n", k.title)
		docs, _ := commentsOf(t, filepath.Join("..", "..", k.folder))
		for _, name := range k.registry.Names() {
			comment := docs[name]
			if comment == "" {
				t.Errorf("%s %s has no comment", k.folder, name)
			}
			fmt.Fprintf(&page, "\n### %s\n\n%s", name, markdown(comment))
			writeFields(&page, k.registry.Fields(name), nil)
		}
	}

	page.WriteString("\n## Sections beside the parts\n\n`jenga parts section` prints them.\n")
	_, types := commentsOf(t, filepath.Join("..", "..", "experiments", "config"))
	comments := fieldComments(t, "experiments/config", "experiments/report", "multitask", "corpus")
	for _, name := range (config.Sections{}).Names() {
		comment := cmp.Or(types[name+"options"], types[name])
		fmt.Fprintf(&page, "\n### %s\n\n%s", name, markdown(comment))
		writeFields(&page, config.Sections{}.Fields(name), comments)
	}

	path := filepath.Join("..", "..", "docs", "parts.md")
	if *update && !t.Failed() {
		if err := os.WriteFile(path, []byte(page.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page.String() {
		t.Error("docs/parts.md differs from the parts' comments and options; " +
			"go test ./cmd/jenga -run PartsPage -update rewrites it")
	}
}

// unit matches what the description of a number says that it counts or multiplies.
var unit = regexp.MustCompile(`\b(tokens|characters|words|examples|MiB|updates|evaluations|batches|passes|number of|` +
	`fraction|rate|factor|norm|random seed)\b`)

// TestEveryPartIsDescribed requires of each part that `jenga parts` says what it is, and which values an option takes;
// of a number in a section also its unit.
func TestEveryPartIsDescribed(t *testing.T) {
	check := func(kind, name string, fields []plugin.Field) {
		if docs.Part(kind, name) == "" {
			t.Errorf("docs/parts.md does not say what %s %s is", kind, name)
		}
		for _, f := range fields {
			switch f.Type {
			case "a value", "text", "a list", "a mapping":
				t.Errorf("%s %s: option %s takes %s; describe its values in a tag takes", kind, name, f.Key, f.Type)
			}
			text := cmp.Or(f.Doc, docs.Option(kind, name, f.Key))
			if text == "" {
				t.Errorf("%s %s: option %s has neither a tag doc nor, in a section, a comment", kind, name, f.Key)
			}
			if kind == "section" && strings.Contains(f.Type, " number ") && !unit.MatchString(text) {
				t.Errorf("%s: the description of the number %s has no unit: %q", name, f.Key, text)
			}
		}
	}
	for _, k := range kinds {
		for _, name := range k.registry.Names() {
			check(k.registry.Kind(), name, k.registry.Fields(name))
		}
	}
	for _, name := range (config.Sections{}).Names() {
		check("section", name, config.Sections{}.Fields(name))
	}
	if text := docs.Part("head", "max_pool"); text != "" {
		t.Errorf("a part that does not ship is described as %q", text)
	}
}

// writeFields writes the table of options; comments are those of fields without a tag doc, by their source.
func writeFields(page *strings.Builder, fields []plugin.Field, comments map[string]string) {
	if len(fields) == 0 {
		return
	}
	page.WriteString("\n| option | default | takes | description |\n|---|---|---|---|\n")
	for _, f := range fields {
		cell := strings.NewReplacer("|", `\|`, "\n", " ")
		byDefault := f.Default
		if byDefault != "" && !strings.HasPrefix(byDefault, "(") {
			byDefault = "`" + byDefault + "`"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", f.Key, byDefault, cell.Replace(f.Type),
			cell.Replace(cmp.Or(f.Doc, comments[f.Source])))
	}
}

// commentsOf returns the comment of each part that the files of a folder register: the comment of the type or of the
// function New of its name, else of the first unexported struct or the New function of the file that registers it, else
// of the package. types are the comments of all types, by their names in lower case.
func commentsOf(t *testing.T, folder string) (comments, types map[string]string) {
	t.Helper()
	comments, types = map[string]string{}, map[string]string{}
	made := map[string]string{} // comments of functions New
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		comment := partComment(file)
		ast.Inspect(file, func(n ast.Node) bool {
			if name, ok := registers(n); ok {
				comments[name] = comment
			}
			if f, ok := n.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "New") {
				made[strings.ToLower(strings.TrimPrefix(f.Name.Name, "New"))] = afterName(f.Doc.Text())
			}
			if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.TYPE && d.Doc != nil {
				types[strings.ToLower(d.Specs[0].(*ast.TypeSpec).Name.Name)] = afterName(d.Doc.Text())
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range comments {
		key := strings.ReplaceAll(name, "_", "")
		comments[name] = cmp.Or(types[key], made[key], comments[name])
	}
	return comments, types
}

// fieldComments returns the comments of the fields of all structs of packages, as plugin.Field.Source names them.
func fieldComments(t *testing.T, packages ...string) map[string]string {
	t.Helper()
	comments := map[string]string{}
	for _, of := range packages {
		files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(of), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				declared, ok := n.(*ast.TypeSpec)
				if !ok {
					return true
				}
				if fields, ok := declared.Type.(*ast.StructType); ok {
					for _, f := range fields.Fields.List {
						for _, name := range f.Names {
							source := "github.com/jenga-nlp/jenga/" + of + "." + declared.Name.Name + "." + name.Name
							comments[source] = strings.Join(strings.Fields(f.Doc.Text()), " ")
						}
					}
				}
				return true
			})
		}
	}
	return comments
}

// registers returns the name in a call of Register("name", …).
func registers(n ast.Node) (name string, ok bool) {
	call, ok := n.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 {
		return "", false
	}
	function := ""
	switch f := call.Fun.(type) {
	case *ast.Ident:
		function = f.Name
	case *ast.SelectorExpr:
		function = f.Sel.Name
	}
	for _, arg := range call.Args[:2] {
		if text, isText := arg.(*ast.BasicLit); isText && text.Kind == token.STRING &&
			strings.HasPrefix(strings.ToLower(function), "register") {
			return strings.Trim(text.Value, `"`), true
		}
	}
	return "", false
}

// partComment returns the comment of the part that a file registers, unless a type has the part's name.
func partComment(file *ast.File) string {
	for _, d := range file.Decls {
		types, ok := d.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		spec := types.Specs[0].(*ast.TypeSpec)
		if _, isStruct := spec.Type.(*ast.StructType); isStruct && !spec.Name.IsExported() && types.Doc != nil {
			return afterName(types.Doc.Text())
		}
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "New") && f.Recv == nil && file.Doc == nil {
			return afterName(f.Doc.Text())
		}
	}
	return afterName(strings.TrimPrefix(file.Doc.Text(), "Package "))
}

// afterName returns a comment without the name that it begins with and a form of "to be" behind that.
func afterName(comment string) string {
	_, rest, _ := strings.Cut(comment, " ")
	if rest = strings.TrimPrefix(strings.TrimPrefix(rest, "is "), "are "); rest == "" {
		return ""
	}
	return strings.ToUpper(rest[:1]) + rest[1:]
}

// markdown writes a comment with its indented lines as code.
func markdown(comment string) string {
	var b strings.Builder
	code, blank := false, "" // blank lines that are in the code or behind it
	for line := range strings.Lines(comment) {
		if code && strings.TrimSpace(line) == "" {
			blank += line
			continue
		}
		indented := strings.HasPrefix(line, "\t")
		if code && !indented {
			b.WriteString("```\n")
		}
		b.WriteString(blank)
		if indented && !code {
			b.WriteString("```\n")
		}
		code, blank = indented, ""
		b.WriteString(strings.TrimPrefix(line, "\t"))
	}
	if code {
		b.WriteString("```\n")
	}
	return b.String()
}
