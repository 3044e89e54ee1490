package jenga

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// reference is a file of a package that uses a name which another one declares.
type reference struct{ from, to string }

// String gives the line "FROM uses TO".
func (r reference) String() string { return r.from + " uses " + r.to }

// filesOf returns the files of each package in the ordered folders.
func filesOf(sources []source) map[string][]*ast.File {
	packages := map[string][]*ast.File{}
	for _, s := range sources {
		for _, folder := range ordered {
			if s.folder() == folder || strings.HasPrefix(s.folder(), folder+"/") {
				packages[s.folder()] = append(packages[s.folder()], s.file)
			}
		}
	}
	return packages
}

// referencesOf returns the references between the files of a package: uses of functions, methods, types, fields,
// variables and constants. Imported packages stay empty, so that names that come from them are passed over.
func referencesOf(files *token.FileSet, parsed []*ast.File) []reference {
	config := types.Config{
		Error:                    func(error) {}, // of imported names
		Importer:                 nothing{},
		DisableUnusedImportCheck: true,
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	pkg, _ := config.Check("p", files, parsed, info)
	found := map[reference]bool{}
	for id, object := range info.Uses {
		if object.Pkg() != pkg || !object.Pos().IsValid() {
			continue
		}
		if _, ok := object.(*types.PkgName); ok {
			continue
		}
		from, to := files.Position(id.Pos()).Filename, files.Position(object.Pos()).Filename
		if from != to {
			found[reference{from, to}] = true
		}
	}
	return slices.SortedFunc(maps.Keys(found), func(a, b reference) int {
		return strings.Compare(a.from+" "+a.to, b.from+" "+b.to)
	})
}

// nothing imports packages without names.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	p := types.NewPackage(path, path[strings.LastIndex(path, "/")+1:])
	p.MarkComplete()
	return p, nil
}

// upwardsOf returns the references that run upwards in an order of the files with few of them: the next file from the
// top is one that no other file uses, and where there is none, the one with the most uses beyond those of it (Eades,
// Lin and Smyth 1993, "A fast and effective heuristic for the feedback arc set problem").
func upwardsOf(references []reference) []reference {
	left := map[string]bool{}
	for _, r := range references {
		left[r.from], left[r.to] = true, true
	}
	var top, bottom []string
	for len(left) > 0 {
		uses, used := map[string]int{}, map[string]int{}
		for _, r := range references {
			if left[r.from] && left[r.to] {
				uses[r.from]++
				used[r.to]++
			}
		}
		names := slices.Sorted(maps.Keys(left))
		at := slices.IndexFunc(names, func(n string) bool { return uses[n] == 0 })
		if at >= 0 {
			bottom = append(bottom, names[at])
			delete(left, names[at])
			continue
		}
		next := slices.MaxFunc(names, func(a, b string) int {
			return uses[a] - used[a] - uses[b] + used[b]
		})
		if at := slices.IndexFunc(names, func(n string) bool { return used[n] == 0 }); at >= 0 {
			next = names[at]
		}
		top = append(top, next)
		delete(left, next)
	}
	slices.Reverse(bottom)
	place := map[string]int{}
	for i, name := range append(top, bottom...) {
		place[name] = i
	}
	return slices.DeleteFunc(slices.Clone(references), func(r reference) bool { return place[r.from] < place[r.to] })
}

func TestReferencesOf(t *testing.T) {
	files := token.NewFileSet()
	var parsed []*ast.File
	for name, text := range map[string]string{
		"a.go": "package p\nimport \"x/y\"\nfunc a() { b(); var v t; v.m(); y.Z() }",
		"b.go": "package p\nfunc b() { c() }\ntype t struct{ f int }",
		"c.go": "package p\nfunc c() {}\nfunc (v t) m() int { return v.f }",
	} {
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		parsed = append(parsed, file)
	}
	got := referencesOf(files, parsed)
	want := []reference{{"a.go", "b.go"}, {"a.go", "c.go"}, {"b.go", "c.go"}, {"c.go", "b.go"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("references %v, want %v", got, want)
	}
	if up := upwardsOf(got); len(up) != 1 {
		t.Errorf("upwards %v, want one of b.go and c.go", up)
	}
}

func TestUpwardsOf(t *testing.T) {
	r := func(pairs ...string) (all []reference) {
		for _, p := range pairs {
			all = append(all, reference{p[:1], p[1:]})
		}
		return all
	}
	for _, c := range []struct {
		name string
		all  []reference
		want int
	}{
		{"none where there is an order", r("ab", "bc", "ac"), 0},
		{"one of a circle", r("ab", "bc", "ca"), 1},
		{"the one against many", r("ab", "ac", "ad", "ba"), 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := upwardsOf(c.all); len(got) != c.want {
				t.Errorf("upwards %v, want %d", got, c.want)
			}
		})
	}
}
