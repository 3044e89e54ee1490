//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// encodeOn encodes without training.
func encodeOn(t *testing.T, r *resident, mode encoders.Mode) []float32 {
	t.Helper()
	states, err := r.Encode(nn.NewPass(1), someBatch(), mode)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(states[0])
}

func TestRowsThatAreReadOnADeviceHaveTheBitsOfAllRows(t *testing.T) {
	for _, layout := range residentLayouts {
		for _, odd := range []bool{false, true} {
			c := tinyResident(layout, odd, 0)
			_, _, r := residentPair(t, c, "none")
			for _, precision := range []nn.Precision{nn.Float32, nn.BFloat16} {
				t.Run(fmt.Sprintf("%s/odd=%v/%v", layout, odd, precision), func(t *testing.T) {
					mode := encoders.Mode{Layers: nn.LastLayer, Precision: precision}
					all := encodeOn(t, r, mode)
					for _, read := range [][]int{{}, {3}, {0, 7, len(all)/c.Width - 1}} {
						mode.Read = read
						some := encodeOn(t, r, mode)
						for row := range len(all) / c.Width {
							got := some[row*c.Width:][:c.Width]
							if !slices.Contains(read, row) {
								if !math.IsNaN(float64(got[0])) {
									t.Errorf("row %d, which is not read, has no NaN", row)
								}
							} else if !slices.Equal(got, all[row*c.Width:][:c.Width]) {
								t.Errorf("row %d of the rows %v differs from that of all", row, read)
							}
						}
					}
				})
			}
		}
	}
}

func TestADeviceHasNoFloat32FactorsBeforeItNeedsThem(t *testing.T) {
	mode := encoders.Mode{Layers: nn.LastLayer, Precision: nn.BFloat16}
	for _, freeze := range []string{"none", "1", "all"} {
		_, params, r := residentPair(t, tinyResident("modernbert", false, 0), freeze)
		want := encodeOn(t, r, mode)
		wide := r.values.wide
		if wide[0].memory != 0 || wide[2].memory != 0 {
			t.Errorf("freeze %s: float32 factors after inference in bfloat16", freeze)
		}
		frozen, err := r.frozen()
		if err != nil {
			t.Fatal(err)
		}
		var expected []*nn.Param
		for _, w := range params.All() {
			if !w.Learns() {
				expected = append(expected, w)
			}
		}
		if !slices.EqualFunc(frozen, expected, func(a, b *nn.Param) bool { return slices.Equal(a.Data, b.Data) }) {
			t.Errorf("freeze %s: the frozen values are others", freeze)
		}
		if freeze == "all" {
			continue
		}

		// a training that begins then is that of a device that has trained from the start
		_, _, other := residentPair(t, tinyResident("modernbert", false, 0), freeze)
		got := residentSteps(t, r, r.newStore(0.01, 0), 1, 3)
		if !slices.Equal(got, residentSteps(t, other, other.newStore(0.01, 0), 1, 3)) {
			t.Errorf("freeze %s: a training after inference differs", freeze)
		}
		lowered := encodeOn(t, r, mode)
		if slices.Equal(lowered, want) || !slices.Equal(lowered, encodeOn(t, other, mode)) {
			t.Errorf("freeze %s: inference in bfloat16 after training does not read what it has learned", freeze)
		}
	}
}
