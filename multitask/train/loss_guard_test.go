package train

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

func TestTheUsualLoss(t *testing.T) {
	m, _ := threeGroups(t, "none", 4)
	g := newGuard(m.HeadNames(), 10, false)
	loss := func(v float64) multitask.Loss {
		return multitask.Loss{Task: "topic", Head: "topic", Weight: 1, Sum: 2 * v, Units: 2}
	}
	// no loss of the first 20 steps explodes; their median is 22
	for n, v := range slices.Concat([]float64{4, 1e9}, slices.Repeat([]float64{21, 23}, 9)) {
		if _, bad := g.check(loss(v)); bad {
			t.Errorf("the loss %v of step %d is bad", v, n+1)
		}
		g.observe([]multitask.Loss{loss(v)})
	}
	for _, c := range []struct {
		loss float64
		bad  bool
	}{{219, false}, {221, true}, {math.NaN(), true}, {math.Inf(1), true}, {-1e9, false}} {
		if _, bad := g.check(loss(c.loss)); bad != c.bad {
			t.Errorf("loss %v is bad: %v, want %v", c.loss, bad, c.bad)
		}
	}
	weightless := loss(1e6)
	weightless.Weight = 0
	if _, bad := g.check(weightless); bad {
		t.Error("the loss of a head with weight 0 explodes")
	}
	for range 1000 {
		g.observe([]multitask.Loss{loss(100)})
	}
	if usual, _ := g.check(loss(1)); math.Abs(usual-100) > 1e-3 { // the running mean, larger than the first
		t.Errorf("after 1000 losses of 100 the usual one is %v", usual)
	}
}
