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

const shortLines = 60

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
	printMethods(sources)
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
	lines, short := 0, 0
	packages := map[string]int{} // folder → lines
	largest := slices.MaxFunc(sources, func(a, b source) int { return a.lines - b.lines })
	for _, s := range sources {
		lines += s.lines
		packages[s.folder()] += s.lines
		if s.lines < shortLines {
			short++
		}
	}
	folders := slices.SortedFunc(maps.Keys(packages), func(a, b string) int { return packages[b] - packages[a] })
	fmt.Printf("%d lines in %d files, %d of them with fewer than %d lines; the longest is %s, %d\n",
		lines, len(sources), short, shortLines, largest.path, largest.lines)
	fmt.Printf("%d packages; the largest is %s, %d lines\n", len(packages), folders[0], packages[folders[0]])
}

// printMethods prints the types whose methods stand in the most files.
func printMethods(sources []source) {
	methods := map[string]int{}
	in := map[string]map[string]bool{} // type → files
	for _, s := range sources {
		for _, decl := range s.file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok || f.Recv == nil {
				continue
			}
			name := s.folder() + "." + receiver(f)
			methods[name]++
			if in[name] == nil {
				in[name] = map[string]bool{}
			}
			in[name][s.path] = true
		}
	}
	names := slices.SortedFunc(maps.Keys(in), func(a, b string) int {
		if d := len(in[b]) - len(in[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	fmt.Print("types whose methods stand in the most files:")
	for _, name := range names[:min(5, len(names))] {
		fmt.Printf(" %s %d in %d;", name, methods[name], len(in[name]))
	}
	fmt.Println()
}

func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}

// printInterfaces prints the exported interfaces that are asserted of values.
func printInterfaces(sources []source) {
	exported := map[string]bool{} // folder.Name
	for _, s := range sources {
		for _, decl := range s.file.Decls {
			g, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range g.Specs {
				t, ok := spec.(*ast.TypeSpec)
				if !ok || !t.Name.IsExported() {
					continue
				}
				if _, ok := t.Type.(*ast.InterfaceType); ok {
					exported[s.folder()+"."+t.Name.Name] = true
				}
			}
		}
	}
	asserted := map[string]bool{}
	for _, s := range sources {
		imports := importsOf(s.file)
		note := func(t ast.Expr) {
			name := ""
			switch x := t.(type) {
			case *ast.Ident:
				name = s.folder() + "." + x.Name
			case *ast.SelectorExpr:
				if p, ok := x.X.(*ast.Ident); ok {
					name = imports[p.Name] + "." + x.Sel.Name
				}
			}
			if exported[name] {
				asserted[name] = true
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch x := n.(type) {
			case *ast.TypeAssertExpr:
				note(x.Type)
			case *ast.TypeSwitchStmt:
				for _, c := range x.Body.List {
					for _, t := range c.(*ast.CaseClause).List {
						note(t)
					}
				}
			}
			return true
		})
	}
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
