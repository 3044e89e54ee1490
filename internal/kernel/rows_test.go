package kernel

import (
	"slices"
	"testing"
)

func TestRows(t *testing.T) { inEachSet(t, testRows) }

func testRows(t *testing.T) {
	const rows, d = 50, 70
	x := normal(1, rows*d)
	names := make([]int32, rows)
	for i := range names {
		names[i] = int32(i * i % 7) // with duplicate indices
	}

	table := normal(2, 7*d)
	out := make([]float32, rows*d)
	Gather(out, table, names, d)
	for i, r := range names {
		if got, want := out[i*d:(i+1)*d], table[r*d:(r+1)*d]; !slices.Equal(got, want) {
			t.Errorf("Gather: row %d is %v, want %v", i, got, want)
		}
	}

	want := slices.Clone(table)
	for i, r := range names {
		for j := range d {
			want[int(r)*d+j] += x[i*d+j]
		}
	}
	Scatter(table, x, names, d)
	if !slices.Equal(table, want) {
		t.Errorf("Scatter does not add rows first to last")
	}
	same(t, "Scatter", func() []float32 { s := make([]float32, 7*d); Scatter(s, x, names, d); return s })

	sum, want := normal(3, d), normal(3, d)
	for chunk := range slices.Chunk(x, 32*d) {
		part := make([]float32, d)
		for i, v := range chunk {
			part[i%d] += v
		}
		for j, v := range part {
			want[j] += v
		}
	}
	SumRows(sum, x)
	if !slices.Equal(sum, want) {
		t.Errorf("SumRows does not add rows of chunks, and then chunks, first to last")
	}
	same(t, "SumRows", func() []float32 { s := make([]float32, d); SumRows(s, x); return s })
	Repeat(out, sum)
	if want := slices.Repeat(sum, rows); !slices.Equal(out, want) {
		t.Errorf("Repeat = %v, want %v", out, want)
	}
	want = slices.Clone(out)
	for i, v := range x {
		want[i] += v
	}
	Add(out, x)
	if !slices.Equal(out, want) {
		t.Errorf("Add = %v, want %v", out, want)
	}
}
