package kernel

import (
	"cmp"
	"slices"
)

// LSTM is the recurrent part of a bidirectional LSTM layer (Hochreiter & Schmidhuber 1997, with forget gates) over
// texts packed one after the other, each over its own rows. Gates are in PyTorch's order: input, forget, cell, output.
//
//	i, f, o = σ(z_i), σ(z_f), σ(z_o)    a = tanh(z_a)    c = f·c' + i·a    h = o·tanh(c)
//
// with z = x·W + b + h'·R, and h', c' those of the text's previous row, in the backward direction the next one; zero
// for the first.
type LSTM struct {
	Starts []int // [B+1] text b is rows Starts[b]:Starts[b+1]
	Hidden int   // H, of each direction
}

// LSTMStates are the results of Forward, read by Backward, for the forward and the backward direction.
type LSTMStates struct {
	Gates [2][]float32 // [T 4H] x·W + b before Forward, the gates after it
	Cells [2][]float32 // [T H]
	Out   []float32    // [T 2H] h of both
}

// Forward runs both directions, given R [H 4H] packed.
func (l LSTM) Forward(s LSTMStates, recurrent *[2]Packed) {
	l.run(s, func(u *lstmUnit) { u.forward(&recurrent[u.direction]) })
}

// Backward writes to dGates [T 4H] the gradients of z, given the gradient dOut of Out and R transposed [4H H], packed.
func (l LSTM) Backward(dGates [2][]float32, s LSTMStates, dOut []float32, transposed *[2]Packed) {
	l.run(s, func(u *lstmUnit) { u.backward(dGates[u.direction], dOut, &transposed[u.direction]) })
}

// run divides the texts and directions among goroutines.
func (l LSTM) run(s LSTMStates, do func(u *lstmUnit)) {
	order := make([]int, len(l.Starts)-1)
	for b := range order {
		order[b] = b
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.length(b), l.length(a)) })
	groups := max(1, min((Threads()+1)/2, len(order)))
	Parallel(2*groups, 1, func(unit, _ int) {
		u := lstmUnit{LSTM: l, s: s, direction: unit % 2}
		for k := unit / 2; k < len(order); k += groups {
			u.texts = append(u.texts, order[k])
		}
		do(&u)
	})
}

func (l LSTM) length(text int) int { return l.Starts[text+1] - l.Starts[text] }

// lstmUnit is a group of texts in one direction, the longest first, so that the texts with a row at a step come first.
type lstmUnit struct {
	LSTM
	s         LSTMStates
	direction int // 1: from the last row to the first
	texts     []int
}

// row returns the row of a text at a step.
func (u *lstmUnit) row(text, step int) int {
	if u.direction == 1 {
		return u.Starts[text+1] - 1 - step
	}
	return u.Starts[text] + step
}

// active returns the number of texts that have a row at a step; n is that number at the step before.
func (u *lstmUnit) active(n, step int) int {
	for n > 0 && u.length(u.texts[n-1]) <= step {
		n--
	}
	return n
}

// of returns row t of x, in rows of width values.
func of(x []float32, t, width int) []float32 { return x[t*width : (t+1)*width] }

// out returns the direction's part of a row of Out or its gradient.
func (u *lstmUnit) out(x []float32, t int) []float32 {
	return x[(2*t+u.direction)*u.Hidden : (2*t+u.direction+1)*u.Hidden]
}

func (u *lstmUnit) forward(recurrent *Packed) {
	h, wide := u.Hidden, 4*u.Hidden
	gates, cells := u.s.Gates[u.direction], u.s.Cells[u.direction]
	n := len(u.texts)
	last, products := Floats(n*h), Floats(n*wide) // h' and h'·R of each text
	none := make([]float32, h)
	for step := 0; ; step++ {
		if n = u.active(n, step); n == 0 {
			return
		}
		if step > 0 {
			Product{M: n, K: h, N: wide, A: Dense(last, h), Packed: recurrent, C: products,
				Start: StartAtZero}.Multiply()
		}
		for k, text := range u.texts[:n] {
			t, before := u.row(text, step), none
			z := of(gates, t, wide)
			if step > 0 {
				before = of(cells, u.row(text, step-1), h)
				use.addScaled(z, of(products, k, wide), 1)
			}
			out := u.out(u.s.Out, t)
			lstmCell(z, of(cells, t, h), before, out)
			copy(of(last, k, h), out)
		}
	}
}

// lstmCell turns z [4H] into gates, and writes the cell's state and its result h, given the state before.
func lstmCell(z, cell, before, out []float32) {
	h := len(cell)
	// σ(x) = 1/2 + tanh(x/2)/2
	use.scale(z[:2*h], 0.5)
	use.scale(z[3*h:], 0.5)
	use.tanh(z, z)
	input, forget, candidate, output := z[:h], z[h:2*h], z[2*h:3*h], z[3*h:]
	for j := range cell {
		input[j], forget[j], output[j] = 0.5+0.5*input[j], 0.5+0.5*forget[j], 0.5+0.5*output[j]
		cell[j] = forget[j]*before[j] + input[j]*candidate[j]
	}
	use.tanh(out, cell)
	for j, o := range output {
		out[j] *= o
	}
}

func (u *lstmUnit) backward(dGates, dOut []float32, transposed *Packed) {
	h, wide := u.Hidden, 4*u.Hidden
	gates, cells := u.s.Gates[u.direction], u.s.Cells[u.direction]
	texts := len(u.texts)
	dh, dCell, dz := Floats(texts*h), Floats(texts*h), Floats(texts*wide)
	none, bounded := make([]float32, h), make([]float32, h)
	longest := 0
	if texts > 0 {
		longest = u.length(u.texts[0])
	}
	for step := longest - 1; step >= 0; step-- {
		n := u.active(texts, step)
		for k, text := range u.texts[:n] {
			t, before := u.row(text, step), none
			if step > 0 {
				before = of(cells, u.row(text, step-1), h)
			}
			use.addScaled(of(dh, k, h), u.out(dOut, t), 1)
			use.tanh(bounded, of(cells, t, h))
			lstmCellBackward(of(dz, k, wide), of(dCell, k, h), of(dh, k, h), of(gates, t, wide), bounded, before)
			copy(of(dGates, t, wide), of(dz, k, wide))
		}
		if step > 0 {
			Product{M: n, K: wide, N: h, A: Dense(dz, wide), Packed: transposed, C: dh, Start: StartAtZero}.Multiply()
		}
	}
}

// lstmCellBackward writes the gradient dz of z, and replaces dCell, the gradient of the cell's state, by that of the
// previous state, given the gradient dh of the result, the gates, tanh of the state and the previous state.
func lstmCellBackward(dz, dCell, dh, gates, bounded, before []float32) {
	h := len(dh)
	input, forget, candidate, output := gates[:h], gates[h:2*h], gates[2*h:3*h], gates[3*h:4*h]
	dInput, dForget, dCandidate, dOutput := dz[:h], dz[h:2*h], dz[2*h:3*h], dz[3*h:4*h]
	for j, d := range dh {
		i, f, a, o, c := input[j], forget[j], candidate[j], output[j], bounded[j]
		dc := dCell[j] + d*o*(1-c*c)
		dOutput[j] = d * c * o * (1 - o)
		dInput[j] = dc * a * i * (1 - i)
		dForget[j] = dc * before[j] * f * (1 - f)
		dCandidate[j] = dc * i * (1 - a*a)
		dCell[j] = dc * f
	}
}
