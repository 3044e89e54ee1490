package transformer

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// checkFamily returns an error for weights under the prefix of another layout than l. All their names and shapes may be
// those of l, as RoBERTa's are BERT's, where positions are counted otherwise.
func (w *weights) checkFamily(l *layout) error {
	for _, other := range layouts {
		if other.prefix == l.prefix || !w.has(other.prefix+other.wordsName()) {
			continue
		}
		var types []string
		for _, o := range layouts {
			if o.prefix == other.prefix {
				types = append(types, strconv.Quote(o.name))
			}
		}
		return fmt.Errorf("%s: the tensors' prefix %q is that of the layout %s, but config.json has model_type %q; "+
			"want model_type %s", w.path, other.prefix, other.name, l.name, strings.Join(types, " or "))
	}
	return nil
}

// has reports whether there is a tensor of a name, which may have more before it.
func (w *weights) has(name string) bool {
	for t := range w.tensors {
		if t == name || strings.HasSuffix(t, "."+name) {
			return true
		}
	}
	return false
}

// sizeKeys are the keys of config.json that the shapes and the number of tensors depend on, each with another key that
// some layout reads in its place.
var sizeKeys = [][2]string{
	{"vocab_size"}, {"hidden_size"}, {"dim", "hidden_size"}, {"embedding_size"}, {"num_attention_heads"},
	{"num_hidden_layers"}, {"n_layers", "num_hidden_layers"}, {"intermediate_size"}, {"hidden_dim"},
	{"max_position_embeddings"}, {"type_vocab_size"}, {"relative_attention_num_buckets"},
}

// missingSizes returns the sizes that config.json, whose keys are given, lacks: those in c are defaults.
func missingSizes(c config, given map[string]json.RawMessage) (missing []size) {
	has := func(key string) bool {
		value, ok := given[key]
		return ok && string(value) != "null"
	}
	all := configKeys(c)
	for _, names := range sizeKeys {
		key := names[0]
		if value, err := strconv.Atoi(string(all[key])); err == nil && !has(key) && !has(names[1]) {
			missing = append(missing, size{key: key, value: value})
		}
	}
	return missing
}

// String says that config.json lacks the size.
func (s size) String() string { return fmt.Sprintf("no %s, whose default is %d", s.key, s.value) }

// misshapen describes a tensor that has another shape than its parameter. Where the latter is because of missing keys,
// it names them.
func misshapen(t tensor, s stored, missing []size) string {
	want := s.fileShape()
	var because []string
	for _, m := range missing {
		for i, d := range s.shape {
			if d == m.value && (len(t.Shape) != len(want) || t.Shape[i] != want[i]) {
				because = append(because, m.String())
				break
			}
		}
	}
	if len(because) == 0 {
		return fmt.Sprintf("has shape %v; config.json requires %v", t.Shape, want)
	}
	return fmt.Sprintf("has shape %v; want %v, as config.json has %s", t.Shape, want, strings.Join(because, " and "))
}

// checkLayers returns an error for weights of another number of layers than config.json has.
func (w *weights) checkLayers(c config, missing []size, prefix string) error {
	layers := 0
	for name := range w.tensors {
		rest, ok := strings.CutPrefix(name, prefix+c.layout().layers)
		if !ok {
			continue
		}
		number, _, _ := strings.Cut(rest, ".")
		if i, err := strconv.Atoi(number); err == nil && i >= 0 && i < 1<<20 {
			layers = max(layers, i+1)
		}
	}
	if layers == 0 || layers == c.Layers {
		return nil
	}
	has := strconv.Itoa(c.Layers)
	for _, m := range missing {
		if m.key == "num_hidden_layers" || m.key == "n_layers" {
			has = m.String()
		}
	}
	return fmt.Errorf("%s: the weights have %d layers, but config.json has %s; want the config.json of these weights",
		w.path, layers, has)
}

// addBiases adds to wrong the biases in the file of parts that have none by config.json: without them the network would
// be another one.
func (w *weights) addBiases(found map[string]matched, wrong *mistakes) {
	names := make([]string, 0, len(found))
	files := map[string]bool{}
	for name, t := range found {
		names, files[t.Name] = append(names, name), true
	}
	slices.Sort(names)
	for _, name := range names {
		part, ok := strings.CutSuffix(found[name].Name, ".weight")
		if !ok {
			continue
		}
		if t, ok := w.tensors[part+".bias"]; ok && !files[t.Name] {
			files[t.Name] = true
			wrong.add(t.file, t.Name, "is a bias of a part that has none by config.json")
		}
	}
}
