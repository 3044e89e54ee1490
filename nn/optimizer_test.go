package nn

import (
	"math"
	"slices"
	"testing"
)

func TestAdamWEqualsPyTorchs(t *testing.T) {
	var g struct {
		Rate, Decay, Clip float64
		Warmup, Steps     int
		Shapes            map[string][]int
		Initial           map[string][]float32
		Trace             []struct {
			Gradients, After map[string][]float32
			Norm, Rate       float64
		}
	}
	readGolden(t, "testdata/adamw.json", &g)
	if len(g.Trace) != 20 {
		t.Fatalf("%d steps", len(g.Trace))
	}
	params := NewParams(1)
	for _, name := range []string{"matrix", "vector", "idle"} {
		copy(params.Zeros(name, g.Shapes[name]...).Data, g.Initial[name])
	}
	optimizer, schedule := NewAdamW(g.Decay), Schedule{Warmup: g.Warmup, Steps: g.Steps}
	for n, step := range g.Trace {
		gradients := NewGradients(params.All())
		for _, w := range params.All() {
			copy(gradients.Of(w), step.Gradients[w.Name])
		}
		norm, factor, moved := clip(params.All(), gradients, g.Clip)
		if !(math.Abs(norm-step.Norm) <= 1e-5*step.Norm) {
			t.Errorf("step %d: norm %v, want %v", n, norm, step.Norm)
		}
		rate := g.Rate * schedule.Rate(n)
		if !(math.Abs(rate-step.Rate) <= 1e-12) {
			t.Errorf("step %d: rate %v, want %v", n, rate, step.Rate)
		}
		optimizer.Step(moved, gradients, factor, rate)
		for _, w := range params.All() {
			checkGolden(t, w.Name, w.Data, step.After[w.Name])
		}
	}
	for _, w := range params.All() {
		s := optimizer.State(w)
		if len(s.Slots) != 2 || len(s.Slots[0].Values) != len(w.Data) || w.Name == "idle" && s.Steps != 7 {
			t.Errorf("state of %s is %+v", w.Name, s)
		}
	}
}

func TestAdamWLeavesFrozenParametersAlone(t *testing.T) {
	params := NewParams(1)
	w := params.Ones("w", 3)
	g := NewGradients(params.All())
	copy(g.Of(w), []float32{1, 1, 1})
	w.Frozen = true
	NewAdamW(0.1).Step(params.All(), g, 1, 1)
	if !slices.Equal(w.Data, []float32{1, 1, 1}) {
		t.Errorf("a frozen parameter went to %v", w.Data)
	}
}

// clip is what a step does with gradients before its update.
func clip(params []*Param, g Gradients, limit float64) (norm float64, factor float32, moved []*Param) {
	sum, moved := g.sumSquares(params, nil)
	norm = math.Sqrt(sum)
	return norm, ClipFactor(norm, limit), moved
}

func TestClip(t *testing.T) {
	params := NewParams(1)
	a, idle, b := params.Zeros("a", 2), params.Zeros("idle", 3), params.Zeros("b", 1, 1)
	without := params.Zeros("without", 1)
	without.Frozen = true
	g := NewGradients(params.All())
	g.Of(a)[0], g.Of(b)[0] = 3, 4
	moved := []*Param{a, b}
	for _, c := range []struct {
		limit, norm float64
		factor      float32
	}{{10, 5, 1}, {1, 5, 0.2}, {math.Inf(1), 5, 1}} {
		norm, factor, got := clip(params.All(), g, c.limit)
		if norm != c.norm || !(math.Abs(float64(factor-c.factor)) <= 1e-6) || !slices.Equal(got, moved) {
			t.Errorf("clip to %v = %v, %v and %d moved, want %v, %v and 2", c.limit, norm, factor, len(got), c.norm,
				c.factor)
		}
	}
	g.Of(a)[0], g.Of(b)[0], g.Of(idle)[2] = 0, 0, 1e-45 // whose square no float32 holds
	if norm, _, got := clip(params.All(), g, 1); !(norm > 0) || !slices.Equal(got, []*Param{idle}) {
		t.Errorf("norm %v and %d moved of a gradient of 1e-45, want it moved", norm, len(got))
	}
	for _, bad := range []float64{math.Inf(1), math.NaN()} {
		g.Of(b)[0] = float32(bad)
		if norm, factor, _ := clip(params.All(), g, 1); norm-norm == 0 || factor != 1 {
			t.Errorf("norm %v and factor %v for a gradient of %v, want it and 1", norm, factor, bad)
		}
	}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		Schedule
		step int
		want float64
	}{
		{Schedule{Warmup: 10, Steps: 30}, 0, 0},
		{Schedule{Warmup: 10, Steps: 30}, 5, 0.5},
		{Schedule{Warmup: 10, Steps: 30}, 10, 1},
		{Schedule{Warmup: 10, Steps: 30}, 20, 0.5},
		{Schedule{Warmup: 10, Steps: 30}, 30, 0},
		{Schedule{Warmup: 10, Steps: 30}, 31, 0},
		{Schedule{Warmup: 0, Steps: 4}, 0, 1},
		{Schedule{Warmup: 0, Steps: 4}, 1, 0.75},
		{Schedule{Warmup: 4, Steps: 4}, 4, 0},
	} {
		if got := c.Rate(c.step); got != c.want {
			t.Errorf("%+v.Rate(%d) = %v, want %v", c.Schedule, c.step, got, c.want)
		}
	}
}

// Gradients may be by rows in one step and whole in another.
func TestRowsOfAWholeGradientStayActive(t *testing.T) {
	sometimes, whole := newTable(0), newTable(0)
	x := make([]float32, 33)
	x[0] = 3
	for _, m := range []*table{sometimes, whole} {
		for step, row := range []int32{7, 8, 9} {
			m.gradients = NewGradients(m.params.All())
			if m == whole || step == 1 {
				copy(m.gradients.Of(m.words)[row*33:], x)
			} else {
				m.gradients.AddRows(m.words, x, []int32{row})
			}
			m.step(0.01)
		}
	}
	if !sameBits(sometimes.words.Data, whole.words.Data) {
		t.Error("a row of the whole gradient has moments, but is not updated in a step of other rows")
	}
}
