// Package suggest finds the name that a misspelt word was meant to be, for errors.
package suggest

import "strings"

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
