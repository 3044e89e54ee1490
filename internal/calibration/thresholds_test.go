package calibration

import (
	"math"
	"testing"
)

func TestBestF1(t *testing.T) {
	for _, c := range []struct {
		rule      string
		decisions []Decision
	}{
		{"no decisions", nil},
		{"no label holds", []Decision{{0.5, false}, {0.9, false}}},
		{"a probability is NaN", []Decision{{float32(math.NaN()), true}, {0.9, true}}},
	} {
		if best, ok := BestF1(c.decisions); ok {
			t.Errorf("%s: threshold %v, want none", c.rule, best)
		}
	}
	lower, upper := math.Nextafter32(0.5, 0), float32(0.5)
	for range 2 {
		if best, ok := BestF1([]Decision{{lower, false}, {upper, true}}); !ok ||
			!(best > lower && best <= upper) {
			t.Errorf("between adjacent floats %v and %v: threshold %v, %v", lower, upper, best, ok)
		}
		lower, upper = math.Nextafter32(lower, 0), lower
	}
	if best, ok := BestF1([]Decision{{0.9, true}, {0.2, true}}); !ok || best != 0.1 {
		t.Errorf("where all labels hold: threshold %v, %v, want 0.1", best, ok)
	}
}

// Candidates of equal F1: the one nearest to ½, of these the higher one.
func TestThresholdsOfEqualF1(t *testing.T) {
	for _, c := range []struct {
		decisions []Decision
		want      float32
	}{
		// 2/3 above 0.75, and 4/5 above 0.125
		{[]Decision{{0.875, true}, {0.75, false}, {0.25, true}, {0.125, false}, {0, false}}, 0.1875},
		// 2/3 at 0.875 and at 0.125
		{[]Decision{{1, true}, {0.75, false}, {0.5, false}, {0.25, true}, {0, false}}, 0.875},
		// 2/3 at 0.96875 and at 0.4375
		{[]Decision{{1, true}, {0.9375, false}, {0.75, false}, {0.5, true}, {0.375, false}}, 0.4375},
	} {
		best, ok := BestF1(c.decisions)
		if !ok || best != c.want {
			t.Errorf("%v: threshold %v, want %v", c.decisions, best, c.want)
		}
	}
}

func TestAtPrecision(t *testing.T) {
	decisions := []Decision{{0.2, false}, {0.9, true}, {0.6, true}, {0.8, false}, {0.6, true}, {0.1, false}}
	for _, c := range []struct {
		precision float64
		threshold float32
		ok        bool
	}{
		{1, 0.9, true},    // 1 of 1
		{0.75, 0.6, true}, // 3 of 4, though 1 of 2 above 0.6
		{0.6, 0.2, true},  // 3 of 5
		{0.5, 0, true},    // all
	} {
		if got, ok := AtPrecision(decisions, c.precision); got != c.threshold || ok != c.ok {
			t.Errorf("precision %v: threshold %v, %v; want %v, %v", c.precision, got, ok, c.threshold, c.ok)
		}
	}
	if got, ok := AtPrecision([]Decision{{0.9, false}, {0.5, true}, {0.4, false}}, 0.9); got != 0.5 || ok {
		t.Errorf("no threshold has the precision: %v, %v; want 0.5, that of the best one, false", got, ok)
	}
}

func TestAbstention(t *testing.T) {
	var decisions []Decision
	for i := range 100 {
		decisions = append(decisions, Decision{float32(i+1) / 100, i%2 == 0})
	}
	for fraction, want := range map[float64]float32{0: 0, 0.1: 0.11, 0.29: 0.3, 0.5: 0.51, 0.999: 1} {
		least := Abstention(decisions, fraction)
		if least != want {
			t.Errorf("%v have no answer: least probability %v, want %v", fraction, least, want)
		}
		if got := 1 - Answered(decisions, least).Coverage; got > fraction+1e-9 || got < fraction-0.01 {
			t.Errorf("%v shall have no answer, but %v have none", fraction, got)
		}
	}
	if got := Abstention([]Decision{{0.5, true}, {0.5, true}, {0.5, false}}, 0.5); got != 0.5 {
		t.Errorf("of equal probabilities: least probability %v, want 0.5, at which all are answered", got)
	}
	if p := Answered(decisions, 2); p.Accuracy != nil || p.Coverage != 0 {
		t.Errorf("where nothing is answered: %+v, want no accuracy", p)
	}
}
