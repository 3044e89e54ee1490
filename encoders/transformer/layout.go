package transformer

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
)

// layout is one family of networks: its declaration is all that loading, saving, config.json, freezing, quantization,
// LoRA and memory estimates know of it. Its networks have the sizes and rates of a config.
type layout struct {
	name   string // model_type in config.json
	class  string // transformers' class of the encoder alone
	prefix string // before the encoder's names in files of models for a task, such as "bert."
	pooler bool   // transformers' class has a pooler

	layers string // before a layer's number in the names of files
	// parts are those of its networks, by the names that they have here, BERT's, which are below layersHere and the
	// number where each layer has one. A part that is not listed is not in the networks:
	//   - without embeddings.position_embeddings, positions rotate queries and keys;
	//   - with encoder.relative_attention_bias, attention has a bias for each distance;
	//   - with intermediate.gate, the feed-forward layer's activation is multiplied by a second linear layer;
	//   - with intermediate.LayerNorm, the inputs of attention and feed-forward are normalised, and the last states by
	//     encoder.LayerNorm, instead of sums.
	parts map[string]inFile

	// afterPadding says that positions are counted from the padding token's id + 1 on, as in fairseq. Padding tokens
	// within a text have that id as their position, and are not counted.
	afterPadding bool
	// ownEmbeddingDropout says that the first states have a dropout rate of their own.
	ownEmbeddingDropout bool
	// outputDropout returns the dropout rate of attention's output; nil: no dropout.
	outputDropout func(c config) float64

	// keys returns the keys of config.json, architectures and model_type aside, with the places in c of their values.
	keys func(c *config) configKeys
}

// inFile is the name of a part in files, and its place where a tensor there has several parts below each other: row of
// so many. of 0 is 1.
type inFile struct {
	name    string
	row, of int
}

// layersHere is before a layer's number in the names of parameters.
const layersHere = "encoder.layer."

// layouts are the families, in the order in which errors list them.
var layouts = []*layout{
	&bertLayout, &distilbertLayout, &robertaLayout, &xlmRobertaLayout, &camembertLayout, &electraLayout, &mpnetLayout,
	&modernbertLayout,
}

func findLayout(name string) *layout {
	i := slices.IndexFunc(layouts, func(l *layout) bool { return l.name == name })
	if i < 0 {
		return nil
	}
	return layouts[i]
}

func layoutNames() string { return strings.Join(ModelTypes(), ", ") }

// ModelTypes returns the values of model_type in config.json whose models the package reads.
func ModelTypes() []string {
	var names []string
	for _, l := range layouts {
		names = append(names, l.name)
	}
	return names
}

// with returns parts with other names in files, without those whose name is "".
func with(parts map[string]inFile, names map[string]string) map[string]inFile {
	parts = maps.Clone(parts)
	for part, name := range names {
		parts[part] = inFile{name: name}
	}
	maps.DeleteFunc(parts, func(_ string, in inFile) bool { return in.name == "" })
	return parts
}

func (l *layout) has(part string) bool { return l.parts[part].name != "" }

func (l *layout) rotary() bool { return !l.has("embeddings.position_embeddings") }

func (l *layout) gated() bool { return l.has("intermediate.gate") }

func (l *layout) preNorm() bool { return l.has("intermediate.LayerNorm") }

// wordsName returns the name of the word embeddings in files, without a prefix.
func (l *layout) wordsName() string { return l.parts["embeddings.word_embeddings"].name + ".weight" }

// hiddenDropout is the rate for hidden states, which most layouts have for attention's output.
func hiddenDropout(c config) float64 { return c.Dropout }

// parameter is one of a network's: what freezing, files, quantization, LoRA and memory estimates know of it.
type parameter struct {
	*nn.Param         // nil in a list that was made of a config alone
	name      string  // below the encoder's subtree
	level     int     // 0 of the embeddings, i+1 of layer i
	linear    *linear // that it is the weight of, [in out], and in files [out in]; nil for none
	table     bool    // of embeddings, whose rows are looked up by number

	shape []int  // in files, where it is not fused with others
	in    inFile // its tensor, without a prefix
}

func (p parameter) fileShape() []int {
	shape := slices.Clone(p.shape)
	shape[0] *= p.in.of
	return shape
}

// values returns the parameter's, of a linear layer with the changes of its weight: those of LoRA, and of an adapter.
func (p parameter) values(adapter string) []float32 {
	if p.linear == nil {
		return p.Data
	}
	values, _ := p.linear.adapted(adapter).values()
	return values
}

// builder makes the parts of a network. Each parameter is declared where its part is made, and only there: the list of
// all has what else is to be known of it.
type builder struct {
	config
	params nn.Params // the encoder's subtree
	only   bool      // the list is made, and no parameters
	level  int       // of what is made next
	list   []parameter
	zeros  []float32 // in place of the biases of norms that have none

	global, local *rotary // positions of layers; nil where they are not rotary
}

// parametersOf returns the list of the parameters of a network, none of which is made.
func parametersOf(c config) []parameter {
	b := &builder{config: c, only: true}
	b.network()
	return b.list
}

// at returns the subtree of a part, for parameters that are none of the network's list, such as the places of dropout.
func (b *builder) at(part string) nn.Params { return b.params.In(b.path(part)) }

// path returns the name of a part: below the layer's where it is in one.
func (b *builder) path(part string) string {
	if b.level == 0 || strings.HasPrefix(part, "encoder.") {
		return part
	}
	return layersHere + strconv.Itoa(b.level-1) + "." + part
}

// add adds a parameter of a part to the list, made by create, with its shape in files.
func (b *builder) add(part, kind string, p parameter, create func(at nn.Params) *nn.Param) *nn.Param {
	file := b.layout.parts[part]
	if file.name == "" {
		panic(fmt.Sprintf("transformer: layout %s has no part %s", b.layout.name, part))
	}
	if path := b.path(part); path != part {
		file.name = b.layout.layers + strconv.Itoa(b.level-1) + "." + file.name
	}
	p.name, p.level = b.path(part)+"."+kind, b.level
	p.in = inFile{file.name + "." + kind, file.row, max(file.of, 1)}
	if !b.only {
		p.Param = create(b.at(part))
	}
	b.list = append(b.list, p)
	return p.Param
}

// table makes the table of a part [rows width].
func (b *builder) table(part string, rows, width int) *nn.Param {
	return b.add(part, "weight", parameter{shape: []int{rows, width}, table: true}, func(at nn.Params) *nn.Param {
		return at.Table("weight", b.InitializerRange, rows, width)
	})
}

func (b *builder) linear(part string, in, out int, biased bool) *linear {
	l := newLinear()
	l.weight = b.add(part, "weight", parameter{shape: []int{out, in}, linear: l}, func(at nn.Params) *nn.Param {
		return at.Normal("weight", b.InitializerRange, in, out)
	})
	if biased {
		l.bias = b.vector(part, "bias", out, nn.Params.Zeros)
	}
	return l
}

func (b *builder) norm(part string, width int) norm {
	n := norm{weight: b.vector(part, "weight", width, nn.Params.Ones), epsilon: b.Epsilon}
	if !b.NoBias.Norms {
		n.bias = b.vector(part, "bias", width, nn.Params.Zeros)
	} else if !b.only {
		if len(b.zeros) < width {
			b.zeros = make([]float32, width)
		}
		n.zeros = b.zeros[:width]
	}
	return n
}

func (b *builder) vector(part, kind string, n int, create func(nn.Params, string, ...int) *nn.Param) *nn.Param {
	return b.add(part, kind, parameter{shape: []int{n}}, func(at nn.Params) *nn.Param { return create(at, kind, n) })
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
