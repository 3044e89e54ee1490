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
}

// savedLoRA returns copies of A and B of all weights that they change, in the memory of copies; nil if there are none.
// Adapters of tasks are parameters of their own, which are not saved with the encoder.
func (e *encoder) savedLoRA(copies *nn.Copies) *savedLoRA {
	if e.lora.Rank == 0 || e.lora.PerTask {
		return nil
	}
	saved := &savedLoRA{config: peftConfig{Type: "LORA", Rank: e.lora.Rank, Alpha: e.lora.Alpha, Bias: "none",
		Inference: true}}
	transposed := func(name string, w *nn.Param) {
		in, out := w.Shape[0], w.Shape[1]
		data := copies.Floats(in * out)
		kernel.Transpose(data, w.Data, in, out)
		saved.tensors = append(saved.tensors, safetensors.Tensor{Name: name, Shape: []int{out, in}, Data: data})
	}
	for s := range storedParameters(e.config) {
		l := e.changeOf(s.name)
		if l == nil {
			continue
		}
		layer := strings.TrimSuffix(s.file, ".weight")
		saved.config.Targets = append(saved.config.Targets, layer)
		transposed("base_model.model."+layer+".lora_A.weight", l.down) // [r in]
		transposed("base_model.model."+layer+".lora_B.weight", l.up)   // [out r]
	}
	return saved
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
