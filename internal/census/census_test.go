package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"testing"
)

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

// The figures are of code that is there: each count finds something in this module.
func TestReadFindsTheModule(t *testing.T) {
	sources, err := read(token.NewFileSet(), "../..")
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
