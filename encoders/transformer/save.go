package transformer

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// save is Description.Save: it writes float32 values under the names of the network's own layout, and unchanged all
// other tensors of the model that the encoder was opened from. With LoRA the weights have the changes, and a folder
// lora within has A and B.
func (e *encoder) save(copies *nn.Copies) (write func(folder string) error) {
	if e.precision != nn.Float32 {
		return func(string) error { return encoders.ErrQuantized }
	}
	return e.saved(copies).write
}

// saved returns the files with copies of all that learns.
func (e *encoder) saved(copies *nn.Copies) *savedEncoder {
	c := &savedEncoder{e.savedConfig(), e.tensors(copies), e.savedLoRA(copies)}
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

type savedEncoder struct {
	config  any
	tensors []safetensors.Tensor // that linear layers have are copies, others may be the parameters themselves
	lora    *savedLoRA           // nil: none
}

// write writes the files to folder, which it creates.
func (c *savedEncoder) write(folder string) error {
	if c.lora != nil {
		err := writeFiles(filepath.Join(folder, loraDir), "adapter_config.json", c.lora.config,
			"adapter_model.safetensors", c.lora.tensors)
		if err != nil {
			return err
		}
	}
	return writeFiles(folder, "config.json", c.config, "model.safetensors", c.tensors)
}

func writeFiles(folder, configName string, config any, tensorsName string, tensors []safetensors.Tensor) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := files.WriteJSON(filepath.Join(folder, configName), config); err != nil {
		return err
	}
	return safetensors.Write(filepath.Join(folder, tensorsName), tensors, map[string]string{"format": "pt"})
}

func (e *encoder) savedConfig() any {
	keys := e.config.fileKeys()
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

// tensors returns the tensors that Save writes, with the memory of copies where they are not the parameters themselves.
func (e *encoder) tensors(copies *nn.Copies) []safetensors.Tensor {
	prefix := ""
	var tensors []safetensors.Tensor
	if s := e.source; s != nil {
		prefix, tensors = s.prefix, append(tensors, s.kept...)
	}
	for _, t := range e.inFile("", copies) { // with the changes of LoRA, which other programs read
		t.Name = prefix + t.Name
		tensors = append(tensors, t)
	}
	return e.withPooler(prefix, tensors)
}

// inFile iterates over the tensors of the parameters as a file has them, without a prefix, each with one of the
// parameters that it has. Their weights have the changes called adapter. The values of linear layers and of fused
// tensors are in the memory of copies, others are the parameters themselves.
func (e *encoder) inFile(adapter string, copies *nn.Copies) iter.Seq2[parameter, safetensors.Tensor] {
	return func(yield func(parameter, safetensors.Tensor) bool) {
		whole := map[string][]float32{} // fused tensors by their names
		for _, p := range e.parameters {
			data := p.values(adapter)
			if p.linear != nil {
				out, in := p.shape[0], p.shape[1]
				turned := copies.Floats(out * in)
				kernel.Transpose(turned, data, in, out)
				data = turned
			}
			if p.in.of > 1 {
				if p.in.row == 0 {
					whole[p.in.name] = copies.Floats(len(data) * p.in.of)
				}
				copy(whole[p.in.name][p.in.row*len(data):], data)
				if p.in.row < p.in.of-1 {
					continue
				}
				data = whole[p.in.name]
				delete(whole, p.in.name)
			}
			if !yield(p, safetensors.Tensor{Name: p.in.name, Shape: p.fileShape(), Data: data}) {
				return
			}
		}
	}
}

// withPooler adds a pooler where transformers' class has one and the file none: it would be initialised randomly.
// With the identity as weight it passes the first token's state through tanh.
func (e *encoder) withPooler(prefix string, tensors []safetensors.Tensor) []safetensors.Tensor {
	if !e.config.layout.pooler {
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

// loraDir is the folder, beside the merged weights, of A and B. It is not the weights' own folder: there transformers
// would add the changes to weights that have them already.
const loraDir = "lora"

// savedLoRA are the changes of an encoder's weights in the files of PEFT, the library of Hugging Face.
type savedLoRA struct {
	config  peftConfig
	tensors []safetensors.Tensor
}

// peftConfig has the keys of an adapter_config.json. Those that PEFT has beside these have its defaults.
type peftConfig struct {
	Type      string   `json:"peft_type"`
	Base      *string  `json:"base_model_name_or_path"` // null: the reader has loaded the base model
	Rank      int      `json:"r"`
	Alpha     float64  `json:"lora_alpha"`
	Dropout   float64  `json:"lora_dropout"`
	Bias      string   `json:"bias"`
	FanInOut  bool     `json:"fan_in_fan_out"` // weights are [out in]
	Inference bool     `json:"inference_mode"`
	Targets   []string `json:"target_modules"` // names of the layers within transformers' model

	Ranks  map[string]int     `json:"rank_pattern"` // of layers that have others
	Alphas map[string]float64 `json:"alpha_pattern"`
}

// savedLoRA returns copies of A and B of all weights that they change, in the memory of copies; nil if there are none.
// Adapters of tasks are parameters of their own, which are not saved with the encoder.
func (e *encoder) savedLoRA(copies *nn.Copies) *savedLoRA {
	if e.lora.Rank == 0 || e.lora.PerTask {
		return nil
	}
	saved := &savedLoRA{config: peftConfig{Type: "LORA", Rank: e.lora.Rank, Alpha: e.lora.Alpha, Bias: "none",
		Inference: true, Ranks: map[string]int{}, Alphas: map[string]float64{}}}
	changed := slices.Clone(e.parameters)
	changed = slices.DeleteFunc(changed, func(p parameter) bool { return p.linear == nil || p.linear.lora == nil })
	for len(changed) > 0 {
		n := 1 // weights that the file has in one layer
		for n < len(changed) && changed[n].in.name == changed[0].in.name {
			n++
		}
		saved.add(changed[:n], copies)
		changed = changed[n:]
	}
	return saved
}

// add adds the A [k·r in] and B [w·out k·r] of a layer of the file that has w weights of the network, k of them
// changed: A has theirs one below the other, and B has each in the rows of its weight and the columns of its A.
func (s *savedLoRA) add(changed []parameter, copies *nn.Copies) {
	file, first := changed[0].in, changed[0].linear.lora
	in, rank, out := first.down.Shape[0], first.down.Shape[1], first.up.Shape[1]
	all := rank * len(changed)
	a, b := copies.Floats(all*in), copies.Floats(file.of*out*all)
	clear(b)
	for k, p := range changed {
		kernel.Transpose(a[k*rank*in:][:rank*in], p.linear.lora.down.Data, in, rank)
		for r := range rank {
			for o := range out {
				b[(p.in.row*out+o)*all+k*rank+r] = p.linear.lora.up.Data[r*out+o]
			}
		}
	}
	name := strings.TrimSuffix(file.name, ".weight")
	s.config.Targets = append(s.config.Targets, name)
	if len(changed) > 1 { // the factor is alpha/r of the layer
		s.config.Ranks[name], s.config.Alphas[name] = all, s.config.Alpha*float64(len(changed))
	}
	s.tensors = append(s.tensors,
		safetensors.Tensor{Name: "base_model.model." + name + ".lora_A.weight", Shape: []int{all, in}, Data: a},
		safetensors.Tensor{Name: "base_model.model." + name + ".lora_B.weight", Shape: []int{file.of * out, all},
			Data: b})
}
