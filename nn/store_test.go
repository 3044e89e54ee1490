package nn

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// twoTasks is a store of a table and a vector that two tasks share, and a vector that they do not.
func twoTasks() (*HostStore, []*Param) {
	params := NewParams(1)
	shared := []*Param{params.Normal("table", 1, 40, 3), params.Normal("vector", 1, 5)}
	params.Normal("own", 1, 2)
	s := NewHostStore(params.All(), NewAdamW(0.01))
	s.SeparateTasks(2, shared)
	return s, shared
}

func TestGradientsByTaskAreThoseOfTheWhole(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	s, shared := twoTasks()
	for round := range 3 {
		s.Zero()
		if sum, err := s.SumSquares(); sum != 0 || err != nil || s.Dots()[0][0] != 0 {
			t.Fatalf("round %d: Zero leaves gradients", round)
		}
		want := make([][]float64, 2) // of each task: table, then vector
		for task := range want {
			want[task] = make([]float64, 40*3+5)
			s.SelectTask(task)
			rows := []int32{int32(task), 3, int32(10 + task)} // row 3 is both's
			x := make([]float32, 9)
			for i := range x {
				x[i] = float32(r.NormFloat64())
				want[task][3*int(rows[i/3])+i%3] += float64(x[i])
			}
			s.Gradients().AddRows(shared[0], x, rows)
			d := s.Gradients().Of(shared[1])
			for i := range d {
				d[i] = float32(r.NormFloat64())
				want[task][120+i] = float64(d[i])
			}
			s.Gradients().Of(s.params[2])[0]++
		}
		dots := s.Dots()
		for i := range want {
			for j := range want {
				sum := 0.0
				for k := range want[i] {
					sum += want[i][k] * want[j][k]
				}
				if !(math.Abs(dots[i][j]-sum) <= 1e-9) {
					t.Errorf("round %d: dot product of tasks %d and %d is %v, want %v", round, i, j, dots[i][j], sum)
				}
			}
		}
		s.Combine([]float64{2, -0.5})
		got := slices.Concat(s.Total().Of(shared[0]), s.Total().Of(shared[1]))
		for k, v := range got {
			if sum := 2*want[0][k] - 0.5*want[1][k]; !(math.Abs(float64(v)-sum) <= 1e-6) {
				t.Fatalf("round %d: the combined gradient is %v at %d, want %v", round, v, k, sum)
			}
		}
		if own := s.Total().Of(s.params[2])[0]; own != 2 {
			t.Errorf("round %d: what is not shared has the gradient %v, want both tasks'", round, own)
		}
	}
}

func TestStateOfAnotherStoreIsRefused(t *testing.T) {
	s, _ := twoTasks()
	for _, c := range []struct {
		change func(state []ParamState) []ParamState
		want   string
	}{
		{func(all []ParamState) []ParamState { return all[:2] }, `parameter "own" not found`},
		{func(all []ParamState) []ParamState { return append(all, ParamState{Name: "more"}) },
			`unexpected parameter "more"`},
		{func(all []ParamState) []ParamState { all[0].Name = "words"; return all },
			`unexpected parameter "words"; want "table"`},
		{func(all []ParamState) []ParamState { all[1].Values = nil; return all },
			`parameter "vector" has 0 values; want 5`},
		{func(all []ParamState) []ParamState { all[1].Steps = 2; return all },
			`parameter "vector": 2 updates and 0 slots of the optimizer's state; want 2 slots after an update`},
		{func(all []ParamState) []ParamState { all[1].Steps = -1; return all },
			`parameter "vector": -1 updates and 0 slots`},
		{func(all []ParamState) []ParamState { all[1].Slots = make([]Slot, 2); return all },
			`parameter "vector": 0 updates and 2 slots`},
		{func(all []ParamState) []ParamState {
			all[1].Steps, all[1].Slots = 1, []Slot{{"square", make([]float32, 5)}, {"mean", make([]float32, 5)}}
			return all
		}, `parameter "vector": slot "square" of the optimizer's state has 5 values; want "mean" with 5`},
		{func(all []ParamState) []ParamState {
			all[1].Steps, all[1].Slots = 1, []Slot{{"mean", make([]float32, 5)}, {"square", make([]float32, 4)}}
			return all
		}, `parameter "vector": slot "square" of the optimizer's state has 4 values; want "square" with 5`},
	} {
		before := stateOf(t, s)
		err := s.SetState(c.change(stateOf(t, s)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("SetState = %v, want %s", err, c.want)
		}
		for i, p := range stateOf(t, s) {
			if !slices.Equal(p.Values, before[i].Values) {
				t.Errorf("%s: a state that is refused changes %s", c.want, p.Name)
			}
		}
	}
}

func stateOf(t *testing.T, s *HostStore) []ParamState {
	t.Helper()
	state, err := s.State()
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Copies of a parameter, as in a device's memory, are renewed where its version is another.
func TestSetStateChangesTheVersion(t *testing.T) {
	s, _ := twoTasks()
	state := stateOf(t, s)
	var before []uint64
	for _, w := range s.Params() {
		before = append(before, w.Version())
	}
	if err := s.SetState(state); err != nil {
		t.Fatal(err)
	}
	for i, w := range s.Params() {
		if w.Version() == before[i] {
			t.Errorf("parameter %s has the version of before", w.Name)
		}
	}
}

func TestCopiesUseTheirMemoryAgain(t *testing.T) {
	for _, prepared := range []int{0, 2, 3, 4, 9} {
		var c Copies
		if prepared > 0 {
			c.Prepare(prepared)
		}
		x, y := []float32{1, 2}, []float32{3, 4}
		var first, second []float32
		for range 3 { // the third has memory for all
			first, second = c.Clone(x), c.Clone(y)
			_ = append(first, 9) // not in the memory of second
			x[0]++
			if !slices.Equal(first, []float32{x[0] - 1, 2}) || !slices.Equal(second, y) || c.Clone(nil) != nil {
				t.Errorf("copies are %v and %v", first, second)
			}
			c.Reuse()
		}
		if again := c.Clone(y); &again[0] != &first[0] || !slices.Equal(again, y) {
			t.Errorf("the next copy is %v, in other memory", again)
		}
	}
	x := []float32{1, 2}
	var c Copies
	c.Prepare(3)
	var first []float32
	for range 3 { // what is beside gets memory of its own: that of the others stays
		copied := c.Clone(x)
		if first == nil {
			first = copied
		}
		if c.Clone(x); &copied[0] != &first[0] {
			t.Error("copies that had memory have other memory")
		}
		c.Reuse()
	}
	if len(c.blocks) != 2 {
		t.Errorf("%d blocks of memory, want 2", len(c.blocks))
	}
	if got := (*Copies)(nil).Clone(x); &got[0] == &x[0] || !slices.Equal(got, x) {
		t.Errorf("without memory the copy is %v", got)
	}
}

func TestNumbersThatDoNotArriveAreAnErrorOfTheNorm(t *testing.T) {
	params := NewParams(1)
	params.Normal("matrix", 1, 300, 100) // more values than are shared as one
	s := NewHostStore(params.All(), NewAdamW(0.01))
	allocate := func(n int) ([]float32, error) { return make([]float32, n), nil }
	if err := s.Place(params.All(), allocate); err != nil {
		t.Fatal(err)
	}
	bounds, want := s.Units(params.All()), errors.New("a rank does not answer")
	s.Own([][2]int{{0, bounds[1]}}, func([]float64) error { return want })
	if _, err := s.SumSquares(); !errors.Is(err, want) {
		t.Errorf("SumSquares = %v, want %v", err, want)
	}
}

func TestCombinedGradientsHaveTheRowsOfAllTasks(t *testing.T) {
	s, shared := twoTasks()
	table := shared[0]
	for round := range 2 {
		s.Zero()
		for task, row := range []int32{7, 11} {
			s.SelectTask(task)
			s.Gradients().AddRows(table, []float32{3, 0, 0}, []int32{row})
		}
		s.Combine([]float64{1, 2})
		if sum, err := s.SumSquares(); sum != 9+36 || err != nil {
			t.Errorf("round %d: the squares sum to %v, want 45", round, sum)
		}
		var rows []int
		for row, touched := range s.gradients.of[table].touched {
			if touched != 0 {
				rows = append(rows, row)
			}
		}
		if !slices.Equal(rows, []int{7, 11}) {
			t.Errorf("round %d: the rows with a gradient are %v, want 7 and 11", round, rows)
		}
	}
}

// One task may have a whole gradient, as of an output layer tied to the table, and another one by rows.
func TestCombinedGradientsOfRowsAndOfTheWhole(t *testing.T) {
	s, shared := twoTasks()
	table := shared[0]
	s.SelectTask(0)
	s.Gradients().Of(table)[5*3] = 4
	s.SelectTask(1)
	s.Gradients().AddRows(table, []float32{3, 0, 0}, []int32{7})
	s.Combine([]float64{1, 1})
	if sum, err := s.SumSquares(); sum != 16+9 || err != nil {
		t.Errorf("the squares sum to %v, want 25", sum)
	}
}
