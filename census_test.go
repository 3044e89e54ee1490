package jenga

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What the structure of the code may have: interfaces that the code asserts that a value has, and references between
// the files of a package, in ordered, that run upwards in every order of the files.
const (
	maxOptional = 7
	maxUpwards  = 9
)

// ordered are the folders whose packages have their references between files counted.
var ordered = []string{"multitask", "nn"}

type source struct {
	path  string // from the root, with slashes
	lines int
	file  *ast.File
}

func (s source) folder() string { return path.Dir(s.path) }

// TestCensus logs the figures by which the size and the structure of jenga's code are kept small. It counts the Go code
// of this module without tests, generated code and testdata:
//
//	go test -run TestCensus -v .
func TestCensus(t *testing.T) {
	files := token.NewFileSet()
	sources, err := read(files, ".")
	if err != nil {
		t.Fatal(err)
	}
	t.Log(sizesOf(sources))
	exported, optional := interfacesOf(sources)
	t.Logf("%d exported interfaces, of which %d are optional: %s", exported, len(optional), strings.Join(optional, " "))
	if len(optional) > maxOptional {
		t.Errorf("%d optional interfaces, allowed %d", len(optional), maxOptional)
	}
	all, up := 0, 0
	for _, folder := range slices.Sorted(maps.Keys(filesOf(sources))) {
		references := referencesOf(files, filesOf(sources)[folder])
		upwards := upwardsOf(references)
		all, up = all+len(references), up+len(upwards)
		t.Logf("%s: %d references between files, upwards %v", folder, len(references), upwards)
	}
	t.Logf("%s: %d references between files of a package, %d upwards", strings.Join(ordered, ", "), all, up)
	if up > maxUpwards {
		t.Errorf("%d references upwards, allowed %d", up, maxUpwards)
	}
}

// read returns the code of a module, in the order of its paths.
func read(files *token.FileSet, root string) ([]source, error) {
	var all []source
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			_, err := os.Stat(filepath.Join(name, "go.mod"))
			nested := err == nil && name != root
			if nested || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && name != root {
				return filepath.SkipDir
			}
			return nil
		}
		if filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(files, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(file) {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		all = append(all, source{filepath.ToSlash(rel), strings.Count(string(text), "\n"), file})
		return nil
	})
	return all, err
}

func sizesOf(sources []source) string {
	lines := 0
	packages := map[string]int{} // folder → lines
	for _, s := range sources {
		lines += s.lines
		packages[s.folder()] += s.lines
	}
	bySize := func(a, b string) int { return packages[a] - packages[b] }
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(packages)), bySize)
	return fmt.Sprintf("%d lines in %d files; %d packages, the largest is %s with %d lines", lines, len(sources),
		len(packages), largest, packages[largest])
}

// interfacesOf returns the number of exported interfaces, and those of them that are asserted of values.
func interfacesOf(sources []source) (number int, optional []string) {
	exported, asserted := map[string]bool{}, map[string]bool{} // folder.Name
	for _, s := range sources {
		imports := foldersOf(s.file)
		note := func(t ast.Expr) {
			switch x := t.(type) {
			case *ast.Ident:
				asserted[s.folder()+"."+x.Name] = true
			case *ast.SelectorExpr:
				if p, ok := x.X.(*ast.Ident); ok {
					asserted[imports[p.Name]+"."+x.Sel.Name] = true
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.TypeSpec:
				if _, ok := x.Type.(*ast.InterfaceType); ok && x.Name.IsExported() {
					exported[s.folder()+"."+x.Name.Name] = true
				}
			case *ast.TypeAssertExpr:
				note(x.Type)
			case *ast.CaseClause: // which names interfaces in a switch of types alone
				for _, t := range x.List {
					note(t)
				}
			}
			return true
		})
	}
	maps.DeleteFunc(asserted, func(name string, _ bool) bool { return !exported[name] })
	return len(exported), slices.Sorted(maps.Keys(asserted))
}

// foldersOf returns the folders of this module that a file imports, by the names that it gives them.
func foldersOf(file *ast.File) map[string]string {
	all := map[string]string{}
	for _, spec := range file.Imports {
		folder, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module)
		if !ok {
			continue
		}
		name := path.Base(folder)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		all[name] = folder
	}
	return all
}

// The figures are of code that is there: each count finds something in this module.
func TestReadFindsTheModule(t *testing.T) {
	sources, err := read(token.NewFileSet(), ".")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, s := range sources {
		found[s.folder()] = true
	}
	if !found["nn"] || !found["multitask"] || found["internal/kernel/gen"] {
		t.Errorf("folders %v, want nn and multitask, and none of a nested module", found)
	}
}
