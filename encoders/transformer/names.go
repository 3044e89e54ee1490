package transformer

import (
	"iter"
	"slices"
	"strconv"
	"strings"
)

// stored is a parameter in a file of weights.
type stored struct {
	name  string // below the encoder's subtree
	file  string // name in the file, without a prefix
	shape []int  // in the file, where the parameter is not fused with others
	fused fused  // the place of the parameter in its tensor
	// linear marks the weight of a linear layer, [out in] in the file and [in out] in the network.
	linear bool
	table  bool // of embeddings, whose rows are looked up by number
}

// storedParameters yields the parameters of a network.
func storedParameters(c config) iter.Seq[stored] {
	return func(yield func(stored) bool) {
		l := c.layout()
		more := true
		put := func(part, kind string, s stored) {
			s.name, s.file, s.fused = part+"."+kind, l.nameOf(part)+"."+kind, l.fusedPart(part)
			more = more && yield(s)
		}
		tensor := func(part, kind string, linear bool, shape ...int) {
			put(part, kind, stored{shape: shape, linear: linear})
		}
		table := func(name string, rows int) {
			put("embeddings."+name, "weight", stored{shape: []int{rows, c.embedding()}, table: true})
		}
		norm := func(part string, width int) {
			tensor(part, "weight", false, width)
			if !c.NoBias.Norms {
				tensor(part, "bias", false, width)
			}
		}
		linear := func(part string, in, out int, biased bool) {
			tensor(part, "weight", true, out, in)
			if biased {
				tensor(part, "bias", false, out)
			}
		}

		table("word_embeddings", c.Vocabulary)
		if !l.rotary {
			table("position_embeddings", c.MaxPositions)
		}
		if c.Types > 0 {
			table("token_type_embeddings", c.Types)
		}
		norm("embeddings.LayerNorm", c.embedding())
		if c.projects() {
			linear("embeddings_project", c.embedding(), c.Width, true)
		}
		if c.Buckets > 0 {
			tensor(relativePart, "weight", false, c.Buckets, c.Heads)
		}
		for i := 0; i < c.Layers && more; i++ {
			layerParameters(c, layersHere+strconv.Itoa(i)+".", i, linear, norm)
		}
		if l.preNorm {
			norm("encoder.LayerNorm", c.Width)
		}
	}
}

// layerParameters calls linear and norm for the parts of a layer, whose names begin with at.
func layerParameters(c config, at string, number int, linear func(part string, in, out int, biased bool),
	norm func(part string, width int)) {
	l := c.layout()
	attention, feedForward := !c.NoBias.Attention, !c.NoBias.FeedForward
	if l.preNorm && number > 0 {
		norm(at+"attention.LayerNorm", c.Width)
	}
	linear(at+"attention.self.query", c.Width, c.Width, attention)
	linear(at+"attention.self.key", c.Width, c.Width, attention)
	linear(at+"attention.self.value", c.Width, c.Width, attention)
	linear(at+"attention.output.dense", c.Width, c.Width, attention)
	if l.preNorm {
		norm(at+"intermediate.LayerNorm", c.Width)
	} else {
		norm(at+"attention.output.LayerNorm", c.Width)
	}
	linear(at+"intermediate.dense", c.Width, c.FeedForward, feedForward)
	if l.gated {
		linear(at+"intermediate.gate", c.Width, c.FeedForward, feedForward)
	}
	linear(at+"output.dense", c.FeedForward, c.Width, feedForward)
	if !l.preNorm {
		norm(at+"output.LayerNorm", c.Width)
	}
}

// oldName returns the name of a norm's parameter in files converted from TensorFlow's checkpoints; for other
// parameters, name.
func oldName(name string) string {
	layer, isWeight := strings.CutSuffix(name, ".weight")
	layer, isBias := strings.CutSuffix(layer, ".bias")
	if !strings.HasSuffix(layer, "LayerNorm") && !strings.HasSuffix(layer, "layer_norm") {
		return name
	}
	switch {
	case isWeight:
		return layer + ".gamma"
	case isBias:
		return layer + ".beta"
	}
	return name
}

// fileShape returns the shape of the parameter's tensor in the file.
func (s stored) fileShape() []int {
	shape := slices.Clone(s.shape)
	shape[0] *= s.fused.of
	return shape
}

// tensorReader reads the values of parameters. It keeps the last tensor, of which the next parameter may have a part.
type tensorReader struct {
	name   string
	values []float32
}

// of returns the values of a parameter, those of a linear layer to be copied.
func (r *tensorReader) of(t matched) ([]float32, error) {
	if t.param.fused.of == 1 {
		return t.floats()
	}
	if r.name != t.Name {
		values, err := t.floats()
		if err != nil {
			return nil, err
		}
		r.name, r.values = t.Name, values
	}
	size := len(r.values) / t.param.fused.of
	values := r.values[t.param.fused.row*size : (t.param.fused.row+1)*size]
	if t.param.linear {
		return values, nil
	}
	return slices.Clone(values), nil
}
