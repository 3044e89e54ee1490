//go:build gpu && linux && (amd64 || arm64)

package cuda

import "fmt"

// Attention is multi-head attention, softmax(scale·Q·Kᵀ)·V (Vaswani et al. 2017), of each text of a batch over its own
// rows, as kernel.Attention computes it on the processor. Its memory is linear in the length of a text: the weights of
// a block of queries and a block of keys are in registers at a time, and the backward pass computes them again (Dao et
// al. 2022, 2023). All sums have a fixed order, and a text has the same bits alone and in any batch.
//
// A row of queries, keys and values has Stride elements: those of head h begin at columns h·Width, (Heads+h)·Width and
// (2·Heads+h)·Width. A row of results has OutStride elements, those of head h from column h·Width on. Pointers are
// multiples of 16 bytes.
type Attention struct {
	Type      Type // of the elements of queries, keys, values and results
	Heads     int
	Width     int     // of a head
	Stride    int     // elements from one row of queries, keys and values to the next
	OutStride int     // elements from one row of results to the next
	Tokens    int     // T, rows of all texts together
	Window    int     // keys of a query are at most so many rows before or after it; 0: no limit
	Scale     float32 // of the logits: 1/√Width
	Drop      Drop    // of the weights; of text b and head h it has the mask b·Heads+h, whose element query·length+key
	Items     AttentionItems
}

// AttentionItems are what the blocks of Attention's kernels work on, in the device's memory. Which kernels a text takes
// depends on its length alone.
type AttentionItems struct {
	Long, Short Pointer // what AttentionTexts returns
	Blocks      int     // of the kernels of long texts, for each head: len(long) / 4
	ShortBlocks int     // of those of short texts: len(short) / (4·8)
}

const (
	attentionRows = 64 // queries or keys of a block of the kernels for long texts
	shortRows     = 16 // of a warp of those for short texts
	shortWarps    = 8  // of a block of them
	shortWidest   = 64 // their widest head
)

// AttentionMasks returns the bytes of memory for the masks of a batch of so many tokens: a bit for each weight of a row
// of the longest short text.
func AttentionMasks(tokens, heads int) int { return shortRows * shortWarps / 8 * tokens * heads }

// AttentionTexts returns the items of texts for attention of a type and width of heads; text b has the rows
// starts[b]:starts[b+1]. An item is four values: the first row of a text, its length, the first of the item's rows of
// the text, and the text's number.
//
// Of long, a block has one item. Of short, texts of at most 128 rows if kernels for them have the type and width, it
// has eight, with all items of one or more texts; those that are left over are zeros. Where there are short items, rows
// of queries and of results must have multiples of 8 elements. Of T rows in all, there are at most 4·T + 28 values.
func AttentionTexts(of Type, width int, starts []int) (long, short []int32) {
	most := 0 // rows of a short text
	if of == BFloat16 && width <= shortWidest && width%8 == 0 {
		most = shortRows * shortWarps
	}
	var bySize [shortWarps + 1][]int // short texts that have so many items
	for b := range len(starts) - 1 {
		length := starts[b+1] - starts[b]
		if length <= most {
			size := pieces(length, shortRows)
			bySize[size] = append(bySize[size], b)
			continue
		}
		long = appendItems(long, starts, b, attentionRows)
	}
	return long, packShort(bySize, starts)
}

// appendItems appends the items of text b, of so many rows each.
func appendItems(items []int32, starts []int, b, rows int) []int32 {
	length := starts[b+1] - starts[b]
	for first := 0; first < length; first += rows {
		items = append(items, int32(starts[b]), int32(length), int32(first), int32(b))
	}
	return items
}

// packShort returns the items of blocks of short texts, given the texts of each number of items: a block gets the
// largest that have room in it, as long as there are any.
func packShort(bySize [shortWarps + 1][]int, starts []int) (items []int32) {
	for {
		room := shortWarps
		for size := shortWarps; size > 0; size-- {
			for size <= room && len(bySize[size]) > 0 {
				items = appendItems(items, starts, bySize[size][0], shortRows)
				bySize[size] = bySize[size][1:]
				room -= size
			}
		}
		if room == shortWarps {
			return items
		}
		items = append(items, make([]int32, 4*room)...)
	}
}

// Forward writes the attention of qkv [T Stride] to context [T OutStride], and to normalizers [Heads T], float32, the
// logarithm of each softmax's denominator, for the backward pass. normalizers may be null.
//
// If masks, of AttentionMasks bytes, is not null, it also writes the dropout's masks of short texts there, which the
// backward pass then need not compute again.
func (a *Attention) Forward(d *Device, context, normalizers, masks, qkv Pointer) {
	a.launchShort(d, "forward", a.shortShared(false), context, normalizers, masks, qkv)
	tiles, keys := a.tile()
	shared := 0
	switch {
	case tiles == 0:
		shared = a.plainWarps() * a.Width * 4
	case a.Type == BFloat16:
		shared = 5 * attentionRows * tiles * 2
	default: // queries, keys or values, weights, bits of the mask
		shared = (attentionRows+keys)*(tiles+4)*4 + attentionRows*(keys+4)*4 + attentionRows*8
	}
	a.launch(d, "forward", shared, context, normalizers, qkv)
}

// Backward writes the gradients of queries, keys and values to dqkv [T Stride], given the gradient dContext of
// Forward's result context, both [T OutStride], and the normalizers and masks that Forward wrote. It also writes to
// delta [Heads T], float32.
func (a *Attention) Backward(d *Device, dqkv, qkv, context, dContext, normalizers, masks, delta Pointer) {
	a.launchShort(d, "backward", a.shortShared(true), dqkv, qkv, context, dContext, normalizers, masks)
	if a.Items.Blocks == 0 {
		return
	}
	a.delta(d, delta, context, dContext)
	a.launch(d, "backward_queries", a.backwardShared(), dqkv, qkv, dContext, normalizers, delta)
	a.launch(d, "backward_keys", a.backwardShared(), dqkv, qkv, dContext, normalizers, delta)
}

// delta writes to delta [Heads T] the product of each row and head of context with its gradient: the sum over a query's
// weights, each times its gradient.
func (a *Attention) delta(d *Device, delta, context, dContext Pointer) {
	const warps = 8
	blocks := pieces(a.Tokens*a.Heads, warps)
	d.Launch(a.Type.of("attention_delta"), [3]int{blocks, 1, 1}, [3]int{warp * warps, 1, 1}, 0,
		delta, context, dContext, a.Tokens, a.Heads, a.Width, a.OutStride)
}

const (
	tiledThreads32 = 256 // of a block of the float32 kernels
	tiledThreads16 = 128 // of a block of the bfloat16 kernels
)

// tile returns the columns of a kernel's tiles, which a head's are padded to, and how many keys the float32 kernels
// have in a tile. Without tiles, for wide heads, columns are 0.
func (a *Attention) tile() (columns, keys int) {
	switch {
	case a.Width <= 32:
		return 32, 64
	case a.Width <= 64:
		return 64, 64
	case a.Width <= 128:
		return 128, 32
	}
	return 0, 0
}

// plainWarps returns the warps of a block of the kernels for wide heads: each has the sums of two rows in shared
// memory.
func (a *Attention) plainWarps() int { return max(1, min(8, sharedMost/(2*4*a.Width))) }

// sharedMost is the shared memory that a block may have, in bytes, on devices of capability 8.6 and 8.9; others have
// more.
const sharedMost = 99 << 10

// backwardShared returns the bytes of shared memory of the backward kernels, at most sharedMost.
func (a *Attention) backwardShared() int {
	tiles, keys := a.tile()
	switch {
	case tiles == 0:
		return a.plainWarps() * 2 * a.Width * 4
	case a.Type == BFloat16: // six tiles, normalizers and deltas
		return 6*attentionRows*tiles*2 + 4*attentionRows*4
	}
	return (2*attentionRows+keys)*(tiles+4)*4 + attentionRows*(keys+4)*4 + attentionRows*8 + 2*attentionRows*4
}

// shortShared returns the bytes of shared memory of the kernels for short texts.
func (a *Attention) shortShared(backward bool) int {
	const rows = shortRows * shortWarps
	const mask = rows*rows/8 + 16
	tiles, _ := a.tile()
	tile := rows * tiles * 2
	if !backward {
		return 3*tile + mask
	}
	gradients := 2 * rows * 64 * 2 // of logits
	if tiles == 64 {
		gradients -= tile // the tile of the values is used again
	}
	return 4*tile + gradients + rows*2*4 + mask + shortWarps*rows*2
}

// launch queues a kernel with a block for each item of long texts and head. first are the kernel's first arguments.
func (a *Attention) launch(d *Device, name string, shared int, first ...any) {
	if a.Items.Blocks == 0 {
		return
	}
	threads, variant := tiledThreads32, "any"
	if a.Type == BFloat16 {
		threads = tiledThreads16
	}
	if tiles, _ := a.tile(); tiles > 0 {
		variant = fmt.Sprint(tiles)
	} else {
		threads = warp * a.plainWarps()
	}
	d.Launch(a.Type.of("attention_"+name)+"_"+variant,
		[3]int{a.Items.Blocks, a.Heads, 1}, [3]int{threads, 1, 1}, shared, a.arguments(first, a.Items.Long)...)
}

// launchShort queues a kernel with a block for each eight items of short texts and head.
func (a *Attention) launchShort(d *Device, name string, shared int, first ...any) {
	if a.Items.ShortBlocks == 0 {
		return
	}
	tiles, _ := a.tile()
	d.Launch(fmt.Sprintf("attention_%s_short_bf16_%d", name, tiles),
		[3]int{a.Items.ShortBlocks, a.Heads, 1}, [3]int{warp * shortWarps, 1, 1}, shared,
		a.arguments(first, a.Items.Short)...)
}

// arguments returns those of a kernel, after the first ones.
func (a *Attention) arguments(first []any, items Pointer) []any {
	return append(first, items, a.Heads, a.Width, a.Stride, a.OutStride, a.Tokens, a.Scale, a.Window,
		a.Drop.Key, a.Drop.Bound, a.Drop.Scale)
}
