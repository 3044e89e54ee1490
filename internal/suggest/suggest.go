// Package suggest finds the name that a misspelt word was meant to be, for errors.
package suggest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Nearest returns the name that is most similar to word, with at most one edit per three characters. ok is false if
// there is none.
func Nearest(word string, names []string) (similar string, ok bool) {
	best := 1 + max(1, len([]rune(word))/3)
	for _, name := range names {
		if len(name)+len(word) > 200 {
			continue // not a typing error; bounds the cost
		}
		if d := edits(strings.ToLower(word), strings.ToLower(name)); d < best {
			similar, best, ok = name, d, true
		}
	}
	return similar, ok
}

// File returns the end of an error about a path that does not exist, which a user has written as written: what fulfils
// a condition and has almost its name, in its folder or in one that has almost that one's name, in the user's words; ""
// if there is none. Hidden files are left out.
func File(path, written string, condition func(path string) bool) string {
	near, ok := nearest(path, condition)
	if !ok {
		return ""
	}
	if filepath.Dir(near) == filepath.Dir(path) {
		near = filepath.Join(filepath.Dir(written), filepath.Base(near))
	} else if folder, own := strings.CutSuffix(filepath.Clean(path), filepath.Clean(written)); !own {
		return "" // of a folder that the user has not written
	} else if near, own = strings.CutPrefix(near, folder); !own {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", near)
}

// nearest returns the path that File suggests.
func nearest(path string, condition func(path string) bool) (near string, ok bool) {
	folder, name := filepath.Split(filepath.Clean(path))
	folder = filepath.Clean(folder)
	if _, err := os.Stat(folder); errors.Is(err, fs.ErrNotExist) {
		isFolder := func(path string) bool { info, err := os.Stat(path); return err == nil && info.IsDir() }
		if folder, ok = nearest(folder, isFolder); !ok {
			return "", false
		}
		if same := filepath.Join(folder, name); condition(same) {
			return same, true
		}
	}
	entries, _ := os.ReadDir(folder) // without it there are none
	var names []string
	for _, e := range entries {
		alike := func() bool { _, ok := Nearest(name, []string{e.Name()}); return ok }
		if !strings.HasPrefix(e.Name(), ".") && alike() && condition(filepath.Join(folder, e.Name())) {
			names = append(names, e.Name())
		}
	}
	base, ok := Nearest(name, names)
	return filepath.Join(folder, base), ok
}

// AnyFile is a condition of File.
func AnyFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// edits counts the insertions, deletions, changes and swaps of neighbours between a and b (optimal string alignment).
func edits(a, b string) int {
	from, to := []rune(a), []rune(b)
	before, last := make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range last {
		last[j] = j
	}
	for i, x := range from {
		row := make([]int, len(to)+1)
		row[0] = i + 1
		for j, y := range to {
			change := 1
			if x == y {
				change = 0
			}
			row[j+1] = min(last[j]+change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && x == to[j-1] && from[i-1] == y {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last = last, row
	}
	return last[len(to)]
}
