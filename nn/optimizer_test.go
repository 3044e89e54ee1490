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
		gradients := Gradients{}
		for _, w := range params.All() {
			if d, ok := step.Gradients[w.Name]; ok {
				gradients[w] = slices.Clone(d)
			}
		}
		if norm := Clip(params.All(), gradients, g.Clip); math.Abs(norm-step.Norm) > 1e-5*step.Norm {
			t.Errorf("step %d: norm %v, want %v", n, norm, step.Norm)
		}
		rate := g.Rate * schedule.Rate(n)
		if math.Abs(rate-step.Rate) > 1e-12 {
			t.Errorf("step %d: rate %v, want %v", n, rate, step.Rate)
		}
		optimizer.Step(params.All(), gradients, rate)
		for _, w := range params.All() {
			checkGolden(t, w.Name, w.Data, step.After[w.Name])
		}
	}
	for _, w := range params.All() {
		if s := optimizer.State[w]; s == nil || len(s.Mean) != len(w.Data) || w.Name == "idle" && s.Steps != 7 {
			t.Errorf("state of %s is %+v", w.Name, s)
		}
	}
}

func TestAdamWLeavesFrozenParametersAlone(t *testing.T) {
	params := NewParams(1)
	w := params.Ones("w", 3)
	w.Frozen = true
	NewAdamW(0.1).Step(params.All(), Gradients{w: {1, 1, 1}}, 1)
	if !slices.Equal(w.Data, []float32{1, 1, 1}) {
		t.Errorf("a frozen parameter went to %v", w.Data)
	}
}

func TestClip(t *testing.T) {
	params := NewParams(1)
	a, b := params.Zeros("a", 2), params.Zeros("b", 1)
	g := Gradients{a: {3, 0}, b: {4}}
	if norm := Clip(params.All(), g, 10); norm != 5 || g[a][0] != 3 {
		t.Errorf("norm %v, gradients %v, want 5 and as they were", norm, g)
	}
	if norm := Clip(params.All(), g, 1); norm != 5 || math.Abs(float64(g[a][0])-0.6) > 1e-6 || math.Abs(float64(g[b][0])-0.8) > 1e-6 {
		t.Errorf("norm %v, gradients %v and %v, want 5, 0.6 and 0.8", norm, g[a], g[b])
	}
	g[b][0] = float32(math.Inf(1))
	if norm := Clip(params.All(), g, 1); !math.IsInf(norm, 1) || math.IsNaN(float64(g[b][0])) {
		t.Errorf("norm %v, gradient %v, want both infinite", norm, g[b])
	}
}

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		Schedule
		step int
		want float64
	}{
		{Schedule{10, 30}, 0, 0},
		{Schedule{10, 30}, 5, 0.5},
		{Schedule{10, 30}, 10, 1},
		{Schedule{10, 30}, 20, 0.5},
		{Schedule{10, 30}, 30, 0},
		{Schedule{10, 30}, 31, 0},
		{Schedule{0, 4}, 0, 1},
		{Schedule{0, 4}, 1, 0.75},
		{Schedule{4, 4}, 4, 0},
	} {
		if got := c.Rate(c.step); got != c.want {
			t.Errorf("%+v.Rate(%d) = %v, want %v", c.Schedule, c.step, got, c.want)
		}
	}
}
