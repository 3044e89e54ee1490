package transformer

import (
	"iter"
	"strconv"
	"strings"
)

// stored is a parameter in a file of weights.
type stored struct {
	name  string // below the encoder's subtree
	file  string // name in the file, without a prefix
	shape []int  // in the file
	// linear marks the weight of a linear layer, [out in] in the file and [in out] in the network.
	linear bool
}

// storedParameters yields the parameters of a network.
func storedParameters(c config) iter.Seq[stored] {
	return func(yield func(stored) bool) {
		l := c.layout()
		more := true
		tensor := func(part, kind string, linear bool, shape ...int) {
			more = more && yield(stored{part + "." + kind, l.nameOf(part) + "." + kind, shape, linear})
		}
		table := func(name string, rows int) { tensor("embeddings."+name, "weight", false, rows, c.embedding()) }
		norm := func(part string, width int) {
			tensor(part, "weight", false, width)
			tensor(part, "bias", false, width)
		}
		linear := func(part string, in, out int) {
			tensor(part, "weight", true, out, in)
			tensor(part, "bias", false, out)
		}

		table("word_embeddings", c.Vocabulary)
		table("position_embeddings", c.MaxPositions)
		if c.Types > 0 {
			table("token_type_embeddings", c.Types)
		}
		norm("embeddings.LayerNorm", c.embedding())
		if c.projects() {
			linear("embeddings_project", c.embedding(), c.Width)
		}
		for i := 0; i < c.Layers && more; i++ {
			layer := layersHere + strconv.Itoa(i) + "."
			linear(layer+"attention.self.query", c.Width, c.Width)
			linear(layer+"attention.self.key", c.Width, c.Width)
			linear(layer+"attention.self.value", c.Width, c.Width)
			linear(layer+"attention.output.dense", c.Width, c.Width)
			norm(layer+"attention.output.LayerNorm", c.Width)
			linear(layer+"intermediate.dense", c.Width, c.FeedForward)
			linear(layer+"output.dense", c.FeedForward, c.Width)
			norm(layer+"output.LayerNorm", c.Width)
		}
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
