package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/updates"
)

// docs/formulas.md: in update n of N the rate is n/W up to W, then (N-n)/(N-W); that of the last update is 0.
func TestTheRateFollowsItsFormula(t *testing.T) {
	for _, c := range []struct {
		plan     Plan
		N, W     float64
		wantLast float64
	}{
		{Plan{}, 7, 0, 0},
		{Plan{Options: multitask.Options{WarmupRatio: 0.1}}, 7, 1, 0}, // at least 1
		{Plan{Options: multitask.Options{WarmupRatio: 0.5}}, 7, 3, 0},
		{Plan{Options: multitask.Options{WarmupSteps: 5, WarmupRatio: 0.1}}, 7, 5, 0},
		{Plan{}, 1, 0, 1}, // a run of one update has the whole rate
	} {
		schedule := c.plan.schedule(int(c.N))
		for n := 1.0; n < c.N; n++ {
			want := n / c.W
			if n >= c.W {
				want = (c.N - n) / (c.N - c.W)
			}
			if got := schedule.Rate(int(n)); !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("%+v: update %v of %v has the rate %v, want %v", c.plan, n, c.N, got, want)
			}
		}
		if got := schedule.Rate(int(c.N)); got != c.wantLast {
			t.Errorf("%+v: the last of %v updates has the rate %v, want %v", c.plan, c.N, got, c.wantLast)
		}
	}
}

func TestTheFormulasPageHasTheConstantsOfAdamW(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "formulas.md"))
	if err != nil {
		t.Fatal(err)
	}
	choice, err := updates.Optimizers().FromString("adamw", "")
	if err != nil {
		t.Fatal(err)
	}
	adamw := choice.Options.(updates.AdamW)
	want := fmt.Sprintf("β₁ = %v, β₂ = %v, eps = 1e-8", adamw.Beta1, adamw.Beta2)
	if text := strings.Join(strings.Fields(string(page)), " "); !strings.Contains(text, want) ||
		adamw.Epsilon != 1e-8 {
		t.Errorf("docs/formulas.md does not have %q", want)
	}
}
