package kernel

import (
	"math"
	"testing"
)

func TestExpIsMathExp(t *testing.T) {
	for x := -750.0; x < 750; x += 0.0137 {
		got, want := exp(x), math.Exp(x)
		if got != want && !(math.Abs(got-want) <= 1e-8*want) {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if x := exp(0); x != 1 {
		t.Errorf("exp(0) = %v, want 1", x)
	}
	if x := exp(math.Inf(-1)); x != 0 {
		t.Errorf("exp(-Inf) = %v, want 0", x)
	}
	if x := exp(math.Inf(1)); !math.IsInf(x, 1) {
		t.Errorf("exp(+Inf) = %v, want +Inf", x)
	}
	if x := exp(math.NaN()); x == x {
		t.Errorf("exp(NaN) = %v, want NaN", x)
	}
}

func BenchmarkExp(b *testing.B) {
	for name, f := range map[string]func(float64) float64{"exp": exp, "math.Exp": math.Exp} {
		b.Run(name, func(b *testing.B) {
			x := float64s(normal(1, 1000))
			for b.Loop() {
				for _, v := range x {
					f(v)
				}
			}
		})
	}
}
