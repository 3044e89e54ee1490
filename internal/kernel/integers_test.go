package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestIntegersOfColumnsMultiplyAsTheirMatrixDoes(t *testing.T) {
	for _, s := range [][3]int{{1, 1, 1}, {5, 3, 2}, {7, 130, 33}, {20, 8*panelDepth + 3, 70}} {
		m, k, n := s[0], s[1], s[2]
		a, b := normal(1, m*k), normal(2, k*n)
		for l := range k {
			b[l*n] = 0 // a column of zeros
		}
		columns := RoundRows(Dense(b, n).T(), n, k)
		inEachIntSet(t, func(t *testing.T) {
			p := Product{M: m, K: k, N: n, A: Dense(a, k), Precision: Int8, Start: StartAtZero}
			var results [2][]float32
			packed := [2]Packed{}
			packed[0].Pack(Dense(b, n), k, n, Int8)
			packed[1].Pack(Dense(repeated(1, (k+5)*(n+3)), n+3), k+5, n+3, Int8) // memory that has been used
			packed[1].PackIntegers(columns, k, n)
			for i := range results {
				p.Packed, p.C = &packed[i], make([]float32, m*n)
				p.Multiply()
				results[i] = p.C
			}
			if !slices.Equal(results[0], results[1]) {
				t.Errorf("m, k, n = %v: other bits than those of the matrix", s)
			}
		})
	}
}

func TestRoundedRowsAreWithinHalfAStep(t *testing.T) {
	const n, k = 37, 53
	x := normal(3, n*k)
	clear(x[4*k : 5*k])
	rows := RoundRows(Dense(x, k), n, k)
	if rows.Scales[4] != 0 || slices.ContainsFunc(rows.Data[4*k:5*k], func(q int8) bool { return q != 0 }) {
		t.Errorf("a row of zeros has scale %v and integers %v", rows.Scales[4], rows.Data[4*k:5*k])
	}
	for i, v := range x {
		scale := rows.Scales[i/k]
		if d := math.Abs(float64(v - scale*float32(rows.Data[i]))); d > 0.5001*float64(scale) {
			t.Fatalf("row %d: %v has become %d times %v", i/k, v, rows.Data[i], scale)
		}
	}
	for i := range n {
		if row := rows.Data[i*k : (i+1)*k]; i != 4 && slices.Max(row) != 127 && slices.Min(row) != -127 {
			t.Errorf("row %d does not use all integers: %v", i, row)
		}
	}
}

func TestGatheredIntegersAreAddedAsTheirValues(t *testing.T) {
	const v, d = 19, 21
	table := RoundRows(Dense(normal(3, v*d), d), v, d)
	values := make([]float32, v*d)
	for i, q := range table.Data {
		values[i] = table.Scales[i/d] * float32(q)
	}
	rows := []int32{18, 0, 3, 3, 7, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	want, got := repeated(0.5, len(rows)*d), repeated(0.5, len(rows)*d)
	gather := func(out []float32) {
		for i, r := range rows {
			for j := range d {
				out[i*d+j] += values[int(r)*d+j]
			}
		}
	}
	gather(want)
	if GatherIntegers(got, table, rows, d); !slices.Equal(got, want) {
		t.Error("other sums than those of the values")
	}
}
