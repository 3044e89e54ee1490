//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"slices"
	"unsafe"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/nn"
)

// space is the device's memory for the values of a batch, as far as it has grown. Activations are of the type of the
// products' factors. Each state is float32 too, where activations are bfloat16: norms and sums read that.
type space struct {
	device   *cuda.Device
	tokens   int // that there is room for
	kind     cuda.Type
	training bool // the values of each block are kept
	held     []cuda.Pointer
	failed   error // of an allocation

	words, positions, types lookup // of the embeddings' tables
	items                   cuda.AttentionItems
	identity                cuda.Pointer // [T+1] 0, 1, 2, …
	lists                   cuda.Pointer // the memory of all lists of a batch, int32

	embedded normSpace
	layers   []layerSpace
	x        cuda.Pointer    // [T D] activations that the first block reads
	streams  [2]cuda.Pointer // [T D] float32, where activations are not
	y        cuda.Pointer    // [T D] results of products
	states   []cuda.Pointer  // [T D] float32 after the embeddings and each block, where all layers' are returned
	back     backSpace

	hostLists            []float32  // page-locked memory of the same lists
	listed, sent, loaded int        // how many numbers of it are used, are on the device, and are the lists of load
	uploaded             cuda.Event // after the last copies from page-locked memory
	host, atHost         []float32  // page-locked [T D] of each state that is returned; of a gradient
	sparse               []float32  // [T D] states of which some rows are not zero
	sparseRows           []int      // these rows
	batch                deviceBatch
}

// lookup is the rows of a table that the tokens of a batch look up.
type lookup struct {
	ids                   cuda.Pointer // [T] int32
	unique, starts, order cuda.Pointer // the different ids, ascending; the tokens of id u: order[starts[u]:starts[u+1]]
	count                 int          // of different ids
}

// normSpace is what a norm's backward reads: activations [T D], and [T 2] float32.
type normSpace struct{ sum, stats cuda.Pointer }

// layerSpace is what a block's forward keeps for its backward.
type layerSpace struct {
	joined, context, normalizers cuda.Pointer // [T 3D], [T D]; [heads T] float32
	masks                        cuda.Pointer // of attention's dropout, with activations of bfloat16
	first, second                normSpace
	middle, raised, active       cuda.Pointer // [T D], [T F] or with a gate [T 2F], [T F]
	next                         cuda.Pointer // [T D] activations that the next block reads
}

// backSpace is memory for the gradients of a batch.
type backSpace struct {
	sums    [2]cuda.Pointer // [T D] float32
	normed  cuda.Pointer    // [T D] float32, of a pre-norm network
	dropped cuda.Pointer    // [T D]
	context cuda.Pointer    // [T D]
	raised  cuda.Pointer    // [T 2F] or [T 3D]
	active  cuda.Pointer    // [T F] where there is a gate
	delta   cuda.Pointer    // [heads T] float32
	partial cuda.Pointer    // sums of chunks of rows, float32
}

// deviceBatch is what of a batch the host keeps for its backward pass.
type deviceBatch struct {
	tokens int
	starts []int
	read   []int // the rows of the last states that are read; nil: all
	rows   int   // that products have: those of read, after the last attention of a pass without training
	lowest int   // lowest level that backward goes to
	drops  bool
	tf32   bool // factors of float32 products are rounded to it
}

// alloc returns memory for n values of size bytes; null after a failure.
func (s *space) alloc(n, size int) cuda.Pointer {
	if s.failed != nil {
		return 0
	}
	p, err := s.device.Alloc(n * size)
	if err != nil {
		s.failed = err
		return 0
	}
	s.held = append(s.held, p)
	return p
}

func (s *space) activations(n int) cuda.Pointer {
	if s.kind == cuda.BFloat16 {
		return s.alloc(n, 2)
	}
	return s.alloc(n, 4)
}

func (s *space) free() {
	for _, p := range s.held {
		s.device.FreeMemory(p)
	}
	for _, host := range [][]float32{s.host, s.atHost, s.hostLists} {
		if host != nil {
			s.device.FreeHost(host)
		}
	}
}

// spaceFor returns memory for a batch, a new one where what there is has too little room or another type.
func (r *resident) spaceFor(training bool, tokens, layers int, kind cuda.Type) (*space, error) {
	at := &r.inference
	if training {
		at = &r.training
	}
	all := layers > 1
	if s := *at; s != nil && s.tokens >= tokens && s.kind == kind && (!all || len(s.states) > 1) {
		return s, nil
	}
	room := tokens
	if s := *at; s != nil {
		if err := r.gpu.Synchronize(); err != nil {
			return nil, err
		}
		if s.tokens < tokens { // batches grow: the next one may take more
			room += tokens / 8
		}
		room = max(room, s.tokens)
		s.free()
		*at = nil
	}
	s, err := r.newSpace(training, room, all, kind)
	if err != nil && room > tokens {
		s, err = r.newSpace(training, tokens, all, kind)
	}
	if err == nil {
		*at = s
	}
	return s, err
}

func (r *resident) newSpace(training bool, tokens int, all bool, kind cuda.Type) (*space, error) {
	c, t := r.config, tokens
	s := &space{device: r.gpu, tokens: tokens, kind: kind, training: training}
	s.lists, s.identity = s.alloc(listSize(t), 4), s.alloc(t+1, 4)
	s.x, s.y = s.activations(t*c.Width), s.activations(t*c.Width)
	if kind == cuda.BFloat16 || training {
		s.streams = [2]cuda.Pointer{s.alloc(t*c.Width, 4), s.alloc(t*c.Width, 4)}
	}
	if training {
		s.embedded = normSpace{s.alloc(t*c.Width, 4), s.alloc(2*t, 4)}
		for range r.layers {
			s.layers = append(s.layers, r.newLayerSpace(s))
		}
	} else {
		s.embedded.sum = s.streams[1] // the first block writes it after the norm
		if kind == cuda.Float32 {
			s.embedded.sum = s.y
		}
		s.layers = slices.Repeat([]layerSpace{r.sharedLayerSpace(s)}, len(r.layers))
		for i := 1; i < len(s.layers); i += 2 { // a block's input and result are two memories
			s.layers[i].next = s.x
		}
	}
	if all {
		for range len(r.layers) + 1 {
			s.states = append(s.states, s.alloc(t*c.Width, 4))
		}
	}
	if training {
		s.back = r.newBackSpace(s)
	}
	if err := s.makeHost(t*c.Width, t); err != nil {
		s.free()
		return nil, err
	}
	return s, nil
}

// makeHost allocates page-locked memory, for states of size numbers each and the lists of so many tokens.
func (s *space) makeHost(size, tokens int) (err error) {
	if err = s.failed; err != nil {
		return err
	}
	if s.host, err = s.device.HostFloats(size * max(1, len(s.states))); err != nil {
		return err
	}
	if s.hostLists, err = s.device.HostFloats(listSize(tokens)); err != nil {
		return err
	}
	if s.training {
		s.sparse = make([]float32, size)
		s.atHost, err = s.device.HostFloats(size)
	}
	all := make([]int32, tokens+1)
	for i := range all {
		all[i] = int32(i)
	}
	s.device.Upload(s.identity, cuda.Bytes(all))
	return err
}

func (r *resident) newLayerSpace(s *space) layerSpace {
	c, t := r.config, s.tokens
	raised := t * c.FeedForward
	if c.layout.gated() {
		raised *= 2
	}
	sums := func() normSpace { return normSpace{s.activations(t * c.Width), s.alloc(2*t, 4)} }
	masks := 0
	if s.kind == cuda.BFloat16 {
		masks = cuda.AttentionMasks(t, c.Heads)
	}
	return layerSpace{
		joined: s.activations(3 * t * c.Width), context: s.activations(t * c.Width),
		normalizers: s.alloc(c.Heads*t, 4), masks: s.alloc(masks, 1), first: sums(), second: sums(),
		middle: s.activations(t * c.Width),
		raised: s.activations(raised), active: s.activations(t * c.FeedForward), next: s.activations(t * c.Width),
	}
}

// sharedLayerSpace is the memory of all blocks without training. The feed-forward layer has that of attention, and GELU
// replaces its operand. What is for the backward pass alone is null.
func (r *resident) sharedLayerSpace(s *space) layerSpace {
	c, t := r.config, s.tokens
	const aligned = 128 // numbers
	states, inner := t*c.Width, t*c.FeedForward
	context := (3*states + aligned - 1) / aligned * aligned
	active, room := 0, max(context+states, inner)
	if c.layout.gated() {
		active = (2*inner + aligned - 1) / aligned * aligned
		room = max(context+states, active+inner)
	}
	all := s.activations(room)
	at := func(number int) cuda.Pointer { return all + cuda.Pointer(number*s.kind.Bytes()) }
	l := layerSpace{joined: all, context: at(context), normalizers: s.alloc(c.Heads*t, 4),
		middle: s.activations(states), raised: all, active: at(active), next: s.activations(states)}
	if s.kind == cuda.Float32 && c.layout.preNorm() { // the next sum reads it
		l.first.sum, l.second.sum = s.activations(states), s.activations(states)
	}
	return l
}

func (r *resident) newBackSpace(s *space) backSpace {
	c, t := r.config, s.tokens
	wide, gated := max(c.FeedForward, 3*c.Width), 0
	if c.layout.gated() {
		wide, gated = max(2*c.FeedForward, 3*c.Width), c.FeedForward
	}
	b := backSpace{ // the forward pass does not need its own any more
		sums: s.streams, dropped: s.y,
		context: s.activations(t * c.Width), raised: s.activations(t * wide),
		delta:   s.alloc(c.Heads*t, 4),
		partial: s.alloc(cuda.MostChunks*max(3*c.Width, 2*c.FeedForward), 4),
	}
	if gated > 0 {
		b.active = s.activations(t * gated)
	}
	if c.layout.preNorm() {
		b.normed = s.alloc(t*c.Width, 4)
	}
	return b
}

// listSize returns the most integers that the lists of a batch have: for each token four of each table, items
// of attention, and the rows of two copies.
func listSize(tokens int) int { return (3*4+4+2)*(tokens+1) + 32 }

// put adds a list to those of the batch, and returns where it is on the device after send.
func (s *space) put(list []int32) cuda.Pointer {
	at := s.listed
	s.listed += len(list)
	copy(unsafe.Slice((*int32)(unsafe.Pointer(&s.hostLists[at])), len(list)), list)
	return s.lists + cuda.Pointer(4*at)
}

// send copies the lists that were put since the last call to the device.
func (s *space) send() {
	s.device.Upload(s.lists+cuda.Pointer(4*s.sent), cuda.Bytes(s.hostLists[s.sent:s.listed]))
	s.sent = s.listed
}

// putRows adds the rows of a table [size …] that tokens look up, and in training the tokens of each row.
func (s *space) putRows(l *lookup, rows []int32, size int) {
	l.ids = s.put(rows)
	if s.training {
		unique, starts, order := tokensOf(rows, size)
		l.count = len(unique)
		l.unique, l.starts, l.order = s.put(unique), s.put(starts), s.put(order)
	}
}

// load copies the lists of a batch to the device. width is that of a head.
func (s *space) load(e *embeddings, tokens corpus.Tokens, width int) {
	starts := tokens.Rows.Starts
	s.device.Wait(s.uploaded)
	s.batch = deviceBatch{tokens: len(tokens.IDs), starts: starts, rows: len(tokens.IDs)}
	s.listed, s.sent = 0, 0
	s.putRows(&s.words, tokens.IDs, e.words.Shape[0])
	positions := make([]int32, 0, len(tokens.IDs))
	for text := range tokens.Rows.Texts() {
		positions = e.appendPositions(positions, tokens.IDs[starts[text]:starts[text+1]])
	}
	places := len(tokens.IDs) // rotary
	if e.positions != nil {
		places = e.positions.Shape[0]
	}
	s.putRows(&s.positions, positions, places)
	if e.types != nil {
		s.putRows(&s.types, e.appendTypes(nil, tokens.Rows.TokenTypes()), e.types.Shape[0])
	}
	long, short := cuda.AttentionTexts(s.kind, width, starts)
	s.items = cuda.AttentionItems{
		Long: s.put(long), Blocks: len(long) / 4, Short: s.put(short), ShortBlocks: len(short) / 32,
	}
	s.send()
	s.loaded, s.uploaded = s.listed, s.device.Record()
}

// tokensOf returns the different rows of a table of size rows that tokens look up, ascending, and the tokens that look
// up each: order[starts[u]:starts[u+1]], ascending.
func tokensOf(rows []int32, size int) (unique, starts, order []int32) {
	counts := make([]int32, size)
	for _, row := range rows {
		counts[row]++
	}
	at := int32(0)
	for row, n := range counts {
		if n > 0 {
			unique, starts = append(unique, int32(row)), append(starts, at)
			counts[row] = at
			at += n
		}
	}
	order = make([]int32, len(rows))
	for token, row := range rows {
		order[counts[row]] = int32(token)
		counts[row]++
	}
	return unique, append(starts, at), order
}

// drop returns the device's form of a dropout.
func (d dropout) drop(p *nn.Pass, drops bool) cuda.Drop {
	if !drops || d.rate == 0 {
		return cuda.Drop{}
	}
	return cuda.NewDrop(p.Key(d.place), d.rate)
}
