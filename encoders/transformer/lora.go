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

// loraTargets are the names of a block's weights that may be changed, last the gate that few layouts have.
var loraTargets = []string{"query", "key", "value", "output", "up", "down", "gate"}

// target returns one of a block's linear layers by its name in loraTargets.
func (b *block) target(name string) *linear {
	switch name {
	case "query":
		return &b.attention.query
	case "key":
		return &b.attention.key
	case "value":
		return &b.attention.value
	case "output":
		return &b.attention.output
	case "up":
		return &b.feedForward.up
	case "gate":
		return b.feedForward.gate
	case "down":
		return &b.feedForward.down
	}
	panic("transformer: no linear layer " + name)
}

// targets returns the names of the linear layers that the block has.
func (b *block) targets() []string {
	if b.feedForward.gate == nil {
		return loraTargets[:len(loraTargets)-1]
	}
	return loraTargets
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
		if !o.PerTask {
			subtree := at.In(strconv.Itoa(i))
			for _, name := range o.Targets {
				l := e.blocks[i].target(name)
				l.lora = newLoRA(o, l.weight, subtree.In(name))
			}
			e.levels[i+1] = append(e.levels[i+1], subtree.All()...)
			continue
		}
		for _, of := range adapters {
			subtree := at.In(of).In(strconv.Itoa(i))
			for _, name := range o.Targets {
				l := e.blocks[i].target(name)
				if l.adapters == nil {
					l.adapters = map[string]adapter{}
				}
				l.adapters[of] = adapter{newLoRA(o, l.weight, subtree.In(name)), new(atomic.Pointer[packed])}
			}
			e.levels[i+1] = append(e.levels[i+1], subtree.All()...)
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

// checkLoRA returns an error for options that the encoder cannot have.
func (e *encoder) checkLoRA(o encoders.LoRA) error {
	if err := plugin.Check(o); err != nil {
		return encoders.BadOption("lora", "lora: %w", err)
	}
	if o.Rank > e.config.Width {
		return encoders.BadOption("lora.r", "lora: r is %d; want a rank from 1 to the width, %d", o.Rank,
			e.config.Width)
	}
	if len(o.Targets) == 0 {
		return encoders.BadOption("lora.targets", "lora: targets is empty; available: %s",
			strings.Join(e.blocks[0].targets(), ", "))
	}
	for i, name := range o.Targets {
		if targets := e.blocks[0].targets(); !slices.Contains(targets, name) {
			return encoders.BadOption("lora.targets", "lora: targets: the encoder has no %q; available: %s", name,
				strings.Join(targets, ", "))
		}
		if slices.Contains(o.Targets[:i], name) {
			return encoders.BadOption("lora.targets", "lora: targets: duplicate %q", name)
		}
	}
	return nil
}

// newLoRA makes the parameters of a change of a weight.
func newLoRA(o encoders.LoRA, weight *nn.Param, at nn.Params) *lora {
	in, out := weight.Shape[0], weight.Shape[1]
	return &lora{
		down:  at.Uniform("down", 1/math.Sqrt(float64(in)), in, o.Rank),
		up:    at.Zeros("up", o.Rank, out),
		scale: float32(o.Alpha / float64(o.Rank)),
	}
}

// version counts the changes of A and B.
func (l *lora) version() uint64 { return l.down.Version() + l.up.Version() }

// of returns the merged weight [in out], computed once for each version.
func (l *lora) of(weight *nn.Param) []float32 {
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
func (l *lora) backward(p *nn.Pass, x, dOut []float32, into nn.Gradients) {
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
