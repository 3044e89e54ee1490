package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/predict"
)

const (
	mostLinks  = 12 // of an attention map that are listed
	heatTokens = 24 // of the longest text whose map is written as a table
)

// attention writes the attention map of the flags, or says what there is.
func (t *explanationText) attention(out *strings.Builder, r predict.Reading, w predict.Window, where string) {
	if t.layer < 0 && t.maps.Layers > 0 {
		fmt.Fprintf(out, "\nattention of %s%s: %d layers of %d heads; --layer and --head write one\n",
			strings.Join(r.Tasks, ", "), where, t.maps.Layers, t.maps.Heads)
	}
	if len(w.Attention) == 0 {
		return
	}
	of := fmt.Sprintf("layer %d, head %d", t.layer, t.head)
	if t.head < 0 {
		of = fmt.Sprintf("layer %d, the mean of its heads", t.layer)
	}
	fmt.Fprintf(out, "\nattention of %s%s, %s\n", strings.Join(r.Tasks, ", "), where, of)
	weights := attentionMap(w.Attention[t.layer], t.head)
	names, _ := namesOf(w.Tokens)
	if len(names) <= heatTokens {
		writeHeat(out, names, weights)
	}
	writeLinks(out, w.Tokens, weights)
}

// attentionMap returns the map [T T] of a head, below 0 the mean of all.
func attentionMap(heads [][][]float32, head int) [][]float32 {
	if head >= 0 {
		return heads[head]
	}
	mean := make([][]float32, len(heads[0]))
	for i := range mean {
		mean[i] = make([]float32, len(heads[0]))
		for _, one := range heads {
			for j, v := range one[i] {
				mean[i][j] += v / float32(len(heads))
			}
		}
	}
	return mean
}

// writeHeat writes a map as a table in per cent: a row for each token that reads, a column for each that is read, by
// its number.
func writeHeat(out *strings.Builder, names []string, weights [][]float32) {
	out.WriteString("  in %: a token reads those in its row\n")
	for i, name := range names {
		fmt.Fprintf(out, "  %2d %s", i+1, name)
		for _, v := range weights[i] {
			fmt.Fprintf(out, " %3.0f", 100*v)
		}
		out.WriteByte('\n')
	}
}

// writeLinks lists the largest weights.
func writeLinks(out *strings.Builder, tokens []predict.Token, weights [][]float32) {
	type link struct {
		from, to int
		weight   float32
	}
	var all []link
	for i, row := range weights {
		for j, v := range row {
			all = append(all, link{i, j, v})
		}
	}
	slices.SortStableFunc(all, func(a, b link) int { return cmp.Compare(b.weight, a.weight) })
	out.WriteString("  strongest:\n")
	for _, l := range all[:min(mostLinks, len(all))] {
		fmt.Fprintf(out, "  %.3f  %s (%d) reads %s (%d)\n", l.weight, tokens[l.from].Token, l.from+1,
			tokens[l.to].Token, l.to+1)
	}
}
