package transformer

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// linear is x·W + b, or x·W.
type linear struct {
	weight *nn.Param     // [in out]
	bias   *nn.Param     // [out]; nil for none
	own    *nn.Precision // of its weight in a quantized model, and of all its products; nil: that of the pass

	*change                     // of passes that name none of adapters
	adapters map[string]*change // by name
}

// change is what is learned instead of a weight, with what is packed of the weight and that.
type change struct {
	lora   *lora // nil for none
	packed atomic.Pointer[packed]
}

// adapted returns the layer with the change called adapter, if it has that.
func (l linear) adapted(adapter string) linear {
	if named := l.adapters[adapter]; named != nil {
		l.change = named
	}
	return l
}

// packed is one version of a weight in the layout of products of one precision.
type packed struct {
	kernel.Packed
	version   uint64
	precision nn.Precision
}

func newLinear() *linear { return &linear{change: new(change), adapters: map[string]*change{}} }

// learns reports whether the weight changes from step to step.
func (l linear) learns() bool { return l.weight.LearnsNow() || l.lora != nil }

// values returns the weight that rows are multiplied by, with its LoRA change, and its version.
func (l linear) values() ([]float32, uint64) {
	if l.lora == nil {
		return l.weight.Data, l.weight.Version()
	}
	return l.lora.merge(l.weight), l.weight.Version() + l.lora.version()
}

// forward writes x·W + b to out, and applies the epilogue after: x [T in], out [T out].
func (l linear) forward(p pass, out, x []float32, after kernel.Epilogue) {
	l.product(p, out, x, after).Multiply()
}

func (l linear) product(p pass, out, x []float32, after kernel.Epilogue) kernel.Product {
	l = l.adapted(p.Adapter)
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	precision := l.precision(p)
	product := kernel.Product{
		M: len(x) / in, K: in, N: width, A: kernel.Dense(x, in), C: out,
		Start: kernel.StartAtZero, After: after, Precision: precision,
	}
	if l.bias != nil {
		product.Start, product.Bias = kernel.StartAtBias, l.bias.Data
	}
	if p.Unpacked && l.own == nil || p.Training && l.learns() { // the weight changes in the next step
		values, _ := l.values()
		product.B = kernel.Dense(values, width)
	} else {
		product.Packed = l.pack(precision)
	}
	return product
}

func (l linear) precision(p pass) nn.Precision {
	switch {
	case l.own != nil:
		return *l.own
	case p.Precision == nn.Int8 && l.weight.Shape[0] > kernel.MaxInt8Depth:
		return nn.Float32
	}
	return p.Precision
}

// isPacked reports whether the layer has its weight as integers in packed alone.
func (l linear) isPacked() bool { return l.own != nil && *l.own == nn.Int8 }

// pack returns the packed weight, which is made once for each version and precision.
func (l linear) pack(precision nn.Precision) *kernel.Packed {
	values, version := l.values()
	if have := l.packed.Load(); have != nil && have.version == version && have.precision == precision {
		return &have.Packed
	}
	made := &packed{version: version, precision: precision}
	made.Pack(kernel.Dense(values, l.weight.Shape[1]), l.weight.Shape[0], l.weight.Shape[1], precision)
	l.packed.Store(made)
	return &made.Packed
}

// backward adds the parameters' gradients to into, given forward's x and the gradient at its result, dOut.
func (l linear) backward(p pass, x, dOut []float32, into nn.Gradients) {
	l = l.adapted(p.Adapter)
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	if d := into.Of(l.weight); d != nil {
		kernel.Product{
			M: in, K: len(x) / in, N: width, A: kernel.Dense(x, in).T(), B: kernel.Dense(dOut, width), C: d,
			Precision: p.Precision,
		}.Multiply()
	}
	if l.bias != nil {
		if d := into.Of(l.bias); d != nil {
			kernel.SumRows(d, dOut)
		}
	}
	if l.lora != nil {
		l.lora.backward(p, x, dOut, into)
	}
}

// backwardTo takes the gradient at forward's result, dOut. It writes the gradient at x to dx, or adds it, by start, and
// applies the epilogue after.
func (l linear) backwardTo(p pass, dx, dOut []float32, start kernel.Start, after kernel.Epilogue) {
	l = l.adapted(p.Adapter)
	in, width := l.weight.Shape[0], l.weight.Shape[1]
	values, _ := l.values()
	kernel.Product{
		M: len(dOut) / width, K: width, N: in, A: kernel.Dense(dOut, width), B: kernel.Dense(values, width).T(), C: dx,
		Start: start, After: after, Precision: p.Precision,
	}.Multiply()
}

// lora is a change of rank r to a weight that stays as it is: W + α/r·A·B (Hu et al. 2022, "LoRA", section 4.1). B is
// zero at first, so that the weight is unchanged.
type lora struct {
	down, up *nn.Param // A [in r] and B [r out]
	scale    float32   // α/r
	merged   atomic.Pointer[mergedWeight]
}

// mergedWeight is W + α/r·A·B, as it was at one version of A and B.
type mergedWeight struct {
	data    []float32
	version uint64
}

// target is a linear layer of a block under its name in encoders.LoRA.Targets.
type target struct {
	name string
	*linear
}

func (b *block) targets() []target {
	a, f := b.attention, b.feedForward
	all := []target{{"query", a.query}, {"key", a.key}, {"value", a.value}, {"output", a.output}, {"up", f.up},
		{"down", f.down}}
	if f.gate != nil {
		all = append(all, target{"gate", f.gate})
	}
	return all
}

// target returns one of the block's linear layers; nil if it has none of that name.
func (b *block) target(name string) *linear {
	for _, t := range b.targets() {
		if t.name == name {
			return t.linear
		}
	}
	return nil
}

// addLoRA freezes all parameters, and adds a change that learns to the targets of the blocks that were not frozen.
// With o.PerTask there is one for each of adapters.
func (e *encoder) addLoRA(o encoders.LoRA, at nn.Params, adapters ...string) error {
	if err := e.checkLoRA(o); err != nil {
		return err
	}
	changes := false
	for i := range e.blocks {
		open := slices.ContainsFunc(e.levels[i+1], (*nn.Param).Learns)
		for _, w := range e.levels[i+1] {
			w.Frozen = true
		}
		if !open {
			continue
		}
		changes = true
		add := func(below nn.Params, use func(l *linear, c *lora)) {
			subtree := below.In(strconv.Itoa(i))
			for _, name := range o.Targets {
				l := e.blocks[i].target(name)
				use(l, newLoRA(o, l.weight, subtree.In(name)))
			}
			e.levels[i+1] = append(e.levels[i+1], subtree.All()...)
		}
		if !o.PerTask {
			add(at, func(l *linear, c *lora) { l.lora = c })
			continue
		}
		for _, of := range adapters {
			add(at.In(of), func(l *linear, c *lora) { l.adapters[of] = &change{lora: c} })
		}
	}
	for _, w := range e.levels[0] {
		w.Frozen = true
	}
	if !changes {
		return encoders.BadOption("lora", "lora: freeze leaves none of the %d layers to change; want at most freeze: "+
			"%d", len(e.blocks), len(e.blocks)-1)
	}
	e.lora = o
	return nil
}

func (e *encoder) checkLoRA(o encoders.LoRA) error {
	if err := plugin.Check(o); err != nil {
		return encoders.BadOption("lora", "lora: %w", err)
	}
	if o.Rank > e.config.Width {
		return encoders.BadOption("lora.r", "lora: r is %d; want a rank from 1 to the width, %d", o.Rank,
			e.config.Width)
	}
	var names []string
	for _, t := range e.blocks[0].targets() {
		names = append(names, t.name)
	}
	available := strings.Join(names, ", ")
	if len(o.Targets) == 0 {
		return encoders.BadOption("lora.targets", "lora: targets is empty; available: %s", available)
	}
	for i, name := range o.Targets {
		if !slices.Contains(names, name) {
			return encoders.BadOption("lora.targets", "lora: targets: the encoder has no %q; available: %s", name,
				available)
		}
		if slices.Contains(o.Targets[:i], name) {
			return encoders.BadOption("lora.targets", "lora: targets: duplicate %q", name)
		}
	}
	return nil
}

func newLoRA(o encoders.LoRA, weight *nn.Param, at nn.Params) *lora {
	in, out := weight.Shape[0], weight.Shape[1]
	return &lora{
		down:  at.Uniform("down", 1/math.Sqrt(float64(in)), in, o.Rank),
		up:    at.Zeros("up", o.Rank, out),
		scale: float32(o.Alpha / float64(o.Rank)),
	}
}

func (l *lora) version() uint64 { return l.down.Version() + l.up.Version() }

// merge returns the merged weight [in out], computed once for each version.
func (l *lora) merge(weight *nn.Param) []float32 {
	if have := l.merged.Load(); have != nil && have.version == l.version() {
		return have.data
	}
	in, out := weight.Shape[0], weight.Shape[1]
	made := &mergedWeight{make([]float32, in*out), l.version()}
	kernel.MatMul(made.data, l.down.Data, l.up.Data, in, l.down.Shape[1], out)
	for i, w := range weight.Data {
		made.data[i] = w + l.scale*made.data[i]
	}
	l.merged.Store(made)
	return made.data
}

// backward adds the gradients of A and B to into, given the layer's input x [T in] and the gradient at its result.
func (l *lora) backward(p pass, x, dOut []float32, into nn.Gradients) {
	in, rank, out := l.down.Shape[0], l.down.Shape[1], l.up.Shape[1]
	rows := len(x) / in
	if d := into.Of(l.up); d != nil {
		low := p.Floats(rows * rank) // x·A
		kernel.MatMul(low, x, l.down.Data, rows, in, rank)
		scale(low, l.scale)
		kernel.MatMulAT(d, low, dOut, rank, rows, out)
	}
	if d := into.Of(l.down); d != nil {
		low := p.Floats(rows * rank) // dOut·Bᵀ
		kernel.MatMulBT(low, dOut, l.up.Data, rows, out, rank)
		scale(low, l.scale)
		kernel.MatMulAT(d, x, low, in, rows, rank)
	}
}

func scale(x []float32, by float32) {
	for i := range x {
		x[i] *= by
	}
}
