package transformer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/onnx"
	"github.com/jenga-nlp/jenga/internal/safetensors"
)

const maxIndexBytes = 64 << 20

// tensor is one of a model's tensors, in any of its files.
type tensor struct {
	safetensors.Info
	file   string
	made   bool // derived by the reader of a graph: no file has a tensor of that name
	floats func() ([]float32, error)
	raw    func() ([]byte, error)
	ints   func() ([]int8, error) // of type I8, which graphs have none of
	// mapped returns the file mapped to memory, whose values are read-only and valid while the weights' mappings are
	// open; nil where they must be read instead.
	mapped func() *safetensors.Mapping
}

type weights struct {
	path    string   // the name of all files together in errors
	paths   []string // of all files
	tensors map[string]tensor
	files   []*safetensors.File
	// mappings of files whose tensors were viewed; an encoder that keeps a view takes them over
	mapped []*safetensors.Mapping
}

// openWeights opens the weights of a model: an .onnx file, or a folder.
func openWeights(model, folder string) (*weights, error) {
	if model != folder {
		return openONNX(model)
	}
	single := filepath.Join(folder, "model.safetensors")
	index := single + ".index.json"
	graph := filepath.Join(folder, "model.onnx")
	switch {
	case exists(single):
		w := &weights{path: single, tensors: map[string]tensor{}}
		return w, w.add(single)
	case exists(index):
		return openShards(index)
	case exists(graph):
		return openONNX(graph)
	}
	for _, name := range []string{"pytorch_model.bin", "pytorch_model.bin.index.json"} {
		if pickle := filepath.Join(folder, name); exists(pickle) {
			return nil, fmt.Errorf("%s: a pickle, which is not read because it can run code; in Python, "+
				"transformers' AutoModel.from_pretrained(%q).save_pretrained(%q) writes a model.safetensors", pickle,
				folder, folder)
		}
	}
	return nil, fmt.Errorf("%s: no weights; want model.safetensors, model.safetensors.index.json or model.onnx%s",
		folder, otherWeights(folder))
}

// otherWeights names the files of a folder that hold weights in another form, or under another name.
func otherWeights(folder string) string {
	entries, _ := os.ReadDir(folder)
	var names []string
	for _, e := range entries {
		ending := strings.ToLower(filepath.Ext(strings.TrimSuffix(e.Name(), ".incomplete")))
		if slices.Contains([]string{".safetensors", ".onnx", ".h5", ".msgpack", ".gguf", ".bin", ".pt"}, ending) {
			names = append(names, e.Name())
		}
	}
	safe := func(name string) bool { return strings.HasSuffix(name, ".safetensors") }
	switch {
	case len(names) == 0:
		return ""
	case len(names) == 1 && safe(names[0]):
		return fmt.Sprintf("; if %q is whole, name it model.safetensors", names[0])
	case !slices.ContainsFunc(names, func(name string) bool { return !safe(name) }):
		return fmt.Sprintf("; it has %q without the index, which names the file of each tensor: download that "+
			"too", names)
	}
	return fmt.Sprintf("; it has %q, which are not read", names)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (w *weights) add(path string) error {
	f, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	w.files, w.paths = append(w.files, f), append(w.paths, path)
	mapping := sync.OnceValue(func() *safetensors.Mapping {
		m, err := f.Map()
		if err != nil {
			return nil // the tensors are read instead, which reports any error
		}
		w.mapped = append(w.mapped, m)
		return m
	})
	for _, info := range f.Tensors() {
		if other, duplicate := w.tensors[info.Name]; duplicate {
			return fmt.Errorf("%s: duplicate tensor %q, which is in %s too", path, info.Name, other.file)
		}
		w.tensors[info.Name] = tensor{
			Info: info, file: path,
			floats: func() ([]float32, error) { return f.Floats(info.Name) },
			raw:    func() ([]byte, error) { return f.Raw(info.Name) },
			ints:   func() ([]int8, error) { return f.Int8s(info.Name) },
			mapped: mapping,
		}
	}
	return nil
}

func (w *weights) close() {
	for _, f := range w.files {
		f.Close()
	}
	closeAll(w.mapped)
}

func closeAll(mappings []*safetensors.Mapping) error {
	var errs []error
	for _, m := range mappings {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}

// openShards opens the files that an index names.
func openShards(index string) (*weights, error) {
	var file struct {
		Map map[string]string `json:"weight_map"` // tensor to file
	}
	if err := files.ReadJSON(index, maxIndexBytes, &file); err != nil {
		return nil, err
	}
	w := &weights{path: index, paths: []string{index}, tensors: map[string]tensor{}}
	for _, shard := range slices.Compact(slices.Sorted(maps.Values(file.Map))) {
		if shard == "" || shard != filepath.Base(shard) || !filepath.IsLocal(shard) {
			w.close()
			return nil, fmt.Errorf("%s: weight_map names %q; want the name of a file beside the index", index, shard)
		}
		err := w.add(filepath.Join(filepath.Dir(index), shard))
		if err != nil {
			w.close()
			if errors.Is(err, fs.ErrNotExist) {
				err = fmt.Errorf("%s: weight_map names %q, which is not beside it; download that too", index, shard)
			}
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(file.Map)) {
		if t, ok := w.tensors[name]; !ok || filepath.Base(t.file) != file.Map[name] {
			w.close()
			return nil, fmt.Errorf("%s: tensor %q is not in %s, where weight_map has it", index, name, file.Map[name])
		}
	}
	return w, nil
}

// openONNX opens the weights in an ONNX graph. The tokenizer's files must be in the same folder: graphs are often
// distributed without them, and token ids mean nothing without a tokenizer.
func openONNX(path string) (*weights, error) {
	folder := filepath.Dir(path)
	if !corpus.HasTokenizer(folder) {
		return nil, fmt.Errorf("%s: no tokenizer beside it; want tokenizer.json, vocab.txt, or vocab.json with "+
			"merges.txt in %s", path, folder)
	}
	f, err := onnx.Open(path)
	if err != nil {
		return nil, err
	}
	w := &weights{path: path, paths: append([]string{path}, f.ExternalFiles()...), tensors: map[string]tensor{}}
	for _, t := range f.Tensors() {
		w.tensors[t.Name] = tensor{
			Info: t.Info, file: path,
			made:   t.Derived,
			floats: t.Floats,
			raw:    t.Raw,
			mapped: func() *safetensors.Mapping { return nil },
		}
	}
	return w, nil
}

// prefix returns the prefix of the encoder's names: a model for a task has its encoder under a name such as "bert.".
func (w *weights) prefix(l *layout) (string, error) {
	prefixes := w.prefixesOf(l.wordsName())
	for _, usual := range []string{"", l.prefix} {
		if slices.Contains(prefixes, usual) {
			return usual, nil
		}
	}
	if err := w.checkFamily(l); err != nil || len(prefixes) == 0 {
		return "", err
	}
	if len(prefixes) > 1 {
		return "", fmt.Errorf("%s: several encoders, under the names %q; want one", w.path, prefixes)
	}
	return prefixes[0], nil
}

// prefixesOf returns what the tensors of a name have before it, in order.
func (w *weights) prefixesOf(name string) (prefixes []string) {
	for t := range w.tensors {
		if p, ok := strings.CutSuffix(t, name); ok && (p == "" || strings.HasSuffix(p, ".")) {
			prefixes = append(prefixes, p)
		}
	}
	slices.Sort(prefixes)
	return prefixes
}

// rest reads the tensors that the network of c does not use, in the order of their names, but those of layers that were
// not chosen.
func (w *weights) rest(used []matched, c config, prefix string) ([]safetensors.Tensor, error) {
	needed := map[string]bool{}
	for _, t := range used {
		needed[t.tensor.Name], needed[scalesOf(t.tensor.Name)] = true, true
	}
	var kept []safetensors.Tensor
	total := int64(0)
	for _, name := range slices.Sorted(maps.Keys(w.tensors)) {
		t := w.tensors[name]
		_, ofLayer := c.layerOf(name, prefix)
		if needed[name] || t.made || ofLayer && c.Chosen != nil {
			continue
		}
		if t.Bytes() > maxKept-total {
			return nil, fmt.Errorf("%s: more than %d bytes of tensors that the encoder does not use; remove them",
				w.path, maxKept)
		}
		total += t.Bytes()
		raw, err := t.raw()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.file, err)
		}
		kept = append(kept, safetensors.Tensor{Name: name, Shape: t.Shape, DType: t.DType, Raw: raw})
	}
	return kept, nil
}
