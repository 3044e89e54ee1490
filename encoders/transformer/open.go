package transformer

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/plugin"
)

const (
	maxListed = 20      // problems that an error lists
	maxKept   = 1 << 30 // bytes of tensors that are kept for Save
)

// source is what an encoder keeps of the model that it was opened from.
type source struct {
	files  []string                   // all that was read
	prefix string                     // before the encoder's names: "", or such as "bert."
	config map[string]json.RawMessage // all of config.json
	kept   []safetensors.Tensor       // tensors that the network does not use, such as a pooler
	words  tensor                     // the word embeddings
	mapped []*safetensors.Mapping     // of the word embeddings where they are frozen; none: they are a copy
}

// open makes an encoder of the model at env.Model, a folder or an .onnx file.
func open(env encoders.Env) (*encoder, error) {
	folder := env.Model
	stat, err := os.Stat(env.Model)
	if err != nil {
		return nil, err
	}
	if !stat.IsDir() {
		if filepath.Ext(env.Model) != ".onnx" {
			return nil, fmt.Errorf("%s: not a folder and not an .onnx file; "+
				"want the folder that holds config.json and model.safetensors", env.Model)
		}
		folder = filepath.Dir(env.Model)
	}
	configPath := filepath.Join(folder, "config.json")
	c, keys, err := readConfig(configPath)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: config.json not found, which describes the weights", folder)
	}
	if err != nil {
		return nil, err
	}
	if env.Vocabulary > c.Vocabulary {
		return nil, fmt.Errorf("%s: vocab_size is %d, but the tokenizer has %d tokens",
			configPath, c.Vocabulary, env.Vocabulary)
	}
	if env.MaxLength > c.maxTokens() {
		return nil, fmt.Errorf("%s: %w", configPath,
			&encoders.LengthError{Max: c.maxTokens(), Length: env.MaxLength, Before: c.firstPosition()})
	}
	if env.DropoutSet {
		c.setDropout(env.Dropout)
	}
	if env.Layers != nil {
		if c, err = c.choose(env.Layers, keys); err != nil {
			return nil, err
		}
	}

	w, err := openWeights(env.Model, folder)
	if err != nil {
		return nil, err
	}
	defer w.close()
	e, err := load(w, c, keys, env)
	if err != nil {
		return nil, err
	}
	e.source.files = append([]string{configPath}, w.paths...)
	return e, nil
}

// load makes the encoder of c with the values of w. It checks all shapes before it allocates memory by the sizes in c.
func load(w *weights, c config, keys map[string]json.RawMessage, env encoders.Env) (*encoder, error) {
	prefix, err := w.prefix(c.layout)
	if err != nil {
		return nil, err
	}
	env.Params = env.Params.WithoutValues()
	e, err := newEncoder(c, env)
	if err != nil {
		return nil, err
	}
	found, err := w.match(e, keys, prefix)
	if err != nil {
		return nil, err
	}
	if err := e.quantize(w, found); err != nil {
		return nil, err
	}
	viewed, err := e.setValues(found)
	if err != nil {
		return nil, err
	}

	e.source = &source{prefix: prefix, config: keys, words: found[0].tensor}
	if e.source.kept, err = w.rest(found, c, prefix); err != nil {
		return nil, err
	}
	if viewed {
		e.source.mapped, w.mapped = w.mapped, nil
	}
	if prefix != "" && prefix != c.layout.prefix {
		e.source.dropPrefix()
	}
	return e, nil
}

// setValues sets the parameters that have float32 values to those of found. viewed reports whether the words are in a
// mapped file.
func (e *encoder) setValues(found []matched) (viewed bool, err error) {
	viewed = e.embeddings.mapped
	var wrong mistakes
	var whole struct { // the last tensor of several parts, of which the next one may be
		name   string
		values []float32
	}
	for _, t := range found {
		if t.DType == int8Type {
			continue // quantize has read it
		}
		if t.Param == e.embeddings.words && t.Frozen {
			if m := t.mapped(); m != nil {
				t.Data, viewed = m.Floats(t.tensor.Name)
			}
			if viewed {
				continue // its values are checked by checkWords, when rows are read
			}
		}
		if whole.name != t.tensor.Name {
			if whole.values, err = t.floats(); err != nil {
				return false, fmt.Errorf("%s: %w", t.file, err)
			}
			whole.name = t.tensor.Name
		}
		size := len(whole.values) / t.in.of
		values := whole.values[t.in.row*size : (t.in.row+1)*size]
		if i := floats.NotFinite(values); i >= 0 {
			wrong.add(t.file, t.tensor.Name, fmt.Sprintf("holds %v as value %d of %d", values[i], t.in.row*size+i,
				len(whole.values)))
			continue
		}
		switch {
		case t.linear != nil:
			t.Data = kernel.Floats(size)
			kernel.Transpose(t.Data, values, t.shape[0], t.shape[1])
		case t.in.of > 1:
			t.Data = slices.Clone(values)
		default:
			t.Data = values
		}
	}
	return viewed, wrong.err()
}

type matched struct {
	tensor
	parameter
}

// match returns the tensors of the parameters of a network. All that are missing, or have another shape or type, are
// one error. keys are those of config.json.
func (w *weights) match(e *encoder, keys map[string]json.RawMessage, prefix string) ([]matched, error) {
	missing := e.config.missingSizes(keys)
	if err := w.checkLayers(e.config, missing, prefix); err != nil {
		return nil, err
	}
	var wrong mistakes
	var found, wide []matched // wide: floats that are not read
	for _, p := range e.parameters {
		name := prefix + e.config.nameInFile(p)
		t, ok := w.tensors[name]
		if !ok {
			t, ok = w.tensors[oldName(name)]
		}
		switch {
		case !ok:
			wrong.add(w.path, name, "is missing")
		case !slices.Equal(t.Shape, p.fileShape()):
			wrong.add(t.file, t.Name, misshapen(t, p, missing))
		case t.DType == int8Type && (p.linear != nil || p.table):
			w.matchScales(t, &wrong)
		case t.DType == "F64" || strings.HasPrefix(t.DType, "F8_"):
			wide = append(wide, matched{t, p})
		case !safetensors.IsFloat(t.DType):
			wrong.add(t.file, t.Name, fmt.Sprintf("has type %s; F32, F16 and BF16 are read", t.DType))
		default:
			w.checkUnscaled(t, &wrong)
		}
		found = append(found, matched{t, p})
	}
	w.addBiases(found, &wrong)
	return found, errors.Join(wrong.err(), otherFloats(wide))
}

// otherFloats returns one error of all tensors with a type of floats that is not read.
func otherFloats(all []matched) error {
	if len(all) == 0 {
		return nil
	}
	t := all[0].tensor
	remedy := "want the model from before it was quantized"
	switch folder := filepath.Dir(t.file); {
	case strings.EqualFold(filepath.Ext(t.file), ".onnx"):
		remedy = "export the model in float32"
	case t.DType == "F64":
		remedy = fmt.Sprintf("transformers writes it in float32: "+
			"AutoModel.from_pretrained(%q).float().save_pretrained(%[1]q)",
			folder)
	}
	return fmt.Errorf("%s: %s of type %s, as %q; F32, F16 and BF16 are read; %s", t.file,
		plugin.Count(len(all), "tensor"), t.DType, t.Name, remedy)
}

// checkWords checks the word embeddings of tokens, whose ids are in the vocabulary, where they are mapped from a file.
// It runs before the kernels: the values, and whether the file still has them, are known only when they are read.
func (e *encoder) checkWords(ids []int32) (err error) {
	table, width := e.embeddings.words.Data, e.embeddings.width
	ints := e.embeddings.integers[e.embeddings.words].Data
	if table == nil && ints == nil {
		panic("transformer: an encoder is used after Close")
	}
	if e.source == nil || len(e.source.mapped) == 0 {
		return nil
	}
	t := e.source.words

	// Reading beyond the end of a file that became shorter is a fault, which in a kernel's goroutine would end the
	// program.
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if _, fault := r.(interface{ Addr() uintptr }); fault {
			err = fmt.Errorf("%s: tensor %q can no longer be read: the file was truncated while it was in use; "+
				"open the model again", t.file, t.Name)
		} else if r != nil {
			panic(r)
		}
	}()
	for _, id := range ids {
		from, to := int(id)*width, (int(id)+1)*width
		if ints != nil {
			if i := slices.Index(ints[from:to], -128); i >= 0 {
				return fmt.Errorf("%s: tensor %q holds -128 as value %d of row %d; want -127 to 127", t.file, t.Name,
					i, id)
			}
			continue
		}
		row := table[from:to]
		if i := floats.NotFinite(row); i >= 0 {
			return fmt.Errorf("%s: tensor %q holds %v as value %d of row %d", t.file, t.Name, row[i], i, id)
		}
	}
	return nil
}

// close unmaps the file that a frozen encoder's word embeddings are read from. The encoder must not be used afterwards.
// An encoder that is never closed keeps the file mapped until the program ends; that takes address space, but no memory
// that the system cannot reclaim.
func (e *encoder) close() error {
	if e.source == nil || len(e.source.mapped) == 0 {
		return nil
	}
	e.embeddings.words.Data = nil
	delete(e.embeddings.integers, e.embeddings.words)
	mapped := e.source.mapped
	e.source.mapped = nil
	return closeAll(mapped)
}

// dropPrefix removes an unusual prefix from the encoder's names, so that transformers finds it. Tensors outside the
// encoder are dropped.
func (s *source) dropPrefix() {
	var kept []safetensors.Tensor
	for _, t := range s.kept {
		var ok bool
		if t.Name, ok = strings.CutPrefix(t.Name, s.prefix); ok {
			kept = append(kept, t)
		}
	}
	s.prefix, s.kept = "", kept
}

// mistakes collects the problems of a model's tensors, to be reported together: of each tensor the first, since fused
// tensors are looked at once for each part.
type mistakes struct {
	tensors map[string]bool
	listed  []error
	more    int
}

func (m *mistakes) add(file, tensor, what string) {
	if m.tensors[tensor] {
		return
	}
	if m.tensors == nil {
		m.tensors = map[string]bool{}
	}
	m.tensors[tensor] = true
	if len(m.listed) == maxListed {
		m.more++
		return
	}
	m.listed = append(m.listed, fmt.Errorf("%s: tensor %q %s", file, tensor, what))
}

func (m *mistakes) err() error {
	if m.more > 0 {
		return errors.Join(append(m.listed, fmt.Errorf("and %s", plugin.Count(m.more, "more tensor")))...)
	}
	return errors.Join(m.listed...)
}

// checkFamily returns an error for weights under the prefix of another layout than l. All their names and shapes may be
// those of l, as RoBERTa's are BERT's, where positions are counted otherwise.
func (w *weights) checkFamily(l *layout) error {
	for _, other := range layouts {
		if other.prefix == l.prefix || len(w.prefixesOf(other.prefix+other.wordsName())) == 0 {
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

// misshapen describes a tensor that has another shape than its parameter. Where the latter is because of missing keys,
// it names them.
func misshapen(t tensor, p parameter, missing []key) string {
	want := p.fileShape()
	var because []string
	for _, m := range missing {
		for i, d := range p.shape {
			if d == m.size() && (len(t.Shape) != len(want) || t.Shape[i] != want[i]) {
				because = append(because, m.missing())
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
func (w *weights) checkLayers(c config, missing []key, prefix string) error {
	layers := 0
	for name := range w.tensors {
		if i, ok := c.layerOf(name, prefix); ok {
			layers = max(layers, i+1)
		}
	}
	want := cmp.Or(c.All, c.Layers)
	if layers == 0 || layers == want {
		return nil
	}
	has := strconv.Itoa(want)
	for _, m := range missing {
		if m.name == "num_hidden_layers" || m.name == "n_layers" {
			has = m.missing()
		}
	}
	return fmt.Errorf("%s: the weights have %d layers, but config.json has %s; want the config.json of these weights",
		w.path, layers, has)
}

// addBiases adds to wrong the biases in the file of parts that have none by config.json: without them the network would
// be another one.
func (w *weights) addBiases(found []matched, wrong *mistakes) {
	files := map[string]bool{}
	for _, f := range found {
		files[f.tensor.Name] = true
	}
	for _, f := range found {
		part, ok := strings.CutSuffix(f.tensor.Name, ".weight")
		if !ok {
			continue
		}
		if t, ok := w.tensors[part+".bias"]; ok && !files[t.Name] {
			files[t.Name] = true
			wrong.add(t.file, t.Name, "is a bias of a part that has none by config.json")
		}
	}
}
