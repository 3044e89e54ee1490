//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

// attentionLengths are those of texts around the sizes of fragments and of blocks.
var attentionLengths = []int{1, 2, 7, 16, 33, 64, 65, 130, 128, 127, 100}

// attentionCase is attention of a batch.
type attentionCase struct {
	of           cuda.Type
	heads, width int // of a head
	window       int
	rate         float64
	pad          int // elements beside those of a row
}

func (c attentionCase) String() string {
	name := "float32"
	if c.of == cuda.BFloat16 {
		name = "bfloat16"
	}
	return fmt.Sprintf("%s, %d heads of %d, window %d, dropout %v, rows padded by %d", name, c.heads, c.width, c.window,
		c.rate, c.pad)
}

const attentionKey = 77 // of dropouts

// attentionStates are the operands and results of attention, [T heads·width] each but normalizers [heads T].
type attentionStates struct {
	q, k, v, dOut                    []float32
	context, normalizers, dq, dk, dv []float32
}

// newAttentionStates returns random operands, which have the type's precision.
func newAttentionStates(c attentionCase, seed uint64, rows int) *attentionStates {
	rng := rand.New(rand.NewPCG(seed, 1))
	random := func() []float32 {
		x := make([]float32, rows*c.heads*c.width)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
			if c.of == cuda.BFloat16 {
				x[i] = attentionRound(x[i])
			}
		}
		return x
	}
	return &attentionStates{q: random(), k: random(), v: random(), dOut: random()}
}

// attentionRound rounds to bfloat16, ties to even.
func attentionRound(x float32) float32 {
	bits := math.Float32bits(x)
	if x != x {
		return x
	}
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}

// rowsOf returns the operands of rows first … last-1.
func (s *attentionStates) rowsOf(first, last, width int) *attentionStates {
	part := func(x []float32) []float32 { return x[first*width : last*width] }
	return &attentionStates{q: part(s.q), k: part(s.k), v: part(s.v), dOut: part(s.dOut)}
}

// attentionStarts returns where texts of the lengths begin, and after these the number of all rows.
func attentionStarts(lengths []int) []int {
	starts := []int{0}
	for _, n := range lengths {
		starts = append(starts, starts[len(starts)-1]+n)
	}
	return starts
}

// onProcessor sets the results of s to those of package kernel.
func (s *attentionStates) onProcessor(c attentionCase, starts []int) {
	a := kernel.Attention{Starts: starts, Heads: c.heads, Width: c.heads * c.width, Dropout: c.rate, Key: attentionKey,
		Window: c.window}
	results := func() []float32 { return make([]float32, len(s.q)) }
	s.context, s.dq, s.dk, s.dv = results(), results(), results(), results()
	s.normalizers = make([]float32, c.heads*starts[len(starts)-1])
	a.Forward(s.context, s.normalizers, s.q, s.k, s.v)
	a.Backward(s.dq, s.dk, s.dv, s.q, s.k, s.v, s.context, s.normalizers, s.dOut)
}

// attentionMemory is a matrix in the device's memory: rows of values of a type, and NaN between them.
type attentionMemory struct {
	of           cuda.Type
	at           cuda.Pointer
	rows, stride int
	d            *cuda.Device
	t            *testing.T
}

func newAttentionMemory(t *testing.T, d *cuda.Device, of cuda.Type, rows, stride int) attentionMemory {
	t.Helper()
	at, err := d.Alloc(rows * stride * of.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.FreeMemory(at) })
	return attentionMemory{of, at, rows, stride, d, t}
}

// set writes the parts, [rows width] each, beside each other, and NaN after them.
func (m attentionMemory) set(width int, parts ...[]float32) {
	all := slices.Repeat([]float32{float32(math.NaN())}, m.rows*m.stride)
	for p, part := range parts {
		for i := range m.rows {
			copy(all[i*m.stride+p*width:], part[i*width:(i+1)*width])
		}
	}
	if m.of == cuda.Float32 {
		m.d.Upload(m.at, cuda.Bytes(all))
		return
	}
	low := make([]uint16, len(all))
	for i, x := range all {
		low[i] = uint16(math.Float32bits(attentionRound(x)) >> 16)
	}
	m.d.Upload(m.at, cuda.Bytes(low))
}

// get returns the columns width·part … width·(part+1).
func (m attentionMemory) get(width, part int) []float32 {
	m.t.Helper()
	all, low := make([]float32, m.rows*m.stride), make([]uint16, m.rows*m.stride)
	if m.of == cuda.Float32 {
		m.d.Download(cuda.Bytes(all), m.at)
	} else {
		m.d.Download(cuda.Bytes(low), m.at)
	}
	if err := m.d.Synchronize(); err != nil {
		m.t.Fatal(err)
	}
	if m.of == cuda.BFloat16 {
		for i, x := range low {
			all[i] = math.Float32frombits(uint32(x) << 16)
		}
	}
	out := make([]float32, 0, m.rows*width)
	for i := range m.rows {
		out = append(out, all[i*m.stride+part*width:][:width]...)
	}
	return out
}

// onDevice sets the results of s to those of the device.
func (s *attentionStates) onDevice(t *testing.T, d *cuda.Device, c attentionCase, starts []int) {
	t.Helper()
	rows, width := starts[len(starts)-1], c.heads*c.width
	qkv := newAttentionMemory(t, d, c.of, rows, 3*width+c.pad)
	dqkv := newAttentionMemory(t, d, c.of, rows, 3*width+c.pad)
	context := newAttentionMemory(t, d, c.of, rows, width+c.pad)
	dContext := newAttentionMemory(t, d, c.of, rows, width+c.pad)
	normalizers := newAttentionMemory(t, d, cuda.Float32, c.heads, rows)
	masks := newAttentionMemory(t, d, cuda.Float32, cuda.AttentionMasks(rows, c.heads)/4, 1)
	delta := newAttentionMemory(t, d, cuda.Float32, c.heads, rows)
	long, short := cuda.AttentionTexts(c.of, c.width, starts)
	items := newAttentionMemory(t, d, cuda.Float32, len(long)+len(short), 1)
	d.Upload(items.at, cuda.Bytes(slices.Concat(short, long)))
	qkv.set(width, s.q, s.k, s.v)
	dContext.set(width, s.dOut)

	a := cuda.Attention{Type: c.of, Heads: c.heads, Width: c.width, Stride: qkv.stride, OutStride: context.stride,
		Tokens: rows, Window: c.window, Scale: float32(1 / math.Sqrt(float64(c.width))),
		Drop: cuda.NewDrop(attentionKey, c.rate),
		Items: cuda.AttentionItems{Short: items.at, ShortBlocks: len(short) / 32,
			Long: items.at + cuda.Pointer(4*len(short)), Blocks: len(long) / 4}}
	a.Forward(d, context.at, 0, 0, qkv.at)
	inference := context.get(width, 0)
	d.Clear(context.at, rows*context.stride*c.of.Bytes())
	a.Forward(d, context.at, normalizers.at, masks.at, qkv.at)
	a.Backward(d, dqkv.at, qkv.at, context.at, dContext.at, normalizers.at, masks.at, delta.at)
	s.context, s.normalizers = context.get(width, 0), normalizers.get(rows, 0)
	s.dq, s.dk, s.dv = dqkv.get(width, 0), dqkv.get(width, 1), dqkv.get(width, 2)
	if !slices.Equal(cuda.Bytes(inference), cuda.Bytes(s.context)) {
		t.Errorf("%v: Forward without normalizers differs", c)
	}
}

// results returns the results by their names.
func (s *attentionStates) results() map[string][]float32 {
	return map[string][]float32{"context": s.context, "dq": s.dq, "dk": s.dk, "dv": s.dv, "normalizers": s.normalizers}
}

func TestAttentionIsTheProcessors(t *testing.T) {
	d := cudatest.Open(t)
	var cases []attentionCase
	for _, of := range []cuda.Type{cuda.Float32, cuda.BFloat16} {
		cases = append(cases,
			attentionCase{of, 2, 64, 0, 0, 0},
			attentionCase{of, 2, 64, 5, 0.3, 8},
			attentionCase{of, 1, 64, 64, 0.1, 8},
			attentionCase{of, 2, 16, 0, 0.3, 0},
			attentionCase{of, 3, 20, 9, 0.3, 1}, // rows that are not aligned
			attentionCase{of, 1, 32, 16, 0, 0},
			attentionCase{of, 1, 96, 0, 0.3, 0},
			attentionCase{of, 1, 128, 17, 0.3, 0},
			attentionCase{of, 1, 132, 7, 0.3, 2}, // wider than tiles
			attentionCase{of, 3, 5, 0, 0, 0})
	}
	for _, c := range cases {
		t.Run(c.String(), func(t *testing.T) {
			starts := attentionStarts(attentionLengths)
			got := newAttentionStates(c, 1, starts[len(starts)-1])
			want := newAttentionStates(c, 1, starts[len(starts)-1])
			got.onDevice(t, d, c, starts)
			want.onProcessor(c, starts)
			limit := 1e-5
			if c.of == cuda.BFloat16 {
				limit = 2e-2 // a weight, its gradient and each result are rounded to 8 bits
			}
			for name, x := range got.results() {
				attentionNear(t, name, x, want.results()[name], limit)
			}
		})
	}
}

// attentionNear reports the largest difference, if it is over limit times the largest value.
func attentionNear(t *testing.T, name string, got, want []float32, limit float64) {
	t.Helper()
	largest, at := 0.0, -1
	top := 0.0
	for i := range want {
		top = max(top, math.Abs(float64(want[i])))
		if diff := math.Abs(float64(got[i]) - float64(want[i])); !(diff <= largest) {
			largest, at = diff, i
			if diff != diff {
				break
			}
		}
	}
	if !(largest <= limit*top) {
		t.Errorf("%s[%d] = %v, want %v; the largest value is %v", name, at, got[at], want[at], top)
	}
}

func TestAttentionOfATextIsTheSameInABatch(t *testing.T) {
	d := cudatest.Open(t)
	for _, c := range []attentionCase{
		{cuda.Float32, 2, 16, 0, 0, 0}, {cuda.Float32, 2, 16, 9, 0, 0}, {cuda.Float32, 1, 160, 9, 0, 0},
		{cuda.BFloat16, 2, 16, 0, 0, 0}, {cuda.BFloat16, 2, 64, 9, 0, 0}, {cuda.BFloat16, 1, 160, 9, 0, 0},
	} {
		t.Run(c.String(), func(t *testing.T) {
			starts, width := attentionStarts(attentionLengths), c.heads*c.width
			all := newAttentionStates(c, 2, starts[len(starts)-1])
			all.onDevice(t, d, c, starts)
			for b := range attentionLengths {
				first, last := starts[b], starts[b+1]
				alone := all.rowsOf(first, last, width)
				alone.onDevice(t, d, c, []int{0, last - first})
				alone.normalizers = nil
				for name, got := range alone.results() {
					if got != nil && !slices.Equal(got, all.results()[name][first*width:last*width]) {
						t.Errorf("%s of the text of %d tokens differs alone", name, last-first)
					}
				}
			}
		})
	}
}

func TestAttentionNaNStaysInItsText(t *testing.T) {
	d := cudatest.Open(t)
	nan := float32(math.NaN())
	for _, of := range []cuda.Type{cuda.Float32, cuda.BFloat16} {
		for _, width := range []int{16, 20, 160} {
			c := attentionCase{of, 1, width, 0, 0.3, 0}
			lengths := []int{7, 40, 70}
			starts := attentionStarts(lengths)
			s := newAttentionStates(c, 3, starts[3])
			for i := starts[1] * width; i < starts[2]*width; i++ {
				s.q[i], s.k[i], s.v[i], s.dOut[i] = nan, nan, nan, nan
			}
			s.onDevice(t, d, c, starts)
			s.normalizers = nil
			for name, x := range s.results() {
				for i, v := range x {
					inside := i >= starts[1]*width && i < starts[2]*width
					if inside != (v != v) {
						t.Fatalf("%v: %s[%d %d] = %v; NaN are rows %d to %d", c, name, i/width, i%width, v,
							starts[1], starts[2])
					}
				}
			}
		}
	}
}

func TestAttentionNaNOfAKeyIsInAllQueriesThatReadIt(t *testing.T) {
	d := cudatest.Open(t)
	for _, of := range []cuda.Type{cuda.Float32, cuda.BFloat16} {
		c := attentionCase{of, 1, 16, 0, 0, 0}
		s := newAttentionStates(c, 3, 70)
		s.k[69*16] = float32(math.NaN())
		s.onDevice(t, d, c, []int{0, 70})
		for i, v := range s.context {
			if v == v {
				t.Fatalf("%v: context[%d] = %v, want NaN", c, i, v)
			}
		}
	}
}

func TestAttentionTexts(t *testing.T) {
	starts := []int{0, 3, 3, 133, 233, 234, 299}
	long, short := cuda.AttentionTexts(cuda.Float32, 64, starts[:4])
	want := []int32{0, 3, 0, 0, 3, 130, 0, 2, 3, 130, 64, 2, 3, 130, 128, 2}
	if !slices.Equal(long, want) || short != nil {
		t.Errorf("float32: AttentionTexts = %v, %v, want %v", long, short, want)
	}
	long, short = cuda.AttentionTexts(cuda.BFloat16, 64, starts)
	if want = want[4:]; !slices.Equal(long, want) {
		t.Errorf("long = %v, want %v", long, want)
	}
	want = nil // texts 3 and 0, then 5 and 4
	for i := range int32(7) {
		want = append(want, 133, 100, 16*i, 3)
	}
	want = append(want, 0, 3, 0, 0)
	for i := range int32(5) {
		want = append(want, 234, 65, 16*i, 5)
	}
	want = append(want, 233, 1, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0)
	if !slices.Equal(short, want) {
		t.Errorf("short = %v, want %v", short, want)
	}
}

func TestAttentionTextsPacksEachTextIntoABlock(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for range 200 {
		lengths := make([]int, rng.IntN(40))
		for b := range lengths {
			lengths[b] = rng.IntN(150)
		}
		starts := attentionStarts(lengths)
		long, short := cuda.AttentionTexts(cuda.BFloat16, 64, starts)
		if n := len(long) + len(short); n > 4*starts[len(lengths)]+28 || len(short)%32 != 0 {
			t.Fatalf("lengths %v: %d values of long texts, %d of short", lengths, len(long), len(short))
		}
		next, block := make([]int32, len(lengths)), make([]int, len(lengths)) // rows that have had items; a block
		for i := 0; i < len(short); i += 4 {
			item := short[i : i+4]
			b := item[3]
			if item[1] == 0 {
				continue
			}
			before := []int32{item[0], item[1], item[2] - 16, b}
			if item[2] > 0 && (block[b] != i/32 || !slices.Equal(short[i-4:i], before)) {
				t.Fatalf("lengths %v: item %d is %v after %v", lengths, i/4, item, short[i-4:i])
			}
			if int(item[0]) != starts[b] || int(item[1]) != lengths[b] || lengths[b] > 128 || item[2] != next[b] {
				t.Fatalf("lengths %v: item %d is %v", lengths, i/4, item)
			}
			next[b], block[b] = item[2]+16, i/32
		}
		for b, n := range lengths {
			if n <= 128 && int(next[b]) < n {
				t.Fatalf("lengths %v: text %d has %d rows in items", lengths, b, next[b])
			}
		}
	}
}
