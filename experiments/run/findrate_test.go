package run

import (
	"context"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// The rate of a test of one step would be that of no place between the first and the last.
func TestARateTestHasItsSteps(t *testing.T) {
	for steps, want := range map[int]string{-1: "-1", 1: "argument steps 1: want a number from 10", 0: "", 10: ""} {
		r := prepared(t, sample.Small(t, ""), 1<<40)
		curve, err := r.FindRate(context.Background(), RateTest{From: 1e-4, To: 1e-3, Steps: steps}, func(int, int) {})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d steps: %v, want %s", steps, err, want)
			}
			continue
		}
		if steps == 0 {
			steps = 100
		}
		if err != nil || len(curve.Points) != steps || curve.Points[0].Rate != 1e-4 ||
			curve.Points[steps-1].Rate != 1e-3 {
			t.Errorf("%d steps: %v, %+v", steps, err, curve.Points)
		}
	}
}
