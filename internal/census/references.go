package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
)

// reference is a file of a package that uses a name which another one declares.
type reference struct{ from, to string }

// printReferences prints, for the ordered folders, how many references there are between the files of a package, and
// how many run upwards in the best order that was found.
func printReferences(files *token.FileSet, sources []source) {
	packages := map[string][]*ast.File{}
	for _, s := range sources {
		for _, folder := range ordered {
			if s.folder() == folder || strings.HasPrefix(s.folder(), folder+"/") {
				packages[s.folder()] = append(packages[s.folder()], s.file)
			}
		}
	}
	all, up := 0, 0
	for _, folder := range slices.Sorted(maps.Keys(packages)) {
		references := referencesOf(files, packages[folder])
		upwards := upwardsOf(references)
		all, up = all+len(references), up+len(upwards)
		fmt.Printf("%s: %d files, %d references between them, %d upwards\n",
			folder, len(packages[folder]), len(references), len(upwards))
		for _, r := range upwards {
			fmt.Printf("\t%s uses %s\n", r.from, r.to)
		}
	}
	fmt.Printf("%s: %d references between files of a package, %d upwards\n", strings.Join(ordered, ", "), all, up)
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
