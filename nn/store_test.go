package nn

import (
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
