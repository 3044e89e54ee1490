package transformer

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// unlike says why networks of a model_type cannot be read in the layout that is nearest to theirs.
type unlike struct{ nearest, why string }

// unsupported are well-known values of model_type that have no layout.
var unsupported = map[string]unlike{
	"albert":               {"bert", "its layers share one set of weights"},
	"bart":                 {"roberta", "it has a decoder"},
	"big_bird":             {"bert", "its attention is sparse by blocks"},
	"canine":               {"bert", "it reads characters, which convolutions make shorter"},
	"convbert":             {"electra", "its layers have convolutions beside attention"},
	"deberta":              {"roberta", "its attention is disentangled: products of content and relative position"},
	"deberta-v2":           {"roberta", "its attention is disentangled: products of content and relative position"},
	"ernie":                {"bert", "it has embeddings of tasks"},
	"esm":                  {"roberta", "it has rotary positions, and norms before its layers"},
	"eurobert":             {"modernbert", "it has RMS norms and SwiGLU"},
	"fnet":                 {"bert", "it has Fourier transforms in place of attention"},
	"funnel":               {"bert", "its layers make a text shorter"},
	"gemma2":               {"modernbert", "it is a decoder: a token does not read those after it"},
	"gemma3_text":          {"modernbert", "it has RMS norms, norms of queries and keys, and heads that share keys"},
	"gpt2":                 {"roberta", "it is a decoder: a token does not read those after it"},
	"ibert":                {"roberta", "its layers compute with integers"},
	"layoutlm":             {"bert", "it has embeddings of places on a page"},
	"llama":                {"modernbert", "it is a decoder: a token does not read those after it"},
	"longformer":           {"roberta", "its windows have global tokens with weights of their own"},
	"luke":                 {"roberta", "it has embeddings of entities, and attention of their own to them"},
	"megatron-bert":        {"bert", "it has norms before its layers"},
	"mistral":              {"modernbert", "it is a decoder: a token does not read those after it"},
	"mobilebert":           {"bert", "its layers have bottlenecks"},
	"modernbert-decoder":   {"modernbert", "it is a decoder: a token does not read those after it"},
	"mt5":                  {"mpnet", "it has a decoder, RMS norms, and a feed-forward layer with another gate"},
	"neobert":              {"modernbert", "it has RMS norms and SwiGLU"},
	"new":                  {"modernbert", "it is code of its own beside the model: rotary positions, and norms after the sums"},
	"nomic_bert":           {"modernbert", "it has norms after the sums, and SwiGLU"},
	"nystromformer":        {"bert", "its attention is an approximation"},
	"qwen2":                {"modernbert", "it is a decoder: a token does not read those after it"},
	"qwen3":                {"modernbert", "it is a decoder: a token does not read those after it"},
	"rembert":              {"bert", "its embeddings have a width of their own and a bias of their projection"},
	"roberta-prelayernorm": {"roberta", "it has norms before its layers"},
	"roformer":             {"bert", "it has rotary positions"},
	"squeezebert":          {"bert", "its linear layers are convolutions in groups"},
	"t5":                   {"mpnet", "it has a decoder, RMS norms, and no embeddings of positions"},
	"xlm":                  {"bert", "it has embeddings of languages, and norms in other places"},
	"xlm-roberta-xl":       {"xlm-roberta", "it has norms before its layers"},
	"xlnet":                {"bert", "it has relative positions of its own, and no embeddings of positions"},
	"xmod":                 {"xlm-roberta", "it has adapters for each language"},
}

// errUnsupported returns the error of a model_type without a layout.
func errUnsupported(path, modelType string) error {
	const onnx = "Exported to ONNX, another encoder can be used frozen, by encoder: {type: hugot}"
	hint := "."
	if other, ok := unsupported[modelType]; ok {
		hint = fmt.Sprintf("; the nearest layout is %s, but %s.", other.nearest, other.why)
	} else if name, ok := suggest.Nearest(modelType, ModelTypes()); ok {
		hint = fmt.Sprintf("; did you mean %q?", name)
	}
	return fmt.Errorf("%s: model_type %q is not supported%s Supported: %s. %s", path, modelType, hint, layoutNames(),
		onnx)
}
