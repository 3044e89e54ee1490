//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"errors"
	"fmt"
	"sync"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/nn"
)

// resident is the encoder in the memory of a device, which has the values of its parameters: those of encoder are the
// initial ones, or what save has fetched last. It computes what encoder does, by the same formulas and with the same
// dropout; sums are in another order.
//
// All its operations are queued on the device, one after another. mu is held while a pass is encoded, so that passes
// of several goroutines follow each other.
type resident struct {
	*encoder
	gpu  *cuda.Device
	name string // cuda:0, as experiments name it
	mu   sync.Mutex

	all      []*nn.Param // parameters, in the order of their tree
	matrices []*matrix
	values   deviceValues

	embedded residentEmbeddings
	layers   []residentBlock
	angles   map[*rotary]deviceAngles

	inference, training *space
	owner               *nn.Pass // whose values training has
	store               *deviceStore
	failed              error // of newStore, for memory: SumSquares and Update return it
}

// matrix is the memory of one or several parameters that products read as one matrix: side by side, as query, key and
// value.
type matrix struct {
	at            int  // of its first value among those of all matrices
	rows, columns int  // 1 row of a vector
	factor        bool // of products, which read it as bfloat16 where activations are
	parts         []*nn.Param
}

func (t *matrix) size() int { return t.rows * t.columns }

// learns reports whether the parameters, which are of one level, learn.
func (t *matrix) learns() bool { return t.parts[0].Learns() }

type residentLinear struct{ weight, bias *matrix } // [in out], [out]; bias is nil for none

type residentNorm struct {
	gain, bias *matrix // [D]; gain is nil where there is no norm, bias where it has none
	epsilon    float32
}

type residentEmbeddings struct {
	words, positions, types *matrix // positions and types may be nil
	norm                    residentNorm
}

// residentBlock is a block with the norm that follows it. In a pre-norm network that is the norm at the entrance of the
// next block, or the final one.
type residentBlock struct {
	*block
	level            int
	joined, output   residentLinear // query, key and value side by side [D 3D]; after attention [D D]
	up, down         residentLinear // [D F], with a gate beside [D 2F]; [F D]
	middle, followed residentNorm
}

// toDevice moves an encoder to a device. The encoder's parameters are in a tree of their own.
func toDevice(e *encoder, gpu *cuda.Device) (*resident, error) {
	// those of a mapped file: passes do not read them any more
	words := make([]int32, e.config.Vocabulary)
	for i := range words {
		words[i] = int32(i)
	}
	if err := e.checkWords(words); err != nil {
		return nil, err
	}
	r := &resident{encoder: e, gpu: gpu, all: e.params.All(), angles: map[*rotary]deviceAngles{}}
	r.build()
	r.place()
	if err := r.holdWide(1); err != nil { // passes of all types read it
		return nil, err
	}
	return r, gpu.Synchronize()
}

// build makes the matrices of all layers.
func (r *resident) build() {
	e := r.embeddings
	r.embedded = residentEmbeddings{
		words: r.matrix(e.words), positions: r.matrix(e.positions), types: r.matrix(e.types),
		norm: r.norm(e.norm),
	}
	for i := range r.blocks {
		b := &r.blocks[i]
		a, f := b.attention, b.feedForward
		made := residentBlock{block: b, level: i + 1,
			joined: r.linear(a.query, a.key, a.value), output: r.linear(a.output),
			down: r.linear(f.down),
		}
		if f.gate == nil {
			made.up = r.linear(f.up)
		} else {
			made.up = r.linear(f.up, f.gate)
		}
		switch {
		case !b.pre:
			made.middle, made.followed = r.norm(b.attentionNorm), r.norm(b.outputNorm)
		case i+1 < len(r.blocks):
			made.middle, made.followed = r.norm(b.outputNorm), r.norm(r.blocks[i+1].attentionNorm)
		default:
			made.middle, made.followed = r.norm(b.outputNorm), r.norm(*r.finalNorm)
		}
		r.layers = append(r.layers, made)
	}
}

func (r *resident) matrix(parts ...*nn.Param) *matrix {
	if parts[0] == nil {
		return nil
	}
	t := &matrix{rows: 1, parts: parts}
	for _, w := range parts {
		if len(w.Shape) > 1 {
			t.rows = w.Shape[0]
		}
		t.columns += w.Shape[len(w.Shape)-1]
	}
	r.matrices = append(r.matrices, t)
	return t
}

func (r *resident) linear(parts ...*linear) residentLinear {
	var weights, biases []*nn.Param
	for _, l := range parts {
		weights, biases = append(weights, l.weight), append(biases, l.bias)
	}
	l := residentLinear{r.matrix(weights...), r.matrix(biases...)}
	l.weight.factor = true
	return l
}

func (r *resident) norm(n norm) residentNorm {
	if n.weight == nil {
		return residentNorm{}
	}
	return residentNorm{r.matrix(n.weight), r.matrix(n.bias), float32(n.epsilon)}
}

// beside reports whether the norm's gain and bias and another bias lie side by side.
func (n residentNorm) beside(bias *matrix) bool {
	return n.bias != nil && bias != nil && n.bias.at == n.gain.at+n.gain.columns && bias.at == n.bias.at+n.bias.columns
}

// hostMemory is encoders.Description.Memory: states, in page-locked memory and where the caller reads them, and in
// training a gradient.
func (r *resident) hostMemory(b encoders.Workload) int64 {
	copies := 2
	if b.Layers == nn.AllLayers {
		copies = 2 * len(r.levels)
	}
	if b.Training {
		copies = copies/2 + 2
	}
	return 4 * int64(b.Tokens) * int64(r.config.Width) * int64(copies)
}

// Describe implements encoders.Encoder. What the device does not compute is left out of the network's description.
func (r *resident) Describe() encoders.Description {
	d := r.encoder.Describe()
	d.Device = r.name
	d.Attention, d.Words, d.Quantized, d.Recomputes = encoders.AttentionMaps{}, nil, nil, false
	d.WordEmbeddings, d.Levels = nil, nil
	d.Backward = func(p *nn.Pass, at [][]float32, _ nn.Gradients) { r.backward(p, at) }
	d.Resident = &encoders.Resident{Learns: r.learning() > 0, Params: r.all, Frozen: r.frozen,
		Memory: r.gpu.Peak, Reserve: r.reserve, Store: r.newStore}
	d.Memory = r.hostMemory
	d.Save = func(copies *nn.Copies) func(folder string) error {
		if err := r.fetch(); err != nil {
			return func(string) error { return err }
		}
		return r.save(copies)
	}
	d.Close = r.close
	return d
}

func (r *resident) close() error {
	err := errors.Join(r.encoder.close(), r.gpu.Synchronize())
	for _, s := range []*space{r.inference, r.training} {
		if s != nil {
			s.free() // page-locked memory outlives the device
		}
	}
	r.inference, r.training = nil, nil
	return errors.Join(err, r.gpu.Close())
}

// unsupported returns an error that names what of the network the device does not compute.
func (e *encoder) unsupported() error {
	switch {
	case e.precision != nn.Float32:
		return fmt.Errorf("a quantized model")
	case e.relative != nil:
		return fmt.Errorf("model_type %q, whose attention has biases for distances", e.config.layout.name)
	case e.embeddings.project != nil:
		return fmt.Errorf("model_type %q with embeddings of another width than the layers", e.config.layout.name)
	case e.config.Width > cuda.MostWidth:
		return fmt.Errorf("a width of %d, more than %d,", e.config.Width, cuda.MostWidth)
	}
	return nil
}
