package transformer

import (
	"fmt"
	"iter"
	"strings"
)

// stored is a parameter in a file of weights.
type stored struct {
	name  string // below the encoder's subtree: BERT's name, for either layout
	shape []int  // in the file
	// linear marks the weight of a linear layer, [out in] in the file and [in out] in the network.
	linear bool
}

// storedParameters yields the parameters of a network of either layout.
func storedParameters(c config) iter.Seq[stored] {
	return func(yield func(stored) bool) {
		more := true
		table := func(name string, rows int) {
			more = more && yield(stored{name: "embeddings." + name + ".weight", shape: []int{rows, c.Width}})
		}
		norm := func(name string) {
			more = more && yield(stored{name: name + ".weight", shape: []int{c.Width}}) &&
				yield(stored{name: name + ".bias", shape: []int{c.Width}})
		}
		linear := func(name string, in, out int) {
			more = more && yield(stored{name: name + ".weight", shape: []int{out, in}, linear: true}) &&
				yield(stored{name: name + ".bias", shape: []int{out}})
		}

		table("word_embeddings", c.Vocabulary)
		table("position_embeddings", c.MaxPositions)
		if c.Types > 0 {
			table("token_type_embeddings", c.Types)
		}
		norm("embeddings.LayerNorm")
		for i := 0; i < c.Layers && more; i++ {
			layer := fmt.Sprintf("encoder.layer.%d.", i)
			linear(layer+"attention.self.query", c.Width, c.Width)
			linear(layer+"attention.self.key", c.Width, c.Width)
			linear(layer+"attention.self.value", c.Width, c.Width)
			linear(layer+"attention.output.dense", c.Width, c.Width)
			norm(layer + "attention.output.LayerNorm")
			linear(layer+"intermediate.dense", c.Width, c.FeedForward)
			linear(layer+"output.dense", c.FeedForward, c.Width)
			norm(layer + "output.LayerNorm")
		}
	}
}

// distilNames turns BERT's names of a layer into DistilBERT's.
var distilNames = strings.NewReplacer(
	"encoder.layer.", "transformer.layer.",
	".attention.self.query.", ".attention.q_lin.",
	".attention.self.key.", ".attention.k_lin.",
	".attention.self.value.", ".attention.v_lin.",
	".attention.output.dense.", ".attention.out_lin.",
	".attention.output.LayerNorm.", ".sa_layer_norm.",
	".intermediate.dense.", ".ffn.lin1.",
	".output.dense.", ".ffn.lin2.",
	".output.LayerNorm.", ".output_layer_norm.",
)

// nameIn returns a parameter's name in files of a layout, without a prefix.
func (s stored) nameIn(layout string) string {
	if layout == "distilbert" && strings.HasPrefix(s.name, "encoder.") {
		return distilNames.Replace(s.name)
	}
	return s.name
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
