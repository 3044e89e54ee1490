package transformer

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// modernbertLayout is ModernBERT's (Warner et al. 2024), which Ettin and mmBERT have, too: pre-norm with a final norm,
// rotary positions, attention in windows in some layers, and a gated feed-forward layer. The first layer has no norm
// before attention. config.json says which linear layers and norms have biases.
var modernbertLayout = layout{
	name: "modernbert", class: "ModernBertModel", prefix: "model.",
	layers: "layers.",
	parts: map[string]inFile{
		"embeddings.word_embeddings": {name: "embeddings.tok_embeddings"},
		"embeddings.LayerNorm":       {name: "embeddings.norm"},
		"attention.LayerNorm":        {name: "attn_norm"},
		"attention.self.query":       {"attn.Wqkv", 0, 3},
		"attention.self.key":         {"attn.Wqkv", 1, 3},
		"attention.self.value":       {"attn.Wqkv", 2, 3},
		"attention.output.dense":     {name: "attn.Wo"},
		"intermediate.LayerNorm":     {name: "mlp_norm"},
		"intermediate.dense":         {"mlp.Wi", 0, 2},
		"intermediate.gate":          {"mlp.Wi", 1, 2},
		"output.dense":               {name: "mlp.Wo"},
		"encoder.LayerNorm":          {name: "final_norm"},
	},
	ownEmbeddingDropout: true,
	outputDropout:       func(c config) float64 { return c.AttentionDropout },
	keys:                modernbertKeys,
}

// modernbertFile has the values of a config.json that are not as the network has them. transformers 4 writes
// global_rope_theta, local_rope_theta and global_attn_every_n_layers, transformers 5 rope_parameters and layer_types.
type modernbertFile struct {
	normBias, attentionBias, feedForwardBias bool

	local      *int // tokens of a window
	sliding    *int // half of them
	every      int
	globalBase float64
	localBase  *float64 // nil: the global one
	layerTypes []string
	rope       ropesFile
	scaling    json.RawMessage
}

// modernbertKeys are those of transformers' ModernBertConfig. Of the others, classifier_pooling is that of a head, which
// jenga's heads have an option for, and deterministic_flash_attn is for GPUs.
func modernbertKeys(c *config) configKeys {
	f := newModernBERTFile(*c)
	localBase := 10000.0
	return configKeys{keys: []key{
		sizeKey("vocab_size", &c.Vocabulary, 50368, maxSize),
		sizeKey("hidden_size", &c.Width, 768, maxSize),
		sizeKey("num_hidden_layers", &c.Layers, 22, maxLayers),
		sizeKey("num_attention_heads", &c.Heads, 12, maxSize),
		sizeKey("intermediate_size", &c.FeedForward, 1152, maxSize),
		sizeKey("max_position_embeddings", &c.MaxPositions, 8192, maxSize),
		oldKey("global_attn_every_n_layers", &f.every, 3).checked(inRange(&f.every, 1, maxLayers)).ofEachLayer(),
		rateKey("attention_dropout", &c.AttentionDropout, 0),
		rateKey("embedding_dropout", &c.EmbeddingDropout, 0),
		rateKey("mlp_dropout", &c.Dropout, 0),
		onlyKey("hidden_activation", "gelu"),
		epsilonKey("norm_eps", &c.Epsilon, 1e-5),
		newKey("norm_bias", &f.normBias, false),
		newKey("attention_bias", &f.attentionBias, false),
		newKey("mlp_bias", &f.feedForwardBias, false),
		newKey("local_attention", &f.local, nil),
		oldKey("sliding_window", &f.sliding, nil),
		oldKey("global_rope_theta", &f.globalBase, 160000),
		oldKey("local_rope_theta", &f.localBase, &localBase),
		newKey("layer_types", &f.layerTypes, nil).ofEachLayer(),
		newKey("rope_parameters", &f.rope, ropesFile{}),
		oldKey("rope_scaling", &f.scaling, nil),
		// It is written as null: transformers' default, 50283, must be in the vocabulary.
		newKey("pad_token_id", new(*int), nil),
	}, finish: func(given map[string]json.RawMessage) []error {
		f.rope.setOthers(given["rope_parameters"])
		return f.set(c)
	}}
}

// newModernBERTFile returns what transformers 5 writes for a network.
func newModernBERTFile(c config) *modernbertFile {
	window := 2 * c.Window
	f := &modernbertFile{
		normBias: !c.NoBias.Norms, attentionBias: !c.NoBias.Attention, feedForwardBias: !c.NoBias.FeedForward,
		local: &window,
	}
	for i := range c.Layers {
		kind := globalLayer
		if c.Local[i] {
			kind = localLayer
		}
		f.layerTypes = append(f.layerTypes, kind)
	}
	f.rope.Global, f.rope.Local = newRopeFile(c.GlobalBase), newRopeFile(c.LocalBase)
	return f
}

// set sets in c what f has, and returns errors of values that no network can have.
func (f *modernbertFile) set(c *config) (refused []error) {
	refuse := func(format string, args ...any) { refused = append(refused, fmt.Errorf(format, args...)) }
	c.NoBias = biases{Attention: !f.attentionBias, FeedForward: !f.feedForwardBias, Norms: !f.normBias}
	f.setWindow(c, refuse)
	f.rope.check(refuse)
	f.setBases(c, refuse)
	f.checkLayers(c.Layers, refuse)
	if len(refused) > 0 || f.every < 1 || c.Layers > maxLayers {
		return refused
	}
	c.Local = map[int]bool{}
	for i := range c.Layers {
		if len(f.layerTypes) > 0 && f.layerTypes[i] == localLayer || len(f.layerTypes) == 0 && i%f.every != 0 {
			c.Local[i] = true
		}
	}
	return nil
}

// refuse adds an error of a value that no network can have.
type refuse = func(format string, args ...any)

func (f *modernbertFile) setWindow(c *config, refuse refuse) {
	window := 128 // transformers' default: half of them at each side
	switch {
	case f.local != nil:
		window = *f.local
	case f.sliding != nil:
		window = 2 * *f.sliding
	}
	c.Window = window / 2
	switch {
	case f.local != nil && (*f.local < 2 || *f.local > maxSize):
		refuse("local_attention is %d; want 2 to %d", *f.local, maxSize)
	case f.sliding != nil && (*f.sliding < 1 || *f.sliding > maxSize/2):
		refuse("sliding_window is %d; want 1 to %d", *f.sliding, maxSize/2)
	case f.sliding != nil && *f.sliding != c.Window:
		refuse("sliding_window is %d, but local_attention is %d; want a local_attention of twice sliding_window",
			*f.sliding, *f.local)
	}
}

// setBases sets the bases of rotary positions in global and in local layers, of which several keys may have each.
func (f *modernbertFile) setBases(c *config, refuse refuse) {
	type number struct {
		key   string
		value float64
	}
	global := number{"global_rope_theta", f.globalBase}
	local := global
	if f.localBase != nil {
		local = number{"local_rope_theta", *f.localBase}
	}
	if base := f.rope.Global.Base; base != nil {
		global = number{"rope_parameters." + globalLayer + ".rope_theta", *base}
	}
	if base := f.rope.Local.Base; base != nil {
		local = number{"rope_parameters." + localLayer + ".rope_theta", *base}
	}
	c.GlobalBase, c.LocalBase = global.value, local.value
	for _, base := range slices.Compact([]number{global, local}) {
		if !(base.value >= 1 && base.value <= 1e12) {
			refuse("%s is %v; want a number from 1 to 1e12, such as 10000", base.key, base.value)
		}
	}
}

func (f *modernbertFile) checkLayers(layers int, refuse refuse) {
	if len(f.scaling) > 0 && string(f.scaling) != "null" {
		refuse("rope_scaling is not supported; want null")
	}
	if n := len(f.layerTypes); n > 0 && n != layers {
		refuse("layer_types lists %d layers, but num_hidden_layers is %d", n, layers)
	}
	for i, kind := range f.layerTypes {
		if kind != globalLayer && kind != localLayer {
			refuse("layer_types: layer %d is %q; want %q or %q", i, kind, globalLayer, localLayer)
			return
		}
	}
}

// ropesFile is rope_parameters of a config.json: an object for each type of layers. For models whose layers have one
// type, transformers 5 writes the keys of ropeFile in its place; it refuses them for ModernBERT.
type ropesFile struct {
	Global ropeFile `json:"full_attention"`
	Local  ropeFile `json:"sliding_attention"`

	others []string // keys that are not the two above, in order
}

// ropeFile has the rotary positions of layers. A missing key has transformers' default.
type ropeFile struct {
	Type    *string  `json:"rope_type,omitempty"`
	OldType *string  `json:"type,omitempty"` // transformers reads it where there is no rope_type
	Base    *float64 `json:"rope_theta,omitempty"`
}

func newRopeFile(base float64) ropeFile {
	kind := ropeType
	return ropeFile{Type: &kind, Base: &base}
}

const (
	globalLayer = "full_attention"
	localLayer  = "sliding_attention"

	ropeType = "default" // the one that is supported
)

// setOthers sets the keys of rope_parameters that have no meaning; data is its value, which has been parsed.
func (f *ropesFile) setOthers(data json.RawMessage) {
	var all map[string]json.RawMessage
	_ = json.Unmarshal(data, &all)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if key != globalLayer && key != localLayer {
			f.others = append(f.others, key)
		}
	}
}

// check refuses what no network can have, but bases.
func (f ropesFile) check(refuse refuse) {
	if len(f.others) > 0 {
		refuse("rope_parameters has %s; want the keys %s and %s, each with rope_type and rope_theta",
			strings.Join(f.others, ", "), globalLayer, localLayer)
	}
	check := func(layer, key string, value *string) {
		if value != nil && *value != ropeType {
			refuse("rope_parameters.%s.%s %q is not supported; %q is", layer, key, *value, ropeType)
		}
	}
	check(globalLayer, "rope_type", f.Global.Type)
	check(globalLayer, "type", f.Global.OldType)
	check(localLayer, "rope_type", f.Local.Type)
	check(localLayer, "type", f.Local.OldType)
}
