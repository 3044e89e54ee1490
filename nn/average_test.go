package nn

import (
	"math"
	"testing"
)

// wordsWidth is the length of the rows of wordsStore's table.
const wordsWidth = 40

// wordsStore is a store of a table of words and a bias with running means.
func wordsStore(decay float64) *HostStore {
	params := NewParams(1)
	params.Table("words", 1, 6, wordsWidth)
	params.Ones("bias", 2)
	s := NewHostStore(params.All(), NewAdamW(0.5))
	s.Average(decay)
	return s
}

// stepWords updates the store by gradients of a row of the table, of all its rows, or of the bias alone. In the first
// step a row that has no other has the gradient 0, as those of a text without labels.
func stepWords(t *testing.T, s *HostStore, n int) {
	t.Helper()
	s.Zero()
	words, bias := s.params[0], s.params[1]
	x := make([]float32, wordsWidth)
	for i := range x {
		x[i] = float32(math.Sin(float64(wordsWidth*n + i)))
	}
	switch {
	case n == 8:
		copy(s.Gradients().Of(words)[wordsWidth:], x)
	case n%4 == 3: // the table does not decay
		s.Gradients().Of(bias)[0] = 1
	default:
		s.Gradients().AddRows(words, x, []int32{int32(n % 5)})
		if n == 0 {
			s.Gradients().AddRows(words, make([]float32, wordsWidth), []int32{5})
		}
	}
	s.SumSquares()
	if err := s.Update(1, 0.01); err != nil {
		t.Fatal(err)
	}
}

// The means of a table's rows are those of the definition, whether the rows have gradients always, from some step on or
// never, also where the whole table has a gradient in between, and after a state was restored.
func TestMeansOfATablesRows(t *testing.T) {
	const decay, steps = 0.8, 14
	s := wordsStore(decay)
	var want []float64
	for n := range steps {
		stepWords(t, s, n)
		values := s.params[0].Data
		if want == nil {
			want = float64s(values)
		}
		for i, v := range values {
			want[i] = decay*want[i] + (1-decay)*float64(v)
		}

		// another store goes on from the state
		state, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		again := wordsStore(decay)
		if err := again.SetState(state); err != nil {
			t.Fatal(err)
		}
		s.UseAverage(true)
		for i, v := range s.params[0].Data {
			if !(math.Abs(float64(v)-want[i]) <= 1e-6) {
				t.Fatalf("step %d: the mean of value %d is %v, want %v", n, i, v, want[i])
			}
		}
		s = again
	}
}

// Means have the same bits in a store that was restored after any step.
func TestMeansGoOnFromAnyState(t *testing.T) {
	const steps = 14
	whole := wordsStore(0.8)
	for n := range steps {
		stepWords(t, whole, n)
	}
	whole.UseAverage(true)
	for at := 1; at < steps; at++ {
		s := wordsStore(0.8)
		for n := range at {
			stepWords(t, s, n)
		}
		state, err := s.State()
		if err != nil {
			t.Fatal(err)
		}
		again := wordsStore(0.8)
		if err := again.SetState(state); err != nil {
			t.Fatal(err)
		}
		for n := at; n < steps; n++ {
			stepWords(t, again, n)
		}
		again.UseAverage(true)
		for i, w := range whole.params {
			if !sameBits(w.Data, again.params[i].Data) {
				t.Errorf("restored after step %d: the means of %s differ", at, w.Name)
			}
		}
	}
}

func float64s(x []float32) []float64 {
	all := make([]float64, len(x))
	for i, v := range x {
		all[i] = float64(v)
	}
	return all
}
