package othertexts

import (
	"testing"

	"github.com/jenga-nlp/jenga/experiments/report"
)

// The rates of WNUT 17's entities are those of docs/multi-task.md; others are on either side of a bound.
func TestWhichRatesAreHigh(t *testing.T) {
	teacher := func(rate float64) *float64 { return &rate }
	for name, c := range map[string]struct {
		own   report.Rate
		other report.OtherRate
		want  bool
	}{
		"entities beside parts of speech, and alone": {report.Rate{},
			report.OtherRate{Texts: 1000, Rate: 0.224, Reference: teacher(0.055)}, true},
		"entities on commands, and alone": {report.Rate{},
			report.OtherRate{Texts: 700, Rate: 0.308, Reference: teacher(0.119)}, true},
		"entities alone on commands, and as often as on EWT": {report.Rate{Texts: 1000, Rate: 0.055},
			report.OtherRate{Texts: 700, Rate: 0.119}, false},
		"four times the rate, and 17 points more": {report.Rate{Texts: 1000, Rate: 0.055},
			report.OtherRate{Texts: 1000, Rate: 0.224}, true},
		"slots in every other word, and in nearly all": {report.Rate{Texts: 700, Rate: 0.48},
			report.OtherRate{Texts: 1000, Rate: 0.93}, false},
		"ten times the rate, of little": {report.Rate{Texts: 1000, Rate: 0.005},
			report.OtherRate{Texts: 1000, Rate: 0.05}, false},
		"nothing on its own": {report.Rate{Texts: 1000}, report.OtherRate{Texts: 1000, Rate: 0.2}, true},
		"less than on its own": {report.Rate{Texts: 1000, Rate: 0.3},
			report.OtherRate{Texts: 1000, Rate: 0.1}, false},
		"few texts of others": {report.Rate{Texts: 1000, Rate: 0.05},
			report.OtherRate{Texts: few - 1, Rate: 0.5}, false},
		"few texts of its own": {report.Rate{Texts: few - 1, Rate: 0.05},
			report.OtherRate{Texts: 1000, Rate: 0.5}, false},
		"few texts of its own, and a reference": {report.Rate{Texts: few - 1, Rate: 0.05},
			report.OtherRate{Texts: 1000, Rate: 0.5, Reference: teacher(0.1)}, true},
		"as much as its reference, and far more than on its own": {report.Rate{Texts: 1000, Rate: 0.05},
			report.OtherRate{Texts: 1000, Rate: 0.5, Reference: teacher(0.45)}, false},
		"labels for each text": {report.Rate{Texts: 1000, Rate: 1.1},
			report.OtherRate{Texts: 1000, Rate: 2.9}, true},
	} {
		if got := high(c.own, c.other); got != c.want {
			t.Errorf("%s: high(%+v, %+v) = %v, want %v", name, c.own, c.other, got, c.want)
		}
	}
}
