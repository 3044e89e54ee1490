package kernel

import (
	"math"
	"slices"
	"testing"
)

// FuzzProducts compares products of any small shape, with operands anywhere in memory, with the formula in float64. A
// sum of k products of numbers of which none is larger than 1 differs by at most k roundings of k.
func FuzzProducts(f *testing.F) {
	f.Add(uint8(1), uint8(1), uint8(1), uint8(0), uint8(0))
	f.Add(uint8(70), uint8(70), uint8(70), uint8(0xff), uint8(3))
	f.Add(uint8(7), uint8(64), uint8(17), uint8(0x1b), uint8(8))
	f.Fuzz(func(t *testing.T, m8, k8, n8, offsets, seed uint8) {
		m, k, n := int(m8)%70+1, int(k8)%70+1, int(n8)%70+1
		at := func(i int, x []float32) []float32 { // a copy that begins 0 to 3 values after a line of the cache
			o := int(offsets>>(2*i)) & 3
			return append(make([]float32, o, o+len(x)+8), x...)[o : o+len(x)]
		}
		small := func(i uint64, n int) []float32 {
			x := normal(uint64(seed)*8+i, n)
			for j, v := range x {
				x[j] = float32(math.Tanh(float64(v)))
			}
			return x
		}
		a, b, c := at(0, small(1, m*k)), at(1, small(2, k*n)), small(3, m*n)
		bias, residual, x := at(3, small(4, n)), at(2, small(5, m*n)), at(3, small(6, m*n))
		for name, p := range map[string]Product{
			"A·B":        {A: Dense(a, k), B: Dense(b, n)},
			"A·Bᵀ, bias": {A: Dense(a, k), B: Dense(transposed(b, k, n), k).T(), Start: StartAtBias, Bias: bias},
			"Aᵀ·B":       {A: Dense(transposed(a, m, k), m).T(), B: Dense(b, n), Start: StartAtZero},
			"A·B, GELU":  {A: Dense(a, k), B: Dense(b, n), After: Epilogue{GELU: make([]float32, m*n)}},
			"A·B, slope": {A: Dense(a, k), B: Dense(b, n), After: Epilogue{GELUGradient: x}},
			"A·B, drop, plus": {A: Dense(a, k), B: Dense(b, n),
				After: Epilogue{Dropout: Dropped{Key: 3, Rate: 0.3}, Residual: residual}},
		} {
			p.M, p.K, p.N = m, k, n
			want, wantGELU := formulaProduct(p, c)
			bound := 1.5 * float64(k+2) * float64(k+2) * math.Pow(2, -24)
			chosen := use
			defer func() { use = chosen }()
			for _, use = range available() {
				padded := append(at(2, c), 1, 2, 3, 4) // values after the end stay
				p.C = padded[:m*n]
				p.Multiply()
				if !slices.Equal(padded[m*n:], []float32{1, 2, 3, 4}) {
					t.Fatalf("%s %s of %d, %d, %d writes beyond the result", use.name, name, m, k, n)
				}
				near(t, use.name+" "+name, p.C, want, bound)
				near(t, use.name+" "+name, p.After.GELU, wantGELU, bound)
			}
		}
	})
}

// formulaProduct is the formula of a product of float32, with c as C before it: C and GELU after it.
func formulaProduct(p Product, c []float32) (out, gelu []float64) {
	after := &p.After
	drop := newMask(after.Dropout.Key, after.Dropout.Rate)
	for i := range c {
		var sum float64
		switch p.Start {
		case StartAtC:
			sum = float64(c[i])
		case StartAtBias:
			sum = float64(p.Bias[i%p.N])
		}
		for l := range p.K {
			x, y := p.A.Data[i/p.N*p.A.Row+l*p.A.Col], p.B.Data[l*p.B.Row+i%p.N*p.B.Col]
			sum += float64(x) * float64(y)
		}
		if after.GELU != nil {
			gelu = append(gelu, plainGELU([]float64{sum})...)
		}
		if after.GELUGradient != nil {
			sum *= plainSlope(float64(after.GELUGradient[i]))
		}
		if after.Dropout.Rate > 0 {
			sum /= 1 - after.Dropout.Rate
			if !drop.keeps(i) {
				sum = 0
			}
		}
		if after.Residual != nil {
			sum += float64(after.Residual[i])
		}
		out = append(out, sum)
	}
	return out, gelu
}

// FuzzAttention compares attention over texts of any small lengths with the formula in float64, forward and
// backward.
func FuzzAttention(f *testing.F) {
	f.Add(uint8(1), uint8(1), uint8(1), uint8(1), false)
	f.Add(uint8(70), uint8(0), uint8(3), uint8(33), true)
	f.Add(uint8(16), uint8(49), uint8(2), uint8(16), true)
	f.Fuzz(func(t *testing.T, first, second, heads8, d8 uint8, drops bool) {
		t1, t2, heads, d := int(first)%71, int(second)%71, int(heads8)%4+1, int(d8)%70+1
		a := Attention{Starts: []int{0, t1, t1 + t2}, Heads: heads, Width: heads * d, Key: 9}
		if drops {
			a.Dropout = 0.2
		}
		n := (t1 + t2) * a.Width
		q, k, v, dOut := normal(1, n), normal(2, n), normal(3, n), normal(4, n)
		f := attentionOf(a, q, k, v, dOut)
		want := slices.Concat(f.out, f.dq, f.dk, f.dv)
		largest := 1.0
		for _, w := range want {
			largest = max(largest, math.Abs(w))
		}
		chosen := use
		defer func() { use = chosen }()
		for _, use = range available() {
			got, normalizers := make([]float32, 4*n), make([]float32, heads*(t1+t2))
			a.Forward(got[:n], normalizers, q, k, v)
			a.Backward(got[n:2*n], got[2*n:3*n], got[3*n:], q, k, v, got[:n], normalizers, dOut)
			near(t, use.name, got, want, 1e-5*largest)
		}
	})
}
