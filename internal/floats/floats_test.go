package floats

import (
	"math"
	"testing"
)

func TestNumbersThatAreNotFinite(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for v, want := range map[float64]bool{0: true, -math.MaxFloat64: true, inf: false, -inf: false, nan: false} {
		if got := IsFinite(v); got != want {
			t.Errorf("IsFinite(%v) = %v, want %v", v, got, want)
		}
	}
	for _, c := range []struct {
		x    []float32
		want int
	}{
		{nil, -1}, {[]float32{1, math.MaxFloat32}, -1}, {[]float32{1, float32(inf)}, 1},
		{[]float32{float32(nan), 1}, 0},
	} {
		if got := NotFinite(c.x); got != c.want {
			t.Errorf("NotFinite(%v) = %d, want %d", c.x, got, c.want)
		}
	}
}

func TestParseReadsDecimalNumbersAlone(t *testing.T) {
	for text, want := range map[string]float64{"1": 1, "-1.5e3": -1500, "+.5": 0.5, "007": 7, "2.": 2, "1E-2": 0.01} {
		if got, ok := Parse(text); !ok || got != want {
			t.Errorf("Parse(%q) = %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "1_0", "1_000.5", "0x10", "0x1p4", "0X1P-2", "0b1", "0o7", "1e", "e1", "-", ".",
		"1 ", "Inf", "-inf", "Infinity", "NaN", "nan", "1e999", "１２", "٣", "1,5", "1.2.3", "1-2", "--1"} {
		if got, ok := Parse(text); ok {
			t.Errorf("Parse(%q) = %v, want no number", text, got)
		}
	}
}

func TestTheLargestIsTheFirstOfEqualsAndNoNaN(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		x    []float32
		want int
	}{
		{nil, 0}, {[]float32{1, 2, 2}, 1}, {[]float32{nan, -1, nan}, 1}, {[]float32{-1, nan, 0}, 2},
		{[]float32{nan, nan}, 0},
	} {
		if got := Largest(c.x); got != c.want {
			t.Errorf("Largest(%v) = %d, want %d", c.x, got, c.want)
		}
	}
}
