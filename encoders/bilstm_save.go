package encoders

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/nn"
)

// Save writes config.json and model.safetensors to folder, which it creates.
func (e *bilstm) Save(folder string) error { return e.save(folder, e.params.All()) }

// Copy implements CopySaver.
func (e *bilstm) Copy(copies *nn.Copies) Saver {
	return savedBiLSTM{e, checkpoint.CopyLearning(e.params.All(), copies)}
}

var _ CopySaver = (*bilstm)(nil)

// savedBiLSTM are copies of the parameters of an encoder.
type savedBiLSTM struct {
	encoder *bilstm
	params  []*nn.Param
}

// Save implements Saver.
func (s savedBiLSTM) Save(folder string) error { return s.encoder.save(folder, s.params) }

func (e *bilstm) save(folder string, params []*nn.Param) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(e.config, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "config.json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	return checkpoint.Write(filepath.Join(folder, "model.safetensors"), params, e.params)
}
