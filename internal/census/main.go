// Census prints the figures by which the size and the structure of jenga's code are kept small:
//
//	go run ./internal/census
//
// It counts the Go code of this module in the working tree without tests, generated code and testdata. Interfaces are
// optional if the code asserts that a value has them; a reference between two files of a package runs upwards if no
// order of the files puts it downwards (references.go).
package main

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
)

// ordered are the folders whose packages have their references between files counted.
var ordered = []string{"multitask", "nn"}

type source struct {
	path  string // from the root, with slashes
	lines int
	file  *ast.File
}

func (s source) folder() string { return path.Dir(s.path) }

func main() {
	files := token.NewFileSet()
	sources, err := read(files, ".")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	printSizes(sources)
	printInterfaces(sources)
	printReferences(files, sources)
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

func printSizes(sources []source) {
	lines := 0
	packages := map[string]int{} // folder → lines
	for _, s := range sources {
		lines += s.lines
		packages[s.folder()] += s.lines
	}
	bySize := func(a, b string) int { return packages[a] - packages[b] }
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(packages)), bySize)
	fmt.Printf("%d lines in %d files\n%d packages; the largest is %s, %d lines\n", lines, len(sources), len(packages),
		largest, packages[largest])
}

// printInterfaces prints the exported interfaces that are asserted of values.
func printInterfaces(sources []source) {
	exported, asserted := map[string]bool{}, map[string]bool{} // folder.Name
	for _, s := range sources {
		imports := importsOf(s.file)
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
	fmt.Printf("%d exported interfaces, of which %d are optional: %s\n",
		len(exported), len(asserted), strings.Join(slices.Sorted(maps.Keys(asserted)), " "))
}

// importsOf returns the folders of this module that a file imports, by the names that it gives them.
func importsOf(file *ast.File) map[string]string {
	const module = "github.com/jenga-nlp/jenga/"
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
