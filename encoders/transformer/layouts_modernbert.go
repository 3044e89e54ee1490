package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/jsonfile"
)

// modernbertLayout is ModernBERT's (Warner et al. 2024), which Ettin and mmBERT have, too: pre-norm with a final norm,
// rotary positions, attention in windows in some layers, and a gated feed-forward layer. The first layer has no norm
// before attention. config.json says which linear layers and norms have biases.
var modernbertLayout = layout{
	name: "modernbert", class: "ModernBertModel", prefix: "model.",
	layers: "layers.",
	names: map[string]string{
		"embeddings.word_embeddings": "embeddings.tok_embeddings",
		"embeddings.LayerNorm":       "embeddings.norm",
		"attention.LayerNorm":        "attn_norm",
		"attention.self.query":       "attn.Wqkv",
		"attention.self.key":         "attn.Wqkv",
		"attention.self.value":       "attn.Wqkv",
		"attention.output.dense":     "attn.Wo",
		"intermediate.LayerNorm":     "mlp_norm",
		"intermediate.dense":         "mlp.Wi",
		"intermediate.gate":          "mlp.Wi",
		"output.dense":               "mlp.Wo",
		"encoder.LayerNorm":          "final_norm",
	},
	fused: map[string]fused{
		"attention.self.query": {0, 3}, "attention.self.key": {1, 3}, "attention.self.value": {2, 3},
		"intermediate.dense": {0, 2}, "intermediate.gate": {1, 2},
	},
	rotary: true, preNorm: true, gated: true, ownEmbeddingDropout: true,
	outputDropout: func(c config) float64 { return c.AttentionDropout },
	read:          readModernBERT,
	keys:          modernbertKeys,
}

// modernbertFile has the keys of a config.json that the network depends on. A missing key has the default of
// transformers' ModernBertConfig. transformers 4 writes global_rope_theta, local_rope_theta and
// global_attn_every_n_layers, transformers 5 rope_parameters and layer_types. Of the others, classifier_pooling is that
// of a head, which jenga's heads have an option for, and deterministic_flash_attn is for GPUs.
type modernbertFile struct {
	Vocabulary         int             `json:"vocab_size"`
	Width              int             `json:"hidden_size"`
	Layers             int             `json:"num_hidden_layers"`
	Heads              int             `json:"num_attention_heads"`
	FeedForward        int             `json:"intermediate_size"`
	MaxPositions       int             `json:"max_position_embeddings"`
	Activation         string          `json:"hidden_activation"`
	Epsilon            float64         `json:"norm_eps"`
	NormBias           bool            `json:"norm_bias"`
	AttentionBias      bool            `json:"attention_bias"`
	FeedForwardBias    bool            `json:"mlp_bias"`
	AttentionDropout   float64         `json:"attention_dropout"`
	EmbeddingDropout   float64         `json:"embedding_dropout"`
	FeedForwardDropout float64         `json:"mlp_dropout"`
	Local              *int            `json:"local_attention"`          // tokens of a window
	Sliding            *int            `json:"sliding_window,omitempty"` // half of local_attention
	Every              int             `json:"global_attn_every_n_layers,omitempty"`
	GlobalBase         float64         `json:"global_rope_theta,omitempty"`
	LocalBase          *float64        `json:"local_rope_theta,omitempty"` // null: the global one
	LayerTypes         []string        `json:"layer_types"`
	Rope               ropesFile       `json:"rope_parameters"`
	Scaling            json.RawMessage `json:"rope_scaling,omitempty"`
	// Padding is written as null: transformers' default, 50283, must be in the vocabulary.
	Padding *int `json:"pad_token_id"`
}

func readModernBERT(path string, data []byte) (config, []error, error) {
	localBase := 10000.0
	f := modernbertFile{
		Vocabulary: 50368, Width: 768, Layers: 22, Heads: 12, FeedForward: 1152, MaxPositions: 8192, Activation: "gelu",
		Epsilon: 1e-5, Every: 3, GlobalBase: 160000, LocalBase: &localBase,
	}
	if err := jsonfile.Unmarshal(path, data, &f); err != nil {
		return config{}, nil, err
	}
	f.Rope.setOthers(data)
	refused := f.refuse()
	global, local := f.bases()
	c := config{
		Layout: "modernbert", Vocabulary: f.Vocabulary, Layers: f.Layers, Width: f.Width, Heads: f.Heads,
		FeedForward: f.FeedForward, MaxPositions: f.MaxPositions, Epsilon: f.Epsilon, Activation: f.Activation,
		Dropout: f.FeedForwardDropout, EmbeddingDropout: f.EmbeddingDropout, AttentionDropout: f.AttentionDropout,
		Window: f.windowTokens() / 2, GlobalBase: global.value, LocalBase: local.value,
		NoBias: biases{Attention: !f.AttentionBias, FeedForward: !f.FeedForwardBias, Norms: !f.NormBias},
	}
	if len(refused) == 0 {
		for i := range f.Layers {
			if len(f.LayerTypes) > 0 && f.LayerTypes[i] == localLayer || len(f.LayerTypes) == 0 && i%f.Every != 0 {
				c.Local.add(i)
			}
		}
	}
	return c, refused, nil
}

// refuse returns the values that no network can have.
func (f modernbertFile) refuse() []error {
	refused := refuseSizes([]size{
		{"vocab_size", f.Vocabulary, maxSize}, {"hidden_size", f.Width, maxSize},
		{"num_hidden_layers", f.Layers, maxLayers},
		{"num_attention_heads", f.Heads, maxSize}, {"intermediate_size", f.FeedForward, maxSize},
		{"max_position_embeddings", f.MaxPositions, maxSize}, {"global_attn_every_n_layers", f.Every, maxLayers},
	})
	refused = append(refused, refuseNumbers("hidden_size", f.Width, "num_attention_heads", f.Heads, []number{
		{"attention_dropout", f.AttentionDropout}, {"embedding_dropout", f.EmbeddingDropout},
		{"mlp_dropout", f.FeedForwardDropout}})...)
	refused = append(refused, refuseActivation("hidden_activation", f.Activation)...)
	refused = append(refused, refuseEpsilon("norm_eps", f.Epsilon)...)
	refused = append(refused, f.refuseWindow()...)
	refused = append(refused, f.Rope.refuse()...)
	refused = append(refused, f.refuseBases()...)
	if len(f.Scaling) > 0 && string(f.Scaling) != "null" {
		refused = append(refused, errors.New("rope_scaling is not supported; want null"))
	}
	if n := len(f.LayerTypes); n > 0 && n != f.Layers {
		refused = append(refused, fmt.Errorf("layer_types lists %d layers, but num_hidden_layers is %d", n, f.Layers))
	}
	for i, kind := range f.LayerTypes {
		if kind != globalLayer && kind != localLayer {
			refused = append(refused, fmt.Errorf("layer_types: layer %d is %q; want %q or %q", i, kind, globalLayer,
				localLayer))
			break
		}
	}
	return refused
}

// modernbertKeys returns the keys that transformers 5 writes.
func modernbertKeys(c config) any {
	window := 2 * c.Window
	f := modernbertFile{
		Vocabulary: c.Vocabulary, Width: c.Width, Layers: c.Layers, Heads: c.Heads, FeedForward: c.FeedForward,
		MaxPositions: c.MaxPositions, Activation: c.Activation, Epsilon: c.Epsilon,
		NormBias: !c.NoBias.Norms, AttentionBias: !c.NoBias.Attention, FeedForwardBias: !c.NoBias.FeedForward,
		AttentionDropout: c.AttentionDropout, EmbeddingDropout: c.EmbeddingDropout, FeedForwardDropout: c.Dropout,
		Local: &window,
	}
	for i := range c.Layers {
		kind := globalLayer
		if c.Local.has(i) {
			kind = localLayer
		}
		f.LayerTypes = append(f.LayerTypes, kind)
	}
	f.Rope.Global, f.Rope.Local = newRopeFile(c.GlobalBase), newRopeFile(c.LocalBase)
	return f
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

// newRopeFile returns the rotary positions of a base.
func newRopeFile(base float64) ropeFile {
	kind := ropeType
	return ropeFile{Type: &kind, Base: &base}
}

const (
	globalLayer = "full_attention"
	localLayer  = "sliding_attention"

	ropeType = "default" // the one that is supported
)

// setOthers sets the keys of rope_parameters that have no meaning; data is config.json, which has been parsed.
func (f *ropesFile) setOthers(data []byte) {
	var file struct {
		Rope map[string]json.RawMessage `json:"rope_parameters"`
	}
	_ = json.Unmarshal(data, &file)
	for _, key := range slices.Sorted(maps.Keys(file.Rope)) {
		if key != globalLayer && key != localLayer {
			f.others = append(f.others, key)
		}
	}
}

// refuse returns the values that no network can have, but bases.
func (f ropesFile) refuse() (refused []error) {
	if len(f.others) > 0 {
		refused = append(refused, fmt.Errorf("rope_parameters has %s; want the keys %s and %s, each with rope_type "+
			"and rope_theta", strings.Join(f.others, ", "), globalLayer, localLayer))
	}
	check := func(layer, key string, value *string) {
		if value != nil && *value != ropeType {
			refused = append(refused, fmt.Errorf("rope_parameters.%s.%s %q is not supported; %q is", layer, key,
				*value, ropeType))
		}
	}
	check(globalLayer, "rope_type", f.Global.Type)
	check(globalLayer, "type", f.Global.OldType)
	check(localLayer, "rope_type", f.Local.Type)
	check(localLayer, "type", f.Local.OldType)
	return refused
}

// bases returns the bases of rotary positions in global and in local layers, under the keys that have them.
func (f modernbertFile) bases() (global, local number) {
	global = number{"global_rope_theta", f.GlobalBase}
	local = global
	if f.LocalBase != nil {
		local = number{"local_rope_theta", *f.LocalBase}
	}
	if base := f.Rope.Global.Base; base != nil {
		global = number{"rope_parameters." + globalLayer + ".rope_theta", *base}
	}
	if base := f.Rope.Local.Base; base != nil {
		local = number{"rope_parameters." + localLayer + ".rope_theta", *base}
	}
	return global, local
}

// refuseBases returns errors of bases that no rotary positions can have.
func (f modernbertFile) refuseBases() (refused []error) {
	global, local := f.bases()
	for _, base := range slices.Compact([]number{global, local}) {
		if !isBase(base.value) {
			refused = append(refused, fmt.Errorf("%s is %v; want a number from 1 to 1e12, such as 10000", base.key,
				base.value))
		}
	}
	return refused
}

// isBase reports whether rotary positions can have a base.
func isBase(value float64) bool { return value >= 1 && value <= 1e12 }

// defaultWindow is transformers' default of local_attention.
const defaultWindow = 128

// windowTokens returns the number of tokens of a window, half of them at each side.
func (f modernbertFile) windowTokens() int {
	switch {
	case f.Local != nil:
		return *f.Local
	case f.Sliding != nil:
		return 2 * *f.Sliding
	}
	return defaultWindow
}

// refuseWindow returns an error of a window that no network can have.
func (f modernbertFile) refuseWindow() []error {
	switch {
	case f.Local != nil && (*f.Local < 2 || *f.Local > maxSize):
		return []error{fmt.Errorf("local_attention is %d; want 2 to %d", *f.Local, maxSize)}
	case f.Sliding != nil && (*f.Sliding < 1 || *f.Sliding > maxSize/2):
		return []error{fmt.Errorf("sliding_window is %d; want 1 to %d", *f.Sliding, maxSize/2)}
	case f.Sliding != nil && *f.Sliding != f.windowTokens()/2:
		return []error{fmt.Errorf("sliding_window is %d, but local_attention is %d; want a local_attention of twice "+
			"sliding_window", *f.Sliding, *f.Local)}
	}
	return nil
}
