package transformer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

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
	for _, c := range e.changedLayers() {
		saved.add(c, copies)
	}
	return saved
}

// changedLayer is a linear layer of a file with the changes of its weight: several, where the file has several weights
// of the network in one.
type changedLayer struct {
	name    string // in the file
	weights int    // of the network in it
	rows    []int  // the place of each changed weight among them
	changes []*lora
}

// changedLayers returns the layers that have changes, in the order of the file.
func (e *encoder) changedLayers() []changedLayer {
	var all []changedLayer
	for s := range storedParameters(e.config) {
		l := e.changeOf(s.name)
		if l == nil {
			continue
		}
		name := strings.TrimSuffix(s.file, ".weight")
		if n := len(all); n == 0 || all[n-1].name != name {
			all = append(all, changedLayer{name: name, weights: s.fused.of})
		}
		c := &all[len(all)-1]
		c.rows, c.changes = append(c.rows, s.fused.row), append(c.changes, l)
	}
	return all
}

// add adds the A [k·r in] and B [w·out k·r] of a layer with k changes of its w weights: A has theirs one below the
// other, and B has each in the rows of its weight and the columns of its A.
func (s *savedLoRA) add(c changedLayer, copies *nn.Copies) {
	first := c.changes[0]
	in, rank, out := first.down.Shape[0], first.down.Shape[1], first.up.Shape[1]
	all := rank * len(c.changes)
	a, b := copies.Floats(all*in), copies.Floats(c.weights*out*all)
	clear(b)
	for k, l := range c.changes {
		kernel.Transpose(a[k*rank*in:][:rank*in], l.down.Data, in, rank)
		for r := range rank {
			for o := range out {
				b[(c.rows[k]*out+o)*all+k*rank+r] = l.up.Data[r*out+o]
			}
		}
	}
	s.config.Targets = append(s.config.Targets, c.name)
	if len(c.changes) > 1 { // the factor is alpha/r of the layer
		s.config.Ranks[c.name], s.config.Alphas[c.name] = all, s.config.Alpha*float64(len(c.changes))
	}
	s.tensors = append(s.tensors,
		safetensors.Tensor{Name: "base_model.model." + c.name + ".lora_A.weight", Shape: []int{all, in}, Data: a},
		safetensors.Tensor{Name: "base_model.model." + c.name + ".lora_B.weight", Shape: []int{c.weights * out, all},
			Data: b})
}

// changeOf returns the change of the weight of a name below the encoder's subtree, nil if it has none.
func (e *encoder) changeOf(weight string) *lora {
	for i := range e.blocks {
		for _, name := range e.lora.Targets {
			if l := e.blocks[i].target(name); below(l.weight.Name, e.params) == weight {
				return l.lora
			}
		}
	}
	return nil
}

// save writes the files to a folder within that of the encoder.
func (s *savedLoRA) save(encoder string) error {
	folder := filepath.Join(encoder, loraDir)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(s.config, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "adapter_config.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return safetensors.Write(filepath.Join(folder, "adapter_model.safetensors"), s.tensors,
		map[string]string{"format": "pt"})
}
