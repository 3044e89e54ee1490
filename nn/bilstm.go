package nn

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// BiLSTM is a bidirectional LSTM layer: one LSTM runs from the first token to the last, one from the last to the first,
// over each text's own rows. Their states are concatenated.
//
//	i, f, o = σ(z_i), σ(z_f), σ(z_o)    a = tanh(z_a)    c = f·c' + i·a    h = o·tanh(c)    z = x·W + b + h'·R
type BiLSTM struct {
	// of the forward and the backward direction
	Input     [2]*Param // W [in 4H], columns in the order i, f, a, o
	Recurrent [2]*Param // R [H 4H]
	Bias      [2]*Param // b [4H]; PyTorch has two, of which this is the sum
}

// NewBiLSTM makes the parameters, from uniform(-1/√H, 1/√H) as PyTorch does: H is the width of one direction's state.
func NewBiLSTM(params Params, in, hidden int) *BiLSTM {
	l := &BiLSTM{}
	bound := 1 / math.Sqrt(float64(hidden))
	for d, name := range []string{"forward", "backward"} {
		at := params.In(name)
		l.Input[d] = at.Uniform("input", bound, in, 4*hidden)
		l.Recurrent[d] = at.Uniform("recurrent", bound, hidden, 4*hidden)
		l.Bias[d] = at.Uniform("bias", bound, 4*hidden)
	}
	return l
}

// BiLSTMSize is how many parameters NewBiLSTM makes, in floats.
func BiLSTMSize(in, hidden int) int { return 2 * 4 * hidden * (in + hidden + 1) }

// Width returns the width of the states, 2H.
func (l *BiLSTM) Width() int { return 2 * l.Recurrent[0].Shape[0] }

// LSTMStates are what a BiLSTM's Forward computes, for its Backward.
type LSTMStates struct {
	kernel.LSTMStates
	x    []float32 // [T in]
	rows Rows
}

// lstmPacked is memory for the recurrent weights in the layout of products, reused by consecutive passes.
type lstmPacked struct{ forward, backward [2]kernel.Packed }

func (l *BiLSTM) packed(p *Pass) *lstmPacked {
	m, kept := p.Get(l).(*lstmPacked)
	if !kept {
		if m, kept = p.Reuse(l).(*lstmPacked); !kept {
			m = new(lstmPacked)
		}
		p.Put(l, m)
	}
	return m
}

// Forward returns the states for x [T in], in the pass's memory; those of each token are in Out [T 2H].
func (l *BiLSTM) Forward(p *Pass, x []float32, rows Rows) *LSTMStates {
	in, hidden, tokens := l.Input[0].Shape[0], l.Recurrent[0].Shape[0], rows.Tokens()
	s := &LSTMStates{x: x, rows: rows}
	s.Out = p.Scratch(tokens * 2 * hidden)
	packed := &l.packed(p).forward
	for d := range packed {
		s.Gates[d], s.Cells[d] = p.Scratch(tokens*4*hidden), p.Scratch(tokens*hidden)
		kernel.Product{
			M: tokens, K: in, N: 4 * hidden, A: kernel.Dense(x, in), B: kernel.Dense(l.Input[d].Data, 4*hidden),
			C:     s.Gates[d],
			Start: kernel.StartAtBias, Bias: l.Bias[d].Data,
		}.Multiply()
		packed[d].Pack(kernel.Dense(l.Recurrent[d].Data, 4*hidden), hidden, 4*hidden, kernel.Float32)
	}
	kernel.LSTM{Starts: rows.Starts, Hidden: hidden}.Forward(s.LSTMStates, packed)
	return s
}

// Backward takes the gradient at the states, dOut [T 2H]. It adds the gradient at Forward's x to dx, unless dx is nil,
// and those of the parameters to the slices that of returns, nil for a parameter that takes none.
func (l *BiLSTM) Backward(p *Pass, s *LSTMStates, dx, dOut []float32, of func(*Param) []float32) {
	in, hidden, tokens := l.Input[0].Shape[0], l.Recurrent[0].Shape[0], s.rows.Tokens()
	var dGates [2][]float32
	packed := &l.packed(p).backward
	for d := range packed {
		dGates[d] = p.Scratch(tokens * 4 * hidden)
		packed[d].Pack(kernel.Dense(l.Recurrent[d].Data, 4*hidden).T(), 4*hidden, hidden, kernel.Float32)
	}
	kernel.LSTM{Starts: s.rows.Starts, Hidden: hidden}.Backward(dGates, s.LSTMStates, dOut, packed)

	before := p.Scratch(tokens * hidden) // h' of each row
	for d := range packed {
		if dx != nil {
			kernel.MatMulBT(dx, dGates[d], l.Input[d].Data, tokens, 4*hidden, in)
		}
		if into := of(l.Input[d]); into != nil {
			kernel.MatMulAT(into, s.x, dGates[d], in, tokens, 4*hidden)
		}
		if into := of(l.Recurrent[d]); into != nil {
			s.before(before, d, hidden)
			kernel.MatMulAT(into, before, dGates[d], hidden, tokens, 4*hidden)
		}
		if into := of(l.Bias[d]); into != nil {
			kernel.SumRows(into, dGates[d])
		}
	}
}

// before writes to out [T H] the previous state of each row in direction d, zero for a text's first row.
func (s *LSTMStates) before(out []float32, d, hidden int) {
	for b := range s.rows.Texts() {
		for t := s.rows.Starts[b]; t < s.rows.Starts[b+1]; t++ {
			row, from := out[t*hidden:(t+1)*hidden], t-1+2*d
			if from < s.rows.Starts[b] || from >= s.rows.Starts[b+1] {
				clear(row)
				continue
			}
			copy(row, s.Out[(2*from+d)*hidden:])
		}
	}
}

// Apply maps states [T in] to [T 2H].
func (l *BiLSTM) Apply(p *Pass, x *Node, rows Rows) *Node {
	if n := rowsOf("BiLSTM", x, l.Input[0].Shape[0]); n != rows.Tokens() {
		panic(fmt.Sprintf("nn: BiLSTM of %d states for %d tokens", n, rows.Tokens()))
	}
	params := []*Param{l.Input[0], l.Recurrent[0], l.Bias[0], l.Input[1], l.Recurrent[1], l.Bias[1]}
	var states *LSTMStates
	return Operation{
		Name: "BiLSTM", Shape: []int{rows.Tokens(), l.Width()}, Params: params,
		Forward: func(in [][]float32, out []float32) {
			states = l.Forward(p, in[0], rows)
			copy(out, states.Out)
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			ofParams := dIn[1:] // another parameter panics
			l.Backward(p, states, dIn[0], dOut, func(w *Param) []float32 { return ofParams[slices.Index(params, w)] })
		},
	}.Apply(x)
}
