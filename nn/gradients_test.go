package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// table is a model of one table and one matrix, with its optimizer.
type table struct {
	params       Params
	words, other *Param
	gradients    Gradients
	optimizer    *Optimizer
}

func newTable(decay float64) *table {
	p := NewParams(1)
	m := &table{params: p, words: p.Normal("words", 1, 200, 33), other: p.Normal("other", 1, 5, 7),
		optimizer: NewAdamW(decay)}
	m.gradients = NewGradients(p.All())
	return m
}

// step updates the model by the gradients that are there, and zeroes them. It returns the norm.
func (m *table) step(rate float64) float64 {
	norm, factor, moved := clip(m.params.All(), m.gradients, 1)
	m.optimizer.Step(moved, m.gradients, factor, rate)
	m.gradients.zeroAll()
	return norm
}

// resume goes on with a new optimizer that has what a checkpoint holds.
func (m *table) resume() {
	old := m.optimizer
	m.optimizer = NewAdamW(old.decay)
	for w := range old.states {
		if err := m.optimizer.SetState([]*Param{w}, []OptimizerState{old.State(w)}); err != nil {
			panic(err)
		}
	}
	m.gradients = NewGradients(m.params.All())
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
}

func TestRowsOfATableAreUpdatedAsTheWholeIs(t *testing.T) {
	for _, decay := range []float64{0, 0.1} {
		r := rand.New(rand.NewPCG(3, 0))
		byRows, whole := newTable(decay), newTable(decay)
		for step := range 20 {
			names, x := make([]int32, 12), make([]float32, 12*33)
			for i := range names {
				names[i] = r.Int32N(int32(40 + 5*step)) // some rows have a gradient once, some never
			}
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			if step == 7 {
				names = names[:0] // a step of which the table is no part
			}
			for _, m := range []*table{byRows, whole} {
				copy(m.gradients.Of(m.other), x)
			}
			byRows.gradients.AddRows(byRows.words, x[:len(names)*33], names)
			kernel.Scatter(whole.gradients.Of(whole.words), x, names, 33)
			if step == 15 {
				for _, m := range []*table{byRows, whole} {
					kernel.Add(m.gradients.Of(m.words)[150*33:], x[:33])
				}
			}

			if got, want := byRows.step(0.01), whole.step(0.01); got != want {
				t.Fatalf("decay %v, step %d: the norm is %v, want %v", decay, step, got, want)
			}
			if step == 10 {
				byRows.resume()
				whole.resume()
			}
			for _, w := range []string{"weights", "means", "squares"} {
				of := func(m *table) []float32 {
					s := m.optimizer.State(m.words).Slots
					means, squares := s[0].Values, s[1].Values
					return map[string][]float32{"weights": m.words.Data, "means": means, "squares": squares}[w]
				}
				if !sameBits(of(byRows), of(whole)) {
					t.Fatalf("decay %v, step %d: the %s of the table differ", decay, step, w)
				}
			}
			if !sameBits(byRows.other.Data, whole.other.Data) {
				t.Fatalf("decay %v, step %d: the other parameter differs", decay, step)
			}
			if slices.ContainsFunc(byRows.gradients.of[byRows.words].values, func(v float32) bool { return v != 0 }) {
				t.Fatalf("step %d: Zero leaves a gradient", step)
			}
		}
	}
}

// Rows that were not added to are not read, which saves their time.
func TestOnlyRowsThatWereAddedToAreRead(t *testing.T) {
	m := newTable(0)
	x := make([]float32, 33)
	x[0] = 3
	m.gradients.AddRows(m.words, x, []int32{7})
	d := m.gradients.of[m.words].values
	d[8*33] = 4 // behind its back
	before := m.words.Data[8*33]
	if norm := m.step(0.01); norm != 3 {
		t.Errorf("norm %v, want 3", norm)
	}
	if m.words.Data[8*33] != before || d[8*33] != 4 || d[7*33] != 0 {
		t.Errorf("a row that nobody named was updated or zeroed")
	}
	m.gradients.Of(m.words)
	if norm := m.step(0.01); norm != 4 || m.words.Data[8*33] == before || d[8*33] != 0 {
		t.Errorf("norm %v of the whole gradient, want 4, the row updated and zeroed", norm)
	}
}

func TestWhatWasThereBeforeRowsWereAddedCounts(t *testing.T) {
	m := newTable(0)
	m.gradients.Of(m.words)[5*33] = 3
	x := make([]float32, 33)
	x[0] = 4
	m.gradients.AddRows(m.words, x, []int32{7})
	if norm := m.step(0.01); norm != 5 {
		t.Errorf("norm %v, want 5", norm)
	}
}

func TestAddRowsLeavesAFrozenTable(t *testing.T) {
	m := newTable(0)
	m.words.Frozen = true
	g := NewGradients(m.params.All())
	g.AddRows(m.words, make([]float32, 33), []int32{7})
	if len(g.of) != 1 || g.Of(m.words) != nil {
		t.Errorf("a frozen table has a gradient")
	}
}

// Operations may add to any row: all rows of a table that one of them reads are checked.
func TestOperationsOnATableAddToItsWholeGradient(t *testing.T) {
	m := newTable(0)
	x := make([]float32, 33)
	x[0] = 3
	m.gradients.AddRows(m.words, x, []int32{7})
	p := NewPass(1)
	loss := Operation{
		Name: "all rows", Params: []*Param{m.words},
		Forward:  func(in [][]float32, out []float32) {},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { dIn[1][8*33] += 4 * dOut[0] },
	}.Apply(p.Input([]float32{0}, 1))
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	if err := p.Backward(loss, 1, m.gradients, nil, nil); err != nil {
		t.Fatal(err)
	}
	if norm := m.step(0.01); norm != 5 {
		t.Errorf("norm %v, want 5", norm)
	}
}

// BenchmarkTable is norm, update and zeroing of word embeddings of MiniLM's size after batches of 32 texts of 12
// tokens.
func BenchmarkTable(b *testing.B) {
	const vocabulary, width, tokens = 30522, 384, 384
	for _, name := range []string{"whole", "rows"} {
		b.Run(name, func(b *testing.B) {
			p := NewParams(1)
			m := &table{params: p, words: p.Normal("words", 1, vocabulary, width), optimizer: NewAdamW(0.01)}
			m.gradients = NewGradients(p.All())
			r := rand.New(rand.NewPCG(3, 0))
			x, names := make([]float32, tokens*width), make([]int32, tokens)
			for i := range x {
				x[i] = float32(r.NormFloat64())
			}
			step := func() {
				for i := range names {
					names[i] = r.Int32N(2000)
				}
				m.gradients.AddRows(m.words, x, names)
				if name == "whole" {
					m.gradients.Of(m.words)
				}
				m.step(1e-5)
			}
			step() // allocates the memory
			for b.Loop() {
				step()
			}
		})
	}
}
