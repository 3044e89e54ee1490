package outputs

import "github.com/jenga-nlp/jenga/nn"

// Examples returns the number of examples in a batch.
func Examples(rows nn.Rows) int {
	n := 0
	for _, e := range rows.Example {
		n = max(n, e+1)
	}
	return n
}

// WordRows returns, for each word of each example, its index in rows.Words, -1 for none. For a word in several windows
// it is the one with most tokens on its shorter side.
func WordRows(rows nn.Rows) [][]int {
	places := make([][]int, Examples(rows))
	for b, e := range rows.Example {
		for len(places[e]) < rows.WordCount[b] {
			places[e] = append(places[e], -1)
		}
	}
	sides := make([]int, len(rows.Words)) // tokens on the shorter side
	b := 0
	for k, row := range rows.Words {
		for row >= rows.Starts[b+1] {
			b++
		}
		sides[k] = min(row-rows.Starts[b], rows.Starts[b+1]-1-row)
		word := &places[rows.Example[b]][rows.WordIndex[k]]
		if *word < 0 || sides[k] > sides[*word] {
			*word = k
		}
	}
	return places
}

// textsOf lists the texts, or windows, of an example.
func textsOf(rows nn.Rows, example int) []int {
	var texts []int
	for b, e := range rows.Example {
		if e == example {
			texts = append(texts, b)
		}
	}
	return texts
}

// textOf returns the text of a batch that has a row.
func textOf(rows nn.Rows, row int) int {
	b := 0
	for row >= rows.Starts[b+1] {
		b++
	}
	return b
}
