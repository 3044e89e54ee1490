package transformer

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
)

// layout is one family of networks: all in which its networks differ from those of other families, apart from the sizes
// and rates in a config. Parameters have the names of BERT's parts in all layouts; files have the layout's own.
type layout struct {
	name   string // model_type in config.json
	class  string // transformers' class of the encoder alone
	prefix string // before the encoder's names in files of models for a task, such as "bert."
	pooler bool   // transformers' class has a pooler

	layers string            // before a layer's number in the names of files
	names  map[string]string // in files, of the parts that have another name there than here

	fused map[string]fused // parts that files have as one tensor

	// afterPadding says that positions are counted from the padding token's id + 1 on, as in fairseq. Padding tokens
	// within a text have that id as their position, and are not counted.
	afterPadding bool
	// rotary says that positions rotate queries and keys, instead of an embedding of each position.
	rotary bool
	// preNorm says that the inputs of attention and feed-forward are normalised, and the last states, instead of sums.
	preNorm bool
	// gated says that the feed-forward layer's activation is multiplied by a second linear layer.
	gated bool
	// ownEmbeddingDropout says that the first states have a dropout rate of their own.
	ownEmbeddingDropout bool
	// outputDropout returns the dropout rate of attention's output; nil: no dropout.
	outputDropout func(c config) float64

	// read reads a config.json, whose content is data. refused are the values that no network can have.
	read func(path string, data []byte) (c config, refused []error, err error)
	// keys returns the keys of config.json of a network that was made from scratch, without architectures and
	// model_type: a struct that encoding/json writes.
	keys func(c config) any
}

// fused is the place of a part in a tensor of several parts below each other: row of so many.
type fused struct{ row, of int }

// hiddenDropout is the rate for hidden states, which most layouts have for attention's output.
func hiddenDropout(c config) float64 { return c.Dropout }

// fusedPart returns the place of a part in its tensor.
func (l *layout) fusedPart(part string) fused {
	if layer, ok := strings.CutPrefix(part, layersHere); ok {
		_, part, _ = strings.Cut(layer, ".")
	}
	if f, ok := l.fused[part]; ok {
		return f
	}
	return fused{0, 1}
}

// layouts are the families, in the order in which errors list them.
var layouts = []*layout{
	&bertLayout, &distilbertLayout, &robertaLayout, &xlmRobertaLayout, &camembertLayout, &electraLayout, &mpnetLayout,
	&modernbertLayout,
}

// findLayout returns the layout of a name; nil if there is none.
func findLayout(name string) *layout {
	i := slices.IndexFunc(layouts, func(l *layout) bool { return l.name == name })
	if i < 0 {
		return nil
	}
	return layouts[i]
}

// layoutNames lists the names of all layouts for an error.
func layoutNames() string { return strings.Join(ModelTypes(), ", ") }

// ModelTypes returns the values of model_type in config.json whose models the package reads.
func ModelTypes() []string {
	var names []string
	for _, l := range layouts {
		names = append(names, l.name)
	}
	return names
}

// layout returns the layout that c names.
func (c config) layout() *layout {
	l := findLayout(c.Layout)
	if l == nil {
		panic(fmt.Sprintf("transformer: layout %q", c.Layout))
	}
	return l
}

// nameOf returns the name that files have for a part of the network, without a prefix. The part's name is that of its
// subtree of parameters below the encoder's.
func (l *layout) nameOf(part string) string {
	layer, ok := strings.CutPrefix(part, layersHere)
	if !ok {
		return l.renamed(part)
	}
	number, part, _ := strings.Cut(layer, ".")
	return l.layers + number + "." + l.renamed(part)
}

// layersHere is before a layer's number in the names of parameters.
const layersHere = "encoder.layer."

func (l *layout) renamed(part string) string {
	if name, ok := l.names[part]; ok {
		return name
	}
	return part
}

// wordsName returns the name of the word embeddings in files, without a prefix.
func (l *layout) wordsName() string { return l.nameOf("embeddings.word_embeddings") + ".weight" }

// configKeys returns the keys of the config.json of a network that was made from scratch.
func configKeys(c config) map[string]json.RawMessage {
	l := c.layout()
	keys := map[string]json.RawMessage{}
	data, _ := json.Marshal(l.keys(c)) // plain numbers and strings
	_ = json.Unmarshal(data, &keys)    // valid JSON, written by Marshal
	keys["architectures"], _ = json.Marshal([]string{l.class})
	keys["model_type"], _ = json.Marshal(l.name)
	return keys
}

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
