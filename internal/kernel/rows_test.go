package kernel

import (
	"math"
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

func TestRotate(t *testing.T) {
	starts, heads, width := []int{0, 3, 3, 40}, 2, 12
	const half = 3
	angles := make([]float32, 40*2*half)
	for i := range 40 {
		for l := range half {
			sin, cos := math.Sincos(float64(i) / float64(l+1))
			angles[i*2*half+l], angles[i*2*half+half+l] = float32(cos), float32(sin)
		}
	}
	x := normal(1, 40*width)
	want := make([]float64, len(x))
	for row := range 40 {
		position := row
		if row >= 3 {
			position = row - 3
		}
		for h := range heads {
			for l := range half {
				at := row*width + h*2*half + l
				sin, cos := math.Sincos(float64(position) / float64(l+1))
				a, b := float64(x[at]), float64(x[at+half])
				want[at], want[at+half] = a*cos-b*sin, a*sin+b*cos
			}
		}
	}
	got := slices.Clone(x)
	Rotate(got, angles, starts, heads, width)
	near(t, "Rotate", got, want, 1e-6)
	same(t, "Rotate", func() []float32 { y := slices.Clone(x); Rotate(y, angles, starts, heads, width); return y })
	RotateBack(got, angles, starts, heads, width)
	near(t, "RotateBack", got, float64s(x), 1e-6)
}
