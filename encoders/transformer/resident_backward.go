//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// backward is encoders.Description.Backward: it adds to the gradients of the store.
func (r *resident) backward(p *nn.Pass, at [][]float32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return
	}
	s := r.training
	if s == nil || r.owner != p || r.store == nil {
		panic("transformer: Backward of a pass that was not encoded for training, or without a store")
	}
	if s.batch.lowest == len(r.levels) {
		return
	}
	r.store.added = true
	back := &residentBackward{resident: r, space: s, pass: p, at: at, stream: s.back.sums[0], other: s.back.sums[1]}
	back.run()
}

// residentBackward is a backward pass. stream [T D], float32, has the gradient at the states of a level; in a pre-norm
// network back.normed has that at the normalised states, which the next block reads.
type residentBackward struct {
	*resident
	*space
	pass          *nn.Pass
	at            [][]float32
	stream, other cuda.Pointer
}

func (r *residentBackward) run() {
	t, width := r.batch.tokens, r.config.Width
	pre := r.finalNorm != nil
	into := r.stream
	if pre {
		into = r.back.normed
	}
	r.gpu.Clear(into, 4*t*width)
	r.addBorder(into, len(r.levels)-1)
	layers := r.resident.layers
	for i := len(layers) - 1; i >= 0 && layers[i].level >= r.batch.lowest; i-- {
		r.blockBack(i, pre)
		if i > 0 && layers[i].level > r.batch.lowest {
			r.addBorder(r.stream, i)
		}
	}
	switch {
	case r.batch.lowest == 0:
		if pre {
			r.gpu.Add(r.stream, r.back.normed, t*width)
		}
		r.addBorder(r.stream, 0)
		r.embeddingsBack()
	case pre && r.batch.lowest > 1: // the norm at the entrance of the lowest block
		below := r.batch.lowest - 2
		l := r.space.layers[below]
		r.normBack(layers[below].followed, l.second, nil, 0, 0, r.back.normed, 0, cuda.Drop{})
	}
}

// addBorder adds the gradient at the states of a level that came from fusion and heads.
func (r *residentBackward) addBorder(to cuda.Pointer, level int) {
	j := level - len(r.levels) + len(r.at)
	if j < 0 || r.at[j] == nil {
		return
	}
	width := r.config.Width
	rows := r.rowsOf(level, r.at[j])
	r.gpu.Wait(r.uploaded) // the page-locked memory is written again
	defer func() { r.uploaded = r.gpu.Record() }()
	if 2*len(rows) > r.batch.tokens {
		kernel.Parallel(r.batch.tokens, 256, func(lo, hi int) {
			copy(r.atHost[lo*width:hi*width], r.at[j][lo*width:hi*width])
		})
		r.gpu.Upload(r.other, cuda.Bytes(r.atHost[:r.batch.tokens*width]))
		r.gpu.Add(to, r.other, r.batch.tokens*width)
		return
	}
	for i, row := range rows {
		copy(r.atHost[i*width:], r.at[j][int(row)*width:][:width])
	}
	r.listed, r.sent = r.loaded, r.loaded
	list := r.put(rows)
	r.send()
	r.gpu.Upload(r.other, cuda.Bytes(r.atHost[:len(rows)*width]))
	r.gpu.ScatterRows(to, r.other, list, r.identity, r.identity, len(rows), width)
}

// rowsOf returns the rows of the gradient at a level that may not be zero.
func (r *residentBackward) rowsOf(level int, at []float32) []int32 {
	if read := r.batch.read; read != nil && level == len(r.levels)-1 {
		rows := make([]int32, len(read))
		for i, row := range read {
			rows[i] = int32(row)
		}
		return rows
	}
	return rowsNotZero(at, r.config.Width)
}

// rowsNotZero returns the rows of x [T width] that have a value that is not zero.
func rowsNotZero(x []float32, width int) []int32 {
	is := make([]bool, len(x)/width)
	kernel.Parallel(len(is), 256, func(lo, hi int) {
		for row := lo; row < hi; row++ {
			for _, v := range x[row*width : (row+1)*width] {
				if v != 0 {
					is[row] = true
					break
				}
			}
		}
	})
	var rows []int32
	for row, is := range is {
		if is {
			rows = append(rows, int32(row))
		}
	}
	return rows
}

// blockBack goes back through a block.
func (r *residentBackward) blockBack(i int, pre bool) {
	b, l := &r.resident.layers[i], &r.space.layers[i]
	x := r.x
	if i > 0 {
		x = r.space.layers[i-1].next
	}
	drops := r.batch.drops
	last := i == len(r.resident.layers)-1

	// the norm behind the block, and the sum before it
	if !pre {
		r.normBack(b.followed, l.second, b.down.bias, r.other, r.back.dropped, r.stream, 0,
			b.outputDrop.drop(r.pass, drops))
		r.stream, r.other = r.other, r.stream
	} else {
		beside := r.stream
		if last {
			beside = 0
		}
		r.normBack(b.followed, l.second, b.down.bias, r.stream, r.back.dropped, r.back.normed, beside, cuda.Drop{})
	}
	r.feedForwardBack(b, l, drops)
	if !pre {
		r.productBack(r.stream, r.back.raised, b.up, cuda.Float32, true)
		r.normBack(b.middle, l.first, b.output.bias, r.other, r.back.dropped, r.stream, 0,
			b.attentionDrop.drop(r.pass, drops))
		r.stream, r.other = r.other, r.stream
	} else {
		r.productBack(r.back.normed, r.back.raised, b.up, cuda.Float32, false)
		r.normBack(b.middle, l.first, b.output.bias, r.stream, r.back.dropped, r.back.normed, r.stream,
			b.attentionDrop.drop(r.pass, drops))
	}
	r.attentionBack(b, l, x, drops)
	if b.level == r.batch.lowest && (!pre || i == 0) {
		return // nothing below learns
	}
	if pre {
		r.productBack(r.back.normed, r.back.raised, b.joined, cuda.Float32, false)
	} else {
		r.productBack(r.stream, r.back.raised, b.joined, cuda.Float32, true)
	}
}

// normBack goes back through a norm: dx is the gradient at its input plus beside, dropped that after the dropout before
// it. bias is that of the layer whose result was dropped, nil for none.
func (r *residentBackward) normBack(n residentNorm, at normSpace, bias *matrix, dx, dropped, dOut, beside cuda.Pointer,
	drop cuda.Drop) {
	t, width := r.batch.tokens, r.config.Width
	r.gpu.NormBackward(r.kind, dx, dropped, r.back.partial, dOut, at.sum, at.stats, r.resident.at(n.gain), beside, drop,
		t, width)
	r.addNormGradients(n, bias)
}

// addNormGradients adds the sums of chunks of rows to the gradients of a norm and of the bias before it.
func (r *residentBackward) addNormGradients(n residentNorm, bias *matrix) {
	t, width := r.batch.tokens, r.config.Width
	if n.beside(bias) && n.gain.learns() {
		r.gpu.SumPartials(r.gradient(n.gain), r.back.partial, cuda.Chunks(t), 3*width, 3*width)
		return
	}
	for part, of := range []*matrix{n.gain, n.bias, bias} {
		r.addPartial(of, part*width, 3*width)
	}
}

// addPartial adds the sums of chunks of rows, from a column on, to the gradient of a vector that learns.
func (r *residentBackward) addPartial(of *matrix, column, stride int) {
	if to := r.gradient(of); to != 0 {
		r.gpu.SumPartials(to, r.back.partial+cuda.Pointer(4*column), cuda.Chunks(r.batch.tokens), stride, of.columns)
	}
}

// gradient returns the address of a matrix's gradient; null where it has none.
func (r *resident) gradient(t *matrix) cuda.Pointer {
	if t == nil || !t.learns() {
		return 0
	}
	return r.store.gradients + cuda.Pointer(4*t.at)
}

// feedForwardBack goes back from dropped, the gradient at the feed-forward layer's result, to that of its first
// product.
func (r *residentBackward) feedForwardBack(b *residentBlock, l *layerSpace, drops bool) {
	t, inner := r.batch.tokens, r.config.FeedForward
	r.weightBack(b.down, l.active, r.back.dropped)
	if b.feedForward.gate == nil {
		r.productBack(r.back.raised, r.back.dropped, b.down, r.kind, false)
		r.gpu.GELUBackward(r.kind, r.back.raised, r.back.partial, l.raised, t, inner)
		r.addPartial(b.up.bias, 0, inner)
	} else {
		r.productBack(r.back.active, r.back.dropped, b.down, r.kind, false)
		r.gpu.GEGLUBackward(r.kind, r.back.raised, r.back.active, l.raised, b.feedForward.drop.drop(r.pass, drops), t,
			inner)
		r.columnsBack(b.up.bias)
	}
	r.weightBack(b.up, l.middle, r.back.raised)
}

// columnsBack adds the sums over the rows of back.raised to the gradient of a bias as wide as they are.
func (r *residentBackward) columnsBack(bias *matrix) {
	if bias == nil {
		return
	}
	r.gpu.ColumnSums(r.kind, r.back.partial, r.back.raised, r.batch.tokens, bias.columns, bias.columns)
	r.addPartial(bias, 0, bias.columns)
}

// attentionBack goes back from dropped, the gradient at the result of attention's output layer, to that of queries,
// keys and values, in back.raised.
func (r *residentBackward) attentionBack(b *residentBlock, l *layerSpace, x cuda.Pointer, drops bool) {
	r.weightBack(b.output, l.context, r.back.dropped)
	r.productBack(r.back.context, r.back.dropped, b.output, r.kind, false)
	a := r.attention(r.pass, r.space, b, drops)
	a.Backward(r.gpu, r.back.raised, l.joined, l.context, r.back.context, l.normalizers, l.masks,
		r.back.delta)
	if b.attention.rotary != nil {
		r.rotate(r.space, r.back.raised, b, -1)
	}
	r.columnsBack(b.joined.bias)
	r.weightBack(b.joined, x, r.back.raised)
}

// weightBack adds xᵀ·dOut to the gradient of a weight.
func (r *residentBackward) weightBack(l residentLinear, x, dOut cuda.Pointer) {
	to := r.gradient(l.weight)
	if to == 0 {
		return
	}
	in, out := l.weight.rows, l.weight.columns
	r.gpu.Multiply(cuda.Product{M: in, N: out, K: r.batch.tokens, A: x, B: dOut, C: to, LDA: in, LDB: out, LDC: out,
		TransA: true, In: r.kind, Out: cuda.Float32, Add: true, TF32: r.batch.tf32})
}

// productBack writes dOut·Wᵀ to dx, or adds it.
func (r *residentBackward) productBack(dx, dOut cuda.Pointer, l residentLinear, out cuda.Type, add bool) {
	in, width := l.weight.rows, l.weight.columns
	r.gpu.Multiply(cuda.Product{M: r.batch.tokens, N: in, K: width, A: dOut, B: r.factor(l.weight, r.kind), C: dx,
		LDA: width, LDB: width, LDC: in, TransB: true, In: r.kind, Out: out, Add: add, TF32: r.batch.tf32})
}

// embeddingsBack goes back through the embeddings.
func (r *residentBackward) embeddingsBack() {
	t, width, e := r.batch.tokens, r.config.Width, r.resident.embedded
	if drop := r.encoder.embeddings.drop.drop(r.pass, r.batch.drops); drop != (cuda.Drop{}) {
		r.gpu.DropGradient(r.stream, drop, t, width)
	}
	at := r.space.embedded
	r.gpu.NormBackward(cuda.Float32, r.other, 0, r.back.partial, r.stream, at.sum, at.stats,
		r.resident.at(e.norm.gain), 0, cuda.Drop{}, t, width)
	r.addNormGradients(e.norm, nil)
	for _, table := range []struct {
		of *matrix
		lookup
	}{{e.words, r.words}, {e.positions, r.positions}, {e.types, r.types}} {
		if to := r.gradient(table.of); to != 0 {
			r.gpu.ScatterRows(to, r.other, table.unique, table.starts, table.order, table.count, width)
		}
	}
}
