package transformer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func TestStatesThatAreReadAreTheSameBits(t *testing.T) {
	for _, layout := range testedLayouts {
		for _, layers := range []int{1, 3} {
			c := tiny(layout)
			c.Layers = layers
			e, _ := network(t, c, "none")
			for _, precision := range []nn.Precision{nn.Float32, nn.BFloat16, nn.Int8} {
				t.Run(fmt.Sprintf("%s/%d/%v", layout, layers, precision), func(t *testing.T) {
					checkRows(t, e, precision)
				})
			}
		}
	}
}

// checkRows checks the states of some rows, in one pass after the other.
func checkRows(t *testing.T, e *encoder, precision nn.Precision) {
	p, tokens := nn.NewPass(0), someBatch()
	states := func(read []int, layers nn.LayerSet) []float32 {
		p.Reset(0)
		p.Precision, p.Read = precision, read
		return slices.Concat(encode(t, e, p, tokens, layers)...)
	}
	want, wantAll := states(nil, nn.LastLayer), states(nil, nn.AllLayers)
	most := make([]int, len(tokens.IDs)-1)
	for i := range most {
		most[i] = i + 1
	}
	for _, read := range [][]int{{0}, {0, 7, 8}, {3, 16}, most} {
		if err := rowsOf(states(read, nn.LastLayer), want, read, e.config.Width); err != nil {
			t.Errorf("rows %v: %v", read, err)
		}
		if !slices.Equal(states(read, nn.AllLayers), wantAll) {
			t.Errorf("rows %v: other states of all layers", read)
		}
	}
}

// rowsOf returns an error unless got has the rows of want that are read, and NaN in all others.
func rowsOf(got, want []float32, read []int, width int) error {
	for row := range len(want) / width {
		got, want := got[row*width:(row+1)*width], want[row*width:(row+1)*width]
		if slices.Contains(read, row) {
			if !slices.Equal(got, want) {
				return fmt.Errorf("row %d is %v, want %v", row, got, want)
			}
			continue
		}
		for _, x := range got {
			if !math.IsNaN(float64(x)) {
				return fmt.Errorf("row %d, which is not read, is %v", row, got)
			}
		}
	}
	return nil
}

func TestAttentionMapsAreThoseOfAllTokensWhateverIsRead(t *testing.T) {
	for _, layout := range testedLayouts {
		e, _ := network(t, tiny(layout), "none")
		maps := func(read []int) (all []float32) {
			p := nn.NewPass(0)
			p.Read = read
			for layer := range e.blocks {
				p.Observe(nn.AttentionMaps(layer), func(_ int, _ []int, values []float32) {
					all = append(all, values...)
				})
			}
			encode(t, e, p, someBatch(), nn.LastLayer)
			return all
		}
		if want := maps(nil); len(want) == 0 || !slices.Equal(maps([]int{0}), want) {
			t.Errorf("%s: other attention maps where one row is read", layout)
		}
	}
}

func TestTrainingComputesAllStates(t *testing.T) {
	for _, layout := range testedLayouts {
		for _, freeze := range []string{"none", "all"} {
			e, _ := network(t, tiny(layout), freeze)
			want := somePass(t, e, someBatch(), func(*nn.Pass) {})
			got := somePass(t, e, someBatch(), func(p *nn.Pass) { p.Read = []int{0} })
			if !slices.Equal(got, want) {
				t.Errorf("%s, freeze %s: other states or gradients where one row is read", layout, freeze)
			}
		}
	}
}
