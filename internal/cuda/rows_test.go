//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

// rowsDevice is a device whose matrices have bytes behind their ends that must stay as they are.
type rowsDevice struct {
	*cuda.Device
	t *testing.T
}

func openRows(t *testing.T) rowsDevice { return rowsDevice{cudatest.Open(t), t} }

// behind are the bytes behind each matrix. A float32 or a bfloat16 of them is NaN.
var behind = bytes.Repeat([]byte{0xff}, 64)

// upload returns the address of a copy of values.
func upload[T any](d rowsDevice, x []T) cuda.Pointer {
	d.t.Helper()
	b := append(slices.Clone(cuda.Bytes(x)), behind...)
	p, err := d.Alloc(len(b))
	if err != nil {
		d.t.Fatal(err)
	}
	d.Upload(p, b)
	return p
}

// download returns n values, and fails if the bytes behind them have changed.
func download[T any](d rowsDevice, p cuda.Pointer, n int) []T {
	d.t.Helper()
	x := make([]T, n)
	size := len(cuda.Bytes(x))
	b := make([]byte, size+len(behind))
	d.Download(b, p)
	if err := d.Synchronize(); err != nil {
		d.t.Fatal(err)
	}
	if !bytes.Equal(b[size:], behind) {
		d.t.Errorf("values behind the %d of a matrix were written", n)
	}
	copy(cuda.Bytes(x), b)
	return x
}

// empty returns the address of n float32 that are NaN.
func (d rowsDevice) empty(n int) cuda.Pointer {
	d.t.Helper()
	return upload(d, slices.Repeat([]float32{float32(math.NaN())}, n))
}

// store returns the address of values as a type has them, and load returns them.
func (d rowsDevice) store(typ cuda.Type, x []float32) cuda.Pointer {
	d.t.Helper()
	if typ == cuda.Float32 {
		return upload(d, x)
	}
	low := make([]uint16, len(x))
	for i, v := range roundedTo(typ, x) {
		low[i] = uint16(math.Float32bits(v) >> 16)
	}
	return upload(d, low)
}

func (d rowsDevice) load(typ cuda.Type, p cuda.Pointer, n int) []float32 {
	d.t.Helper()
	if typ == cuda.Float32 {
		return download[float32](d, p, n)
	}
	x := make([]float32, n)
	for i, v := range download[uint16](d, p, n) {
		x[i] = math.Float32frombits(uint32(v) << 16)
	}
	return x
}

// emptyOf is empty for a type.
func (d rowsDevice) emptyOf(typ cuda.Type, n int) cuda.Pointer {
	d.t.Helper()
	return d.store(typ, slices.Repeat([]float32{float32(math.NaN())}, n))
}

// roundedTo returns x as a type has it.
func roundedTo(typ cuda.Type, x []float32) []float32 {
	x = slices.Clone(x)
	if typ == cuda.BFloat16 {
		kernel.RoundBFloat16(x)
	}
	return x
}

// normals returns n numbers from a normal distribution.
func normals(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// factors returns what a dropout of n elements multiplies them by.
func factors(key uint64, rate float64, n int) []float32 {
	f := slices.Repeat([]float32{1}, n)
	if rate > 0 {
		kernel.Dropout(f, f, key, rate)
	}
	return f
}

func dropOf(key uint64, rate float64) cuda.Drop {
	if rate == 0 {
		return cuda.Drop{}
	}
	return cuda.NewDrop(key, rate)
}

// close32 and close16 are tolerances for values of about 1 in float32 and bfloat16.
const (
	close32 = 2e-5
	close16 = 1. / 200
)

func tolerance(typ cuda.Type) float64 {
	if typ == cuda.BFloat16 {
		return close16
	}
	return close32
}

// closeTo fails if a value differs from the one expected by more than the tolerance, which is a fraction of it if it is
// above 1.
func closeTo(t *testing.T, what string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		if g := float64(got[i]); !(math.Abs(g-w) <= tolerance*max(1, math.Abs(w))) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, g, w)
		}
	}
}

func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if !bytes.Equal(cuda.Bytes(got), cuda.Bytes(want)) {
		t.Errorf("%s: the bits differ", what)
	}
}

func wide(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

var actTypes = []cuda.Type{cuda.Float32, cuda.BFloat16}

func TestDrop(t *testing.T) {
	d := openRows(t)
	for _, rows := range []int{1, 5} {
		for _, width := range []int{0, 1, 3, 4, 23, 1025, 2048, 3079} {
			x, want := normals(2, rows*width), make([]float32, rows*width)
			p := upload(d, x)
			d.DropGradient(p, cuda.NewDrop(1<<40+5, 0.3), rows, width)
			kernel.Dropout(want, x, 1<<40+5, 0.3)
			sameBits(t, fmt.Sprintf("dropout of [%d %d]", rows, width), download[float32](d, p, len(x)), want)
		}
	}
}

func TestEmbed(t *testing.T) {
	d := openRows(t)
	for _, width := range []int{6, 20, 260} {
		rows := 9
		words, positions, types := normals(1, 11*width), normals(2, 9*width), normals(3, 2*width)
		ids, pos, kinds := make([]int32, rows), make([]int32, rows), make([]int32, rows)
		for i := range rows {
			ids[i], pos[i], kinds[i] = int32(i*7%11), int32(i%5), int32(i%2)
		}
		for parts := range 4 {
			want := make([]float32, rows*width)
			kernel.Gather(want, words, ids, width)
			var positionsAt, typesAt cuda.Pointer
			if parts&1 != 0 {
				positionsAt = upload(d, positions)
				kernel.Gather(want, positions, pos, width)
			}
			if parts&2 != 0 {
				typesAt = upload(d, types)
				kernel.Gather(want, types, kinds, width)
			}
			sum := d.empty(rows * width)
			d.Embed(sum, upload(d, words), upload(d, ids), positionsAt, upload(d, pos), typesAt, upload(d, kinds),
				rows, width)
			sameBits(t, fmt.Sprintf("width %d, parts %d", width, parts), download[float32](d, sum, rows*width), want)
		}
		sum, want := d.empty(rows*width), make([]float32, rows*width)
		d.Embed(sum, upload(d, words), upload(d, ids), 0, 0, upload(d, types), 0, rows, width)
		kernel.Gather(want, words, ids, width)
		kernel.Gather(want, types, make([]int32, rows), width)
		sameBits(t, "one type", download[float32](d, sum, rows*width), want)
	}
}

// geluOf and slopeOf are GELU and its derivative in float64.
func geluOf(x float64) float64 { return x * 0.5 * math.Erfc(-x/math.Sqrt2) }
func slopeOf(x float64) float64 {
	return 0.5*math.Erfc(-x/math.Sqrt2) + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

func TestGELU(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for _, s := range [][3]int{{5, 6, 7}, {7, 512, 512}, {3, 600, 1200}, {35, 20, 20}, {0, 8, 8}} {
			rows, width, stride := s[0], s[1], s[2]
			what := fmt.Sprintf("type %v, %d rows of %d", typ, rows, width)
			x := roundedTo(typ, normals(1, rows*stride))
			for i := range x {
				x[i] *= 2
			}
			want, dense := make([]float64, rows*width), make([]float32, rows*width)
			for i := range want {
				dense[i] = x[i/width*stride+i%width]
				want[i] = geluOf(float64(dense[i]))
			}
			active := d.emptyOf(typ, rows*width)
			d.GELUForward(typ, active, d.store(typ, x), rows, width, stride)
			closeTo(t, "forward, "+what, d.load(typ, active, rows*width), want, tolerance(typ))

			g := roundedTo(typ, normals(2, rows*width))
			sums := make([]float64, width)
			for i := range want {
				want[i] = float64(g[i]) * slopeOf(float64(dense[i]))
				sums[i%width] += want[i]
			}
			gradient, partial := d.store(typ, g), d.empty(cuda.Chunks(rows)*width)
			bias := upload(d, make([]float32, width))
			d.GELUBackward(typ, gradient, partial, d.store(typ, dense), rows, width)
			d.SumPartials(bias, partial, cuda.Chunks(rows), width, width)
			closeTo(t, "backward, "+what, d.load(typ, gradient, rows*width), want, tolerance(typ))
			closeTo(t, "sums, "+what, download[float32](d, bias, width), sums, close32)
			again := d.store(typ, g)
			d.GELUBackward(typ, again, 0, d.store(typ, dense), rows, width)
			sameBits(t, "without sums", d.load(typ, again, rows*width), d.load(typ, gradient, rows*width))
		}
	}
}

func TestGEGLU(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for i, s := range [][2]int{{5, 6}, {7, 6}, {6, 516}, {3, 516}} {
			rows, width, rate := s[0], s[1], float64(i%2)*0.25
			what := fmt.Sprintf("type %v, %d rows of %d", typ, rows, width)
			both, dActive := roundedTo(typ, normals(1, 2*rows*width)), roundedTo(typ, normals(2, rows*width))
			want, dWant := make([]float64, rows*width), make([]float64, 2*rows*width)
			for i, keep := range factors(9, rate, rows*width) {
				at := i/width*2*width + i%width
				x, gate, g := float64(both[at]), float64(both[at+width]), float64(dActive[i]*keep)
				want[i] = geluOf(x) * gate * float64(keep)
				dWant[at], dWant[at+width] = g*gate*slopeOf(x), g*geluOf(x)
			}
			active, gradient := d.emptyOf(typ, rows*width), d.store(typ, both)
			d.GEGLUForward(typ, active, gradient, dropOf(9, rate), rows, width)
			closeTo(t, "forward, "+what, d.load(typ, active, rows*width), want, tolerance(typ))
			d.GEGLUBackward(typ, gradient, d.store(typ, dActive), gradient, dropOf(9, rate), rows, width)
			closeTo(t, "backward, "+what, d.load(typ, gradient, 2*rows*width), dWant, tolerance(typ))
		}
	}
}

func TestColumnSums(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for _, s := range [][3]int{{1, 3, 3}, {40, 6, 9}, {300, 20, 60}, {5, 516, 520}, {5000, 3, 3}} {
			rows, width, stride := s[0], s[1], s[2]
			x, sums := roundedTo(typ, normals(1, rows*stride)), normals(2, width)
			want := wide(sums)
			for i, v := range x {
				if i%stride < width {
					want[i%stride] += float64(v)
				}
			}
			partial, sum := d.empty(cuda.Chunks(rows)*width), upload(d, sums)
			d.ColumnSums(typ, partial, d.store(typ, x), rows, width, stride)
			d.SumPartials(sum, partial, cuda.Chunks(rows), width, width)
			closeTo(t, fmt.Sprintf("%d rows of %d", rows, width), download[float32](d, sum, width), want, close32)
		}
	}
	for rows, want := range map[int]int{0: 0, 1: 1, 16: 1, 17: 2, 8448: 528, 8449: 497, 100000: 527} {
		if got := cuda.Chunks(rows); got != want {
			t.Errorf("Chunks(%d) = %d, want %d", rows, got, want)
		}
	}
}

func TestConversions(t *testing.T) {
	d := openRows(t)
	for _, n := range []int{0, 1, 6, 2048, 2100} {
		x, y := normals(1, n), normals(2, n)
		low := d.emptyOf(cuda.BFloat16, n)
		d.Convert(low, upload(d, x), n)
		sameBits(t, "convert", d.load(cuda.BFloat16, low, n), roundedTo(cuda.BFloat16, x))
		sum := upload(d, x)
		d.Add(sum, upload(d, y), n)
		kernel.Add(x, y)
		sameBits(t, "add", download[float32](d, sum, n), x)
	}
	special := []float32{float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 0}
	low := d.emptyOf(cuda.BFloat16, len(special))
	d.Convert(low, upload(d, special), len(special))
	if got, want := fmt.Sprint(d.load(cuda.BFloat16, low, len(special))), fmt.Sprint(special); got != want {
		t.Errorf("Convert(%s) = %s", want, got)
	}
}

func TestRotate(t *testing.T) {
	d := openRows(t)
	for _, typ := range actTypes {
		for _, s := range [][3]int{{2, 6, 40}, {3, 16, 144}, {2, 64, 384}} {
			heads, width, stride := s[0], s[1], s[2]
			starts, pos := []int{0, 5, 6, 9}, []int32{0, 1, 2, 3, 4, 0, 0, 1, 2}
			rows, all := 9, heads*width
			angles, x := make([]float32, 5*width), roundedTo(typ, normals(1, rows*stride))
			for i := range 5 * width / 2 {
				sin, cos := math.Sincos(float64(i) * 0.37)
				at := i/(width/2)*width + i%(width/2)
				angles[at], angles[at+width/2] = float32(cos), float32(sin)
			}
			for _, direction := range []float32{1, -1} {
				want := slices.Clone(x)
				for part := range 2 {
					dense := make([]float32, 0, rows*all)
					for i := range rows {
						dense = append(dense, x[i*stride+part*all:][:all]...)
					}
					if direction == 1 {
						kernel.Rotate(dense, angles, starts, heads, all)
					} else {
						kernel.RotateBack(dense, angles, starts, heads, all)
					}
					for i := range rows {
						copy(want[i*stride+part*all:][:all], dense[i*all:])
					}
				}
				qkv := d.store(typ, x)
				d.Rotate(typ, qkv, upload(d, angles), upload(d, pos), rows, heads, width, stride, direction)
				got := d.load(typ, qkv, len(x))
				closeTo(t, fmt.Sprintf("type %v, width %d", typ, width), got, wide(want), tolerance(typ))
				sameBits(t, "behind queries and keys", got[8*stride+2*all:], x[8*stride+2*all:])
			}
		}
	}
}

func TestScatterRows(t *testing.T) {
	d := openRows(t)
	for _, width := range []int{6, 20, 132} {
		ids, starts, order := []int32{7, 2, 0, 9}, []int32{0}, []int32{}
		rows := []int32(nil)
		for u, count := range []int{1, 7, 9, 43} {
			for range count {
				order = append(order, int32(len(rows)))
				rows = append(rows, ids[u])
			}
			starts = append(starts, int32(len(rows)))
		}
		table, dx := normals(1, 10*width), normals(2, len(rows)*width)
		want := slices.Clone(table)
		kernel.Scatter(want, dx, rows, width)
		run := func() []float32 {
			p := upload(d, table)
			d.ScatterRows(p, upload(d, dx), upload(d, ids), upload(d, starts), upload(d, order), len(ids), width)
			return download[float32](d, p, len(table))
		}
		got := run()
		closeTo(t, fmt.Sprint("width ", width), got, wide(want), close32)
		sameBits(t, "again", run(), got)
	}
}
