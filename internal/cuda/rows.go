//go:build gpu && linux && (amd64 || arm64)

package cuda

// The launches of the kernels of kernels/rows.cu and kernels/optimizer.cu. Matrices are of float32 unless a method
// takes a Type, which is then that of the activations that its comment names. Pointers are multiples of 16 bytes, and a
// null pointer stands for an operand that is left out where that is said. Widths that are multiples of 4 are fast; all
// others are allowed.

// Drop is a dropout: element i of a matrix becomes 0 if word i%4 of Philox(Key, 0, i/4) is less than Bound, else it is
// multiplied by Scale. The zero Drop changes nothing.
type Drop struct {
	Key   uint64
	Bound uint32
	Scale float32
}

// NewDrop returns the dropout of probability rate of internal/kernel's Dropout.
func NewDrop(key uint64, rate float64) Drop {
	if !(rate >= 0 && rate < 1) {
		panic("cuda: dropout rate is not in [0, 1)")
	}
	return Drop{key, uint32(rate * (1 << 32)), float32(1 / (1 - rate))}
}

const (
	warp       = 32  // threads
	rowThreads = 128 // of a block that has rows, or columns of a chunk of rows
	vector     = 4   // elements that a thread reads at once
)

// Chunks returns how many chunks of rows the sums over that many rows have, and so how many rows the partial sums have
// that NormBackward, GELUBackward and ColumnSums write.
func Chunks(rows int) int { return pieces(rows, chunkOf(rows)) }

// MostChunks is the most chunks that there are: four for each multiprocessor of an H100.
const MostChunks = 528

// chunkOf returns the number of rows of a chunk.
func chunkOf(rows int) int {
	const shortest = 16
	return max(shortest, pieces(rows, MostChunks))
}

// pieces returns how many pieces of some size n elements take.
func pieces(n, size int) int { return (n + size - 1) / size }

// of returns the name of a kernel for activations of type t.
func (t Type) of(kernel string) string {
	if t == BFloat16 {
		return kernel + "_bf16"
	}
	return kernel + "_f32"
}

// launchBlocks queues a kernel with one block for each piece of work; without work it queues nothing.
func (d *Device) launchBlocks(kernel string, grid [3]int, threads int, args ...any) {
	if grid[0] > 0 && grid[1] > 0 && grid[2] > 0 {
		d.Launch(kernel, grid, [3]int{threads, 1, 1}, 0, args...)
	}
}

// Embed writes to each row t of sum [rows width] words[ids[t]] + positions[pos[t]] + types[type[t]]. positions or types
// may be null. Without kinds, each token's type is 0.
func (d *Device) Embed(sum, words, ids, positions, pos, types, kinds Pointer, rows, width int) {
	d.launchBlocks("embed", [3]int{pieces(rows, rowThreads/warp), 1, 1}, rowThreads,
		sum, words, ids, positions, pos, types, kinds, rows, width)
}

// MostWidth is the largest width that LayerNorm's kernels compute: a block has a thread for 4 columns.
const MostWidth = 4096

// normThreads returns the threads of a block of LayerNorm's kernels: whole warps, with a thread for 4 columns.
func normThreads(width int) int {
	if width > MostWidth {
		panic("cuda: LayerNorm of more than 4096 columns")
	}
	return pieces(width, warp*vector) * warp
}

// NormForward writes drop's dropout of LayerNorm(x) to out32 and, as t, to out, and the mean and 1/√(σ²+epsilon) of
// each row of x [rows width] to stats [rows 2]. out32, out, stats and bias may be null; out32 may be x.
func (d *Device) NormForward(t Type, out32, out, stats, x, gain, bias Pointer, epsilon float32, drop Drop,
	rows, width int) {
	d.launchBlocks(t.of("norm_forward"), [3]int{pieces(rows, 4), 1, 1}, normThreads(width),
		out32, out, stats, x, gain, bias, epsilon, drop.Key, drop.Bound, drop.Scale, rows, width)
}

// AddNormForward writes residual + dropout(y + yBias) to sum, which may be residual, and to low, and LayerNorm of it
// and stats as NormForward does. y, low and out are of type t. Without gain, out32 and out get the sum itself. sum,
// low, yBias, bias, out32, out and stats may be null.
func (d *Device) AddNormForward(t Type, out32, out, stats, sum, low, y, yBias Pointer, drop Drop,
	residual, gain, bias Pointer, epsilon float32, rows, width int) {
	d.launchBlocks(t.of("add_norm_forward"), [3]int{pieces(rows, 4), 1, 1}, normThreads(width),
		out32, out, stats, sum, low, y, yBias, drop.Key, drop.Bound, drop.Scale,
		residual, gain, bias, epsilon, rows, width)
}

// NormBackward writes to dx v = g + beside, with g the gradient at LayerNorm's x, given that at its result, dOut, and
// to dropped, as t, drop's dropout of v. x is of type t, too. partial [Chunks(rows) 3·width] gets the sums over the
// rows of each chunk of dOut·(x−μ)·scale, of dOut and of the dropout of v, which SumPartials adds up to the gradients
// of gain, of bias and of a bias in front of the dropout. dx may be dOut or beside. dx, dropped, partial and beside may
// be null. Without gain there is no LayerNorm: g is dOut, and the first two parts of partial are 0.
func (d *Device) NormBackward(t Type, dx, dropped, partial, dOut, x, stats, gain, beside Pointer, drop Drop,
	rows, width int) {
	d.launchBlocks(t.of("norm_backward"), [3]int{Chunks(rows), 1, 1}, normThreads(width),
		dx, dropped, partial, dOut, x, stats, gain, beside, drop.Key, drop.Bound, drop.Scale,
		rows, width, chunkOf(rows))
}

const (
	elementThreads = 256
	elementBlock   = elementThreads * 2 * vector // elements of a block of operations on elements
)

// DropGradient replaces the gradient [rows width] by its dropout.
func (d *Device) DropGradient(gradient Pointer, drop Drop, rows, width int) {
	d.launchBlocks("drop_gradient", [3]int{pieces(rows*width, elementBlock), 1, 1}, elementThreads,
		gradient, drop.Key, drop.Bound, drop.Scale, rows, width)
}

// gateGrid is the grid of operations on rows whose matrices differ in their strides: 4 rows and 512 columns a block.
func gateGrid(rows, width int) [3]int {
	return [3]int{pieces(rows, 4), pieces(width, rowThreads*vector), 1}
}

// chunkGrid is the grid of sums over the rows of chunks: 512 columns a block.
func chunkGrid(rows, width int) [3]int {
	return [3]int{pieces(width, rowThreads*vector), Chunks(rows), 1}
}

// GELUForward writes GELU(raised) to active [rows width]; the rows of raised are stride elements apart. Both are of
// type t.
func (d *Device) GELUForward(t Type, active, raised Pointer, rows, width, stride int) {
	d.launchBlocks(t.of("gelu_forward"), gateGrid(rows, width), rowThreads, active, raised, rows, width, stride)
}

// GELUBackward multiplies gradient [rows width] by GELU's derivative at raised [rows width], both of type t. partial
// [Chunks(rows) width] gets the sums of the products over the rows of each chunk, and may be null.
func (d *Device) GELUBackward(t Type, gradient, partial, raised Pointer, rows, width int) {
	d.launchBlocks(t.of("gelu_backward"), chunkGrid(rows, width), rowThreads,
		gradient, partial, raised, rows, width, chunkOf(rows))
}

// GEGLUForward writes the dropout of GELU(raised)·gate to active [rows width]; both [rows 2·width] has raised and gate
// side by side. They are of type t.
func (d *Device) GEGLUForward(t Type, active, both Pointer, drop Drop, rows, width int) {
	d.launchBlocks(t.of("geglu_forward"), gateGrid(rows, width), rowThreads,
		active, both, drop.Key, drop.Bound, drop.Scale, rows, width)
}

// GEGLUBackward writes to dBoth [rows 2·width] the gradients at both, given dActive [rows width], the gradient at
// GEGLUForward's result. dBoth may be both. They are of type t.
func (d *Device) GEGLUBackward(t Type, dBoth, dActive, both Pointer, drop Drop, rows, width int) {
	d.launchBlocks(t.of("geglu_backward"), gateGrid(rows, width), rowThreads,
		dBoth, dActive, both, drop.Key, drop.Bound, drop.Scale, rows, width)
}

// ColumnSums writes to partial [Chunks(rows) width] the sums over the rows of each chunk of x, of type t, whose rows
// are stride elements apart.
func (d *Device) ColumnSums(t Type, partial, x Pointer, rows, width, stride int) {
	d.launchBlocks(t.of("column_sums"), chunkGrid(rows, width), rowThreads,
		partial, x, rows, width, stride, chunkOf(rows))
}

// SumPartials adds to gradient [width] the first width columns of the rows of partial, which are stride elements apart.
func (d *Device) SumPartials(gradient, partial Pointer, chunks, stride, width int) {
	if chunks > 0 {
		d.launchBlocks("sum_partials", [3]int{pieces(width, warp), 1, 1}, 16*warp,
			gradient, partial, chunks, stride, width)
	}
}

// Convert rounds x [n] to bfloat16.
func (d *Device) Convert(out, x Pointer, n int) { d.elements("convert", n, out, x) }

// Add adds y [n] to x.
func (d *Device) Add(x, y Pointer, n int) { d.elements("add", n, x, y) }

func (d *Device) elements(kernel string, n int, to, from Pointer) {
	d.launchBlocks(kernel, [3]int{pieces(n, elementBlock), 1, 1}, elementThreads, to, from, int64(n))
}

// Rotate rotates the queries, which are the first heads·width columns of qkv, and the keys, the next ones, as
// internal/kernel's Rotate does, by direction 1, or as RotateBack, by -1. qkv is of type t and its rows are stride
// elements apart; row t has position pos[t] and row pos[t] of angles [positions width].
func (d *Device) Rotate(t Type, qkv, angles, pos Pointer, rows, heads, width, stride int, direction float32) {
	d.launchBlocks(t.of("rotate"), [3]int{pieces(rows, rowThreads/warp), 1, 1}, rowThreads,
		qkv, angles, pos, rows, heads, width, stride, direction)
}

// ScatterRows adds to row ids[u] of table [V width], for each u of unique ids, the rows order[starts[u]:starts[u+1]] of
// dx.
func (d *Device) ScatterRows(table, dx, ids, starts, order Pointer, unique, width int) {
	d.launchBlocks("scatter_rows", [3]int{unique, pieces(width, warp*vector), 1}, 8*warp,
		table, dx, ids, starts, order, unique, width)
}

// AdamW makes a step for the weights w [n] with the moments m and v and the gradient g. constants are the
// gradient's scale; 1−β₁; β₂; 1−β₂; the factor of weight decay; the rate divided by 1−β₁ᵗ; the factor 1/√(1−β₂ᵗ) of the
// square root; epsilon. low, which may be null, gets the weights rounded to bfloat16.
func (d *Device) AdamW(w, m, v, g, low Pointer, n int, constants [8]float32) {
	c := constants
	d.launchBlocks("adamw", [3]int{pieces(n, elementThreads*vector), 1, 1}, elementThreads,
		w, m, v, g, low, int64(n), c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7])
}

// squareBlock is the number of elements whose squares a block of Squares sums.
const squareBlock = 1 << 16

// SquareSums returns how many sums Squares writes for n elements.
func SquareSums(n int) int { return pieces(n, squareBlock) }

// Squares writes to partial [SquareSums(n)], of float64, the sums of the squares of g [n].
func (d *Device) Squares(partial, g Pointer, n int) {
	d.launchBlocks("squares", [3]int{SquareSums(n), 1, 1}, elementThreads, partial, g, int64(n))
}

// SumDoubles writes the sum of partial [n] to out [1], both of float64. The sum of none is 0.
func (d *Device) SumDoubles(out, partial Pointer, n int) {
	d.launchBlocks("sum_doubles", [3]int{1, 1, 1}, elementThreads, out, partial, n)
}
