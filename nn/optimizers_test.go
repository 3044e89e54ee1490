package nn

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
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

// optimizersGolden is testdata/optimizers.json, written by scripts/fixtures/optimizers.py: its doc comment says what it
// has.
type optimizersGolden struct {
	Rate, Decay, Average float64
	Warmup, Steps        int
	Shapes               map[string][]int
	Initial              map[string][]float32
	Gradients            []map[string][]float32
	After                map[string][]struct {
		Step            int
		Params, Average map[string][]float32
	}
	Schedules map[string]map[string][]float64
}

// optimizers have the options of the script's optimizers.
func optimizers(decay float64) map[string]*Optimizer {
	adafactor := Adafactor{Epsilon1: 1e-30, Epsilon2: 1e-3, ClipThreshold: 1, DecayRate: -0.8}
	mean, relative, warmup := adafactor, adafactor, adafactor
	mean.ScaleParameter, mean.Beta1, mean.ClipThreshold = true, 0.9, 0.7
	relative.ScaleParameter, relative.RelativeStep, relative.DecayRate = true, true, -0.6
	warmup.RelativeStep, warmup.WarmupInit = true, true
	all := map[string]*Optimizer{}
	for name, rule := range map[string]Rule{
		"adamw":              AdamW{Beta1: 0.8, Beta2: 0.98, Epsilon: 1e-6},
		"sgd":                SGD{},
		"momentum":           SGD{Momentum: 0.9, Dampening: 0.1},
		"nesterov":           SGD{Momentum: 0.8, Nesterov: true},
		"adafactor":          adafactor,
		"adafactor_mean":     mean,
		"adafactor_relative": relative,
		"adafactor_warmup":   warmup,
	} {
		all[name] = NewOptimizer(rule, decay)
	}
	return all
}

// start makes the parameters of the file.
func (g *optimizersGolden) start() Params {
	params := NewParams(1)
	for _, name := range []string{"matrix", "table", "vector", "idle"} {
		copy(params.Zeros(name, g.Shapes[name]...).Data, g.Initial[name])
	}
	return params
}

// step updates a store by the gradients of a step, those of the table by rows.
func (g *optimizersGolden) step(t *testing.T, s *HostStore, n int) {
	t.Helper()
	s.Zero()
	for _, w := range s.params {
		d := g.Gradients[n-1][w.Name]
		if w.Name != "table" {
			copy(s.Gradients().Of(w), d)
			continue
		}
		var rows []int32
		var x []float32
		for r := range w.Shape[0] {
			if row := d[r*w.Shape[1] : (r+1)*w.Shape[1]]; slices.ContainsFunc(row, hasBits) {
				rows, x = append(rows, int32(r)), append(x, row...)
			}
		}
		s.Gradients().AddRows(w, x, rows)
	}
	s.SumSquares()
	fraction := Schedule{Warmup: g.Warmup, Steps: g.Steps, Curve: CosineCurve{0.5}}.Rate(n)
	if err := s.Update(1, g.Rate*fraction); err != nil {
		t.Fatal(err)
	}
}

// Parameters and their running means after 50 steps are those of PyTorch and transformers.
func TestOptimizersEqualPyTorchs(t *testing.T) {
	var g optimizersGolden
	readGolden(t, "testdata/optimizers.json", &g)
	for name, optimizer := range optimizers(g.Decay) {
		t.Run(name, func(t *testing.T) {
			s := NewHostStore(g.start().All(), optimizer)
			s.Average(g.Average)
			after := g.After[name]
			if len(after) != 5 || g.Steps != 50 {
				t.Fatalf("%d states of %d steps", len(after), g.Steps)
			}
			for n := 1; n <= g.Steps; n++ {
				g.step(t, s, n)
				if n != after[0].Step {
					continue
				}
				nearAll(t, fmt.Sprintf("after step %d", n), s.params, after[0].Params)
				s.UseAverage(true)
				nearAll(t, fmt.Sprintf("means after step %d", n), s.params, after[0].Average)
				s.UseAverage(false)
				after = after[1:]
			}
		})
	}
}

// nearAll fails where a parameter differs by more than 1e-6 times its largest value, or 1e-6 if that is below 1.
func nearAll(t *testing.T, what string, params []*Param, want map[string][]float32) {
	t.Helper()
	for _, w := range params {
		size := 1.0
		for _, v := range want[w.Name] {
			size = max(size, math.Abs(float64(v)))
		}
		if !near(w.Data, want[w.Name], 1e-6*size) {
			t.Errorf("%s %s is\n%v\nwant\n%v", w.Name, what, w.Data, want[w.Name])
		}
	}
}

func TestSchedulesEqualTransformers(t *testing.T) {
	var g optimizersGolden
	readGolden(t, "testdata/optimizers.json", &g)
	for name, curve := range map[string]Curve{
		"linear": nil, "constant": ConstantCurve{}, "cosine": CosineCurve{0.5}, "cosine_cycles": CosineCurve{1.25},
		"polynomial": PolynomialCurve{2, 1e-4 / g.Rate}, "polynomial_default": PolynomialCurve{1, 1e-7 / g.Rate},
	} {
		for warmup, rates := range g.Schedules[name] {
			n, err := strconv.Atoi(warmup)
			if err != nil || len(rates) != 51 {
				t.Fatalf("%d rates after a warmup of %s", len(rates), warmup)
			}
			for step, want := range rates {
				if got := (Schedule{n, g.Steps, curve}).Rate(step); !(math.Abs(got-want) <= 1e-8) {
					t.Errorf("%s: rate %v at step %d after a warmup of %d, want %v", name, got, step, n, want)
				}
			}
		}
	}
}

// A store that is restored from a state goes on with the same bits.
func TestOptimizersGoOnFromTheirState(t *testing.T) {
	var g optimizersGolden
	readGolden(t, "testdata/optimizers.json", &g)
	whole, halves := optimizers(g.Decay), optimizers(g.Decay)
	for name, again := range optimizers(g.Decay) {
		t.Run(name, func(t *testing.T) {
			a, b, c := NewHostStore(g.start().All(), whole[name]), NewHostStore(g.start().All(), halves[name]),
				NewHostStore(g.start().All(), again)
			for _, s := range []*HostStore{a, b, c} {
				s.Average(g.Average)
			}
			for n := 1; n <= 20; n++ {
				g.step(t, a, n)
				if n <= 10 {
					g.step(t, b, n)
				}
			}
			b.UseAverage(true) // a state has the parameters' own values whether they are in use or not
			state, err := b.State()
			if err != nil {
				t.Fatal(err)
			}
			if err := c.SetState(state); err != nil {
				t.Fatal(err)
			}
			for n := 11; n <= 20; n++ {
				g.step(t, c, n)
			}
			for _, use := range []bool{false, true} {
				a.UseAverage(use)
				c.UseAverage(use)
				for i, w := range a.params {
					if !sameBits(w.Data, c.params[i].Data) {
						t.Errorf("%s differs after a state was restored; means: %v", w.Name, use)
					}
				}
			}
		})
	}
}

// The number of values of a state is the one that is counted before training.
func TestStateSizes(t *testing.T) {
	var g optimizersGolden
	readGolden(t, "testdata/optimizers.json", &g)
	for name, optimizer := range optimizers(g.Decay) {
		s := NewHostStore(g.start().All(), optimizer)
		for n := 1; n <= 2; n++ {
			g.step(t, s, n)
		}
		for _, w := range s.params {
			have := 0
			for _, slot := range optimizer.State(w).Slots {
				have += len(slot.Values)
			}
			if want := optimizer.StateSize(w); have != want {
				t.Errorf("%s: the state of %s has %d values; StateSize is %d", name, w.Name, have, want)
			}
		}
	}
}

func TestStatesOfOtherOptimizersAreRefused(t *testing.T) {
	all := optimizers(0)
	for _, c := range []struct {
		optimizer string
		state     OptimizerState
		want      string
	}{
		{"momentum", OptimizerState{Steps: 1}, "1 updates and 0 slots"},
		{"momentum", OptimizerState{Slots: []Slot{{"velocity", make([]float32, 6)}}}, "0 updates and 1 slots"},
		{"momentum", OptimizerState{1, []Slot{{"velocity", make([]float32, 5)}}}, `"velocity" with 6`},
		{"momentum", OptimizerState{1, []Slot{{"mean", make([]float32, 6)}}}, `want "velocity"`},
		{"sgd", OptimizerState{Steps: 3}, "want 0 slots"},
		{"adafactor", OptimizerState{1, []Slot{{"row", make([]float32, 2)}, {"column", make([]float32, 2)}}},
			`"column" with 3`},
	} {
		w := NewParams(1).Zeros("w", 2, 3)
		err := all[c.optimizer].SetState([]*Param{w}, []OptimizerState{c.state})
		if err == nil || !strings.Contains(err.Error(), `parameter "w": `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: SetState(%+v) = %v, want %s", c.optimizer, c.state, err, c.want)
		}
	}
}

func TestStatesWithoutAllAveragesAreRefused(t *testing.T) {
	params := NewParams(1)
	params.Ones("a", 2)
	params.Ones("b", 3)
	s := NewHostStore(params.All(), NewOptimizer(SGD{}, 0))
	s.Average(0.9)
	for _, w := range params.All() {
		s.Gradients().Of(w)[0] = 1
	}
	s.SumSquares()
	if err := s.Update(1, 0.1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		change func(state []ParamState)
		want   string
	}{
		{func(s []ParamState) { s[1].Slots = nil }, `parameter "b": slot "average" not found`},
		{func(s []ParamState) { s[0].Slots = nil }, `parameter "b": unexpected slot "average"`},
		{func(s []ParamState) { s[1].Slots[0].Values = []float32{1} }, `slot "average" of the optimizer's state has 1`},
	} {
		state, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		c.change(state)
		if err := s.SetState(state); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("SetState = %v, want %s", err, c.want)
		}
	}
}

func BenchmarkOptimizers(b *testing.B) {
	for name, optimizer := range optimizers(0.01) {
		b.Run(name, func(b *testing.B) {
			w := NewParams(1).Normal("w", 0.02, 1536, 3840) // half as many as MiniLM-L6's layers have
			s := NewHostStore([]*Param{w}, optimizer)
			copy(s.Gradients().Of(w), w.Data)
			s.SumSquares()
			b.SetBytes(int64(4 * len(w.Data)))
			for b.Loop() {
				if err := s.Update(1, 1e-6); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
