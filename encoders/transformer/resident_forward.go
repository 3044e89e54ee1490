//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"errors"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// Encode implements encoders.Encoder. In training, too, the states of rows that are not read may be left out: they are
// zeros.
func (r *resident) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if err := r.check(tokens); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, layers, err := r.spaceIn(mode, p.Training, len(tokens.IDs))
	if err != nil {
		return nil, err
	}
	s.load(&r.embeddings, tokens, r.config.Width/r.config.Heads)
	s.batch.lowest, s.batch.drops, s.batch.tf32 = len(r.levels), p.Training, mode.TF32
	if p.Training {
		s.batch.lowest = encoders.LowestLearning(r.levels, (*nn.Param).Learns)
		r.owner = p
	}
	if layers == 1 && mode.Read != nil && len(mode.Read) < len(tokens.IDs) && r.config.Width%2 == 0 {
		s.batch.read = mode.Read
	}
	if err := r.loadAngles(tokens.Rows.Starts); err != nil {
		return nil, err
	}
	last := r.forward(p, s, layers > 1)
	return s.download(p, last, layers, r.config.Width)
}

// reserve is encoders.Resident.Reserve.
func (r *resident) reserve(tokens int, mode encoders.Mode) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _, err := r.spaceIn(mode, true, tokens)
	return err
}

// spaceIn returns memory for a batch in a mode, and of how many levels the states are returned.
func (r *resident) spaceIn(mode encoders.Mode, training bool, tokens int) (s *space, layers int, err error) {
	kind := cuda.Float32
	switch mode.Precision {
	case nn.BFloat16:
		kind = cuda.BFloat16
	case nn.Int8:
		return nil, 0, errors.New("the device computes in float32 and bfloat16; want precision: bf16, or device: cpu")
	}
	layers = 1
	if mode.Layers == nn.AllLayers {
		layers = len(r.levels)
	}
	if err = r.hold(kind); err == nil {
		s, err = r.spaceFor(training, tokens, layers, kind)
	}
	return s, layers, err
}

// forward queues all layers, and returns the last states [T D], float32; without training, of the rows alone that are
// read. With all the states of each level are copied.
func (r *resident) forward(p *nn.Pass, s *space, all bool) cuda.Pointer {
	t, width := s.batch.tokens, r.config.Width
	e := r.embedded
	r.gpu.Embed(s.embedded.sum, r.at(e.words), s.words.ids, r.at(e.positions), s.positions.ids, r.at(e.types),
		s.types.ids, t, width)
	residual, wide := s.wide(s.streams[0], s.x)
	r.gpu.NormForward(s.kind, wide, s.x, s.embedded.stats, s.embedded.sum, r.at(e.norm.gain), r.at(e.norm.bias),
		e.norm.epsilon, r.embeddings.drop.drop(p, s.batch.drops && s.batch.lowest == 0), t, width)
	if all {
		r.gpu.Copy(s.states[0], residual, 4*t*width)
	}
	x := s.x
	for i := range r.layers {
		b, l := &r.layers[i], &s.layers[i]
		drops := s.batch.drops && b.level >= s.batch.lowest
		r.attend(p, s, b, l, x, drops)
		context := l.context
		if i == len(r.layers)-1 && s.batch.read != nil && !s.training {
			context, residual = r.narrow(s, l, residual)
			t = s.batch.rows
		}
		r.product(s, s.y, context, b.output, false)

		// the sum with the block's input, and its norm
		middle, wide, sum := s.after(b.pre, s.streams[1], l.middle, l.first.sum)
		r.gpu.AddNormForward(s.kind, wide, l.middle, l.first.stats, sum, l.first.sum, s.y, r.at(b.output.bias),
			b.attentionDrop.drop(p, drops), residual, r.at(b.middle.gain), r.at(b.middle.bias), b.middle.epsilon,
			t, width)

		r.feed(p, s, b, l, drops)
		inner := b.pre && i < len(r.layers)-1
		next, wide, sum := s.after(inner, s.streams[0], l.next, l.second.sum)
		r.gpu.AddNormForward(s.kind, wide, l.next, l.second.stats, sum, l.second.sum, s.y, r.at(b.down.bias),
			b.outputDrop.drop(p, drops), middle, r.at(b.followed.gain), r.at(b.followed.bias), b.followed.epsilon,
			t, width)
		if all {
			r.gpu.Copy(s.states[i+1], next, 4*t*width)
		}
		x, residual = l.next, next
	}
	return residual
}

// wide returns the float32 values of activations, and where a norm writes them beside the activations: nowhere if these
// are float32 themselves.
func (s *space) wide(stream, activations cuda.Pointer) (values, written cuda.Pointer) {
	if s.kind == cuda.Float32 {
		return activations, 0
	}
	return stream, stream
}

// after returns the float32 values that the next sum adds to: those of the norm's result normed, or pre-norm of the
// sum. It also returns where the norm and the sum write them beside what is kept of both: 0 for nowhere.
func (s *space) after(pre bool, stream, normed, sum cuda.Pointer) (values, norm, added cuda.Pointer) {
	if pre {
		values, added = s.wide(stream, sum)
		return values, 0, added
	}
	values, norm = s.wide(stream, normed)
	return values, norm, 0
}

// narrow copies the rows that are read one after another, of the last attention's result and of what is added to it,
// and returns both. The rest of the block computes these rows alone.
func (r *resident) narrow(s *space, l *layerSpace, residual cuda.Pointer) (context, added cuda.Pointer) {
	width, read := r.config.Width, s.putRead()
	s.batch.rows = len(s.batch.read)
	added = l.joined // which attention has read
	context = added + cuda.Pointer(4*s.tokens*width)
	r.gpu.Embed(added, residual, read, 0, 0, 0, 0, s.batch.rows, width)
	words := width * s.kind.Bytes() / 4 // of 32 bits, which have two numbers of bfloat16
	r.gpu.Embed(context, l.context, read, 0, 0, 0, 0, s.batch.rows, words)
	return context, added
}

// putRead copies the list of the rows that are read to the device.
func (s *space) putRead() cuda.Pointer {
	rows := make([]int32, len(s.batch.read))
	for i, row := range s.batch.read {
		rows[i] = int32(row)
	}
	at := s.put(rows)
	s.send()
	return at
}

// attend computes attention, without its output layer. x are the block's input [T D].
func (r *resident) attend(p *nn.Pass, s *space, b *residentBlock, l *layerSpace, x cuda.Pointer, drops bool) {
	r.product(s, l.joined, x, b.joined, true)
	if b.attention.rotary != nil {
		r.rotate(s, l.joined, b, 1)
	}
	a := r.attention(p, s, b, drops)
	a.Forward(r.gpu, l.context, l.normalizers, l.masks, l.joined)
}

// attention returns the attention of a block.
func (r *resident) attention(p *nn.Pass, s *space, b *residentBlock, drops bool) *cuda.Attention {
	heads, width := b.attention.heads, r.config.Width
	return &cuda.Attention{
		Type: s.kind, Heads: heads, Width: width / heads, Stride: 3 * width, OutStride: width, Tokens: s.batch.tokens,
		Window: b.attention.window, Scale: float32(1 / math.Sqrt(float64(width/heads))),
		Drop: b.attention.drop.drop(p, drops), Items: s.items,
	}
}

// feed computes the feed-forward layer, without the bias of its result, to s.y.
func (r *resident) feed(p *nn.Pass, s *space, b *residentBlock, l *layerSpace, drops bool) {
	t, inner := s.batch.rows, r.config.FeedForward
	r.product(s, l.raised, l.middle, b.up, true)
	if b.feedForward.gate == nil {
		r.gpu.GELUForward(s.kind, l.active, l.raised, t, inner, inner)
	} else {
		r.gpu.GEGLUForward(s.kind, l.active, l.raised, b.feedForward.drop.drop(p, drops), t, inner)
	}
	r.product(s, s.y, l.active, b.down, false)
}

// product writes x·W [T out] of the batch's rows, with the bias if it has one and that is wanted.
func (r *resident) product(s *space, out, x cuda.Pointer, l residentLinear, biased bool) {
	in, width := l.weight.rows, l.weight.columns
	p := cuda.Product{M: s.batch.rows, N: width, K: in, A: x, B: r.factor(l.weight, s.kind), C: out,
		LDA: in, LDB: width, LDC: width, In: s.kind, Out: s.kind, TF32: s.batch.tf32}
	if biased {
		p.Bias = r.at(l.bias)
		if l.bias != nil && s.kind == cuda.BFloat16 {
			p.LowBias = r.factor(l.bias, s.kind)
		}
	}
	r.gpu.Multiply(p)
}

// deviceAngles are the angles of rotary positions on the device.
type deviceAngles struct {
	values cuda.Pointer
	size   int // numbers
}

// loadAngles copies the angles for texts that begin at starts to the device, as far as it does not have them.
func (r *resident) loadAngles(starts []int) error {
	for i := range r.layers {
		rotary := r.layers[i].attention.rotary
		if rotary == nil {
			continue
		}
		angles := rotary.anglesOf(starts)
		have := r.angles[rotary]
		if have.size >= len(angles) {
			continue
		}
		made, err := r.gpu.Alloc(4 * len(angles))
		if err != nil {
			return err
		}
		r.gpu.FreeMemory(have.values)
		r.gpu.Upload(made, cuda.Bytes(angles))
		r.angles[rotary] = deviceAngles{made, len(angles)}
	}
	return nil
}

// rotate rotates the queries and keys of joined, which has values as well.
func (r *resident) rotate(s *space, joined cuda.Pointer, b *residentBlock, direction float32) {
	rotary := b.attention.rotary
	r.gpu.Rotate(s.kind, joined, r.angles[rotary].values, s.positions.ids, s.batch.tokens, rotary.heads,
		rotary.width/rotary.heads, 3*rotary.width, direction)
}

// download waits for the device and returns the states of the last level, or of all.
func (s *space) download(p *nn.Pass, last cuda.Pointer, layers, width int) ([][]float32, error) {
	size := s.batch.tokens * width
	if s.batch.read != nil {
		return s.downloadRows(p, last, width)
	}
	var all [][]float32
	for l := range layers {
		from, to := last, s.host[l*size:][:size:size]
		if layers > 1 {
			from = s.states[l]
		}
		s.device.Download(cuda.Bytes(to), from)
		all = append(all, to)
	}
	if err := s.device.Synchronize(); err != nil {
		return nil, err
	}
	if !s.training { // other passes may be encoded while this one's states are read
		for l, values := range all {
			all[l] = p.Scratch(size)
			kernel.Parallel(size, 1<<16, func(lo, hi int) { copy(all[l][lo:hi], values[lo:hi]) })
		}
	}
	return all, nil
}

// downloadRows is download of the last states of which some rows are read. In training the others are zeros; else each
// begins with a NaN, so that a layer that reads it after all shows.
func (s *space) downloadRows(p *nn.Pass, states cuda.Pointer, width int) ([][]float32, error) {
	read := s.batch.read
	if s.training {
		s.device.Embed(s.streams[1], states, s.putRead(), 0, 0, 0, 0, len(read), width)
		states = s.streams[1]
	}
	s.device.Download(cuda.Bytes(s.host[:len(read)*width]), states)
	if err := s.device.Synchronize(); err != nil {
		return nil, err
	}
	var out []float32
	if s.training {
		for _, row := range s.sparseRows {
			clear(s.sparse[row*width:][:width])
		}
		s.sparseRows = append(s.sparseRows[:0], read...)
		out = s.sparse[:s.batch.tokens*width]
	} else {
		out = p.Scratch(s.batch.tokens * width)
		for row := range s.batch.tokens {
			out[row*width] = float32(math.NaN())
		}
	}
	for i, row := range read {
		copy(out[row*width:], s.host[i*width:(i+1)*width])
	}
	return [][]float32{out}, nil
}
