package transformer

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// Save writes config.json and model.safetensors to folder, which it creates: float32 values under the names of the
// network's own layout, and unchanged all other tensors of the model that the encoder was opened from. With LoRA the
// weights have the changes, and a folder lora within has A and B.
func (e *encoder) Save(folder string) error {
	if e.precision != nn.Float32 {
		return encoders.ErrQuantized
	}
	return e.saved(nil).Save(folder)
}

// Copy implements encoders.CopySaver.
func (e *encoder) Copy(copies *nn.Copies) encoders.Saver {
	if e.precision != nn.Float32 {
		return e
	}
	c := e.saved(copies)
	changes := map[*float32]bool{}
	for _, p := range e.params.All() {
		changes[&p.Data[0]] = !p.Frozen
	}
	for i, t := range c.tensors {
		if t.Raw == nil && changes[&t.Data[0]] {
			c.tensors[i].Data = copies.Clone(t.Data)
		}
	}
	return c
}

var _ encoders.CopySaver = (*encoder)(nil)

// savedEncoder is what Save writes.
type savedEncoder struct {
	config  any
	tensors []safetensors.Tensor // that linear layers have are copies, others may be the parameters themselves
	lora    *savedLoRA           // nil: none
}

func (e *encoder) saved(copies *nn.Copies) *savedEncoder {
	return &savedEncoder{e.savedConfig(), e.tensors(copies), e.savedLoRA(copies)}
}

// Save implements encoders.Saver.
func (c *savedEncoder) Save(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := saveConfig(filepath.Join(folder, "config.json"), c.config); err != nil {
		return err
	}
	if c.lora != nil {
		if err := c.lora.save(folder); err != nil {
			return err
		}
	}
	return safetensors.Write(filepath.Join(folder, "model.safetensors"), c.tensors, map[string]string{"format": "pt"})
}

// savedConfig returns the keys of config.json.
func (e *encoder) savedConfig() any {
	keys := configKeys(e.config)
	if e.source != nil {
		keys = e.source.config
		for _, key := range []string{"torch_dtype", "dtype"} { // the type of the values, which are float32 now
			if _, ok := keys[key]; ok {
				keys[key] = json.RawMessage(`"float32"`)
			}
		}
	}
	return keys
}

// saveConfig writes a config to a file beside path and renames it to path.
func saveConfig(path string, keys any) error {
	data, err := json.MarshalIndent(keys, "", "  ") // keys in order
	if err != nil {
		return err
	}
	beside := path + ".new"
	if err := os.WriteFile(beside, append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(beside, path)
}

// tensors returns the tensors that Save writes, with the memory of copies where they are not the parameters themselves.
func (e *encoder) tensors(copies *nn.Copies) []safetensors.Tensor {
	prefix := ""
	var tensors []safetensors.Tensor
	if s := e.source; s != nil {
		prefix, tensors = s.prefix, append(tensors, s.kept...)
	}
	values := map[string][]float32{}
	for _, p := range e.params.All() {
		values[below(p.Name, e.params)] = p.Data
	}
	for i := range e.blocks { // merged into one weight, which other programs read
		for _, name := range e.blocks[i].targets() {
			if l := e.blocks[i].target(name); l.lora != nil {
				values[below(l.weight.Name, e.params)] = l.lora.of(l.weight)
			}
		}
	}
	whole := map[string][]float32{} // fused tensors by their names
	for s := range storedParameters(e.config) {
		data := values[s.name]
		if s.linear {
			out, in := s.shape[0], s.shape[1]
			data = copies.Floats(out * in)
			kernel.Transpose(data, values[s.name], in, out)
		}
		if s.fused.of == 1 {
			tensors = append(tensors, safetensors.Tensor{Name: prefix + s.file, Shape: s.shape, Data: data})
			continue
		}
		if s.fused.row == 0 {
			whole[s.file] = copies.Floats(len(data) * s.fused.of)
			tensors = append(tensors, safetensors.Tensor{Name: prefix + s.file, Shape: s.fileShape(),
				Data: whole[s.file]})
		}
		copy(whole[s.file][s.fused.row*len(data):], data)
	}
	return e.withPooler(prefix, tensors)
}

// withPooler adds a pooler where transformers' class has one and the file none: it would be initialised randomly.
// With the identity as weight it passes the first token's state through tanh.
func (e *encoder) withPooler(prefix string, tensors []safetensors.Tensor) []safetensors.Tensor {
	if !e.config.layout().pooler {
		return tensors
	}
	for _, t := range tensors {
		if t.Name == prefix+"pooler.dense.weight" {
			return tensors
		}
	}
	d := e.config.Width
	identity := make([]float32, d*d)
	for i := range d {
		identity[i*d+i] = 1
	}
	return append(tensors,
		safetensors.Tensor{Name: prefix + "pooler.dense.weight", Shape: []int{d, d}, Data: identity},
		safetensors.Tensor{Name: prefix + "pooler.dense.bias", Shape: []int{d}, Data: make([]float32, d)})
}

// below returns a parameter's name below the subtree it was made in.
func below(name string, subtree nn.Params) string {
	if subtree.Path() == "" {
		return name
	}
	return name[len(subtree.Path())+1:]
}
