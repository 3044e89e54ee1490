package transformer

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
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
	prefix, err := w.prefix(c.layout())
	if err != nil {
		return nil, err
	}
	found, err := w.match(c, keys, prefix)
	if err != nil {
		return nil, err
	}

	env.Params = env.Params.WithoutValues()
	e, err := newEncoder(c, env)
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

	e.source = &source{prefix: prefix, config: keys, words: found["embeddings.word_embeddings.weight"].tensor}
	if e.source.kept, err = w.rest(found); err != nil {
		return nil, err
	}
	if viewed {
		e.source.mapped, w.mapped = w.mapped, nil
	}
	if prefix != "" && prefix != c.layout().prefix {
		e.source.dropPrefix()
	}
	return e, nil
}

// setValues sets the parameters that have float32 values to those of found. viewed reports whether the words are in a
// mapped file.
func (e *encoder) setValues(found map[string]matched) (viewed bool, err error) {
	viewed = e.embeddings.mapped
	var wrong mistakes
	read := tensorReader{}
	for _, p := range e.params.All() {
		name := below(p.Name, e.params)
		t, ok := found[name]
		if !ok {
			panic("transformer: no file holds parameter " + name)
		}
		if t.DType == int8Type {
			continue // quantize has read it
		}
		if p == e.embeddings.words && p.Frozen && t.view != nil {
			if p.Data, viewed = t.view(); viewed {
				continue // its values are checked by checkWords, when rows are read
			}
		}
		values, err := read.of(t)
		if err != nil {
			return false, fmt.Errorf("%s: %w", t.file, err)
		}
		if i := floats.NotFinite(values); i >= 0 {
			n, f := len(values), t.param.fused
			wrong.add(t.file, t.Name, fmt.Sprintf("holds %v as value %d of %d", values[i], f.row*n+i, f.of*n))
			continue
		}
		if t.param.linear {
			p.Data = kernel.Floats(len(values))
			kernel.Transpose(p.Data, values, t.param.shape[0], t.param.shape[1])
		} else {
			p.Data = values
		}
	}
	return viewed, wrong.err()
}

// matched is the tensor of a parameter.
type matched struct {
	tensor
	param stored
}

// match returns the tensor of each parameter of a network by the parameter's name. All that are missing, or have
// another shape or type, are one error. keys are those of config.json.
func (w *weights) match(c config, keys map[string]json.RawMessage, prefix string) (map[string]matched, error) {
	missing := missingSizes(c, keys)
	if err := w.checkLayers(c, missing, prefix); err != nil {
		return nil, err
	}
	var wrong mistakes
	found := map[string]matched{}
	for s := range storedParameters(c) {
		name := prefix + s.file
		t, ok := w.tensors[name]
		if !ok {
			t, ok = w.tensors[oldName(name)]
		}
		switch {
		case !ok:
			wrong.add(w.path, name, "is missing")
		case !slices.Equal(t.Shape, s.fileShape()):
			wrong.add(t.file, t.Name, misshapen(t, s, missing))
		case t.DType == int8Type && (s.linear || s.table) && t.ints != nil:
			w.matchScales(t, &wrong)
		case !safetensors.IsFloat(t.DType):
			wrong.add(t.file, t.Name, fmt.Sprintf("has type %s; F32, F16 and BF16 are read", t.DType))
		default:
			w.checkUnscaled(t, &wrong)
		}
		found[s.name] = matched{t, s}
	}
	w.addBiases(found, &wrong)
	return found, wrong.err()
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

// Close unmaps the file that a frozen encoder's word embeddings are read from. The encoder must not be used afterwards.
// An encoder that is never closed keeps the file mapped until the program ends; that takes address space, but no memory
// that the system cannot reclaim.
func (e *encoder) Close() error {
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
