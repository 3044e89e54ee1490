package model

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// unsaved is an encoder that learns, but cannot be saved.
type unsaved struct {
	encoders.Trainable
	files []string // that it was read from
}

func (e unsaved) Describe() encoders.Description { return encoders.Description{Files: e.files} }

func TestAnEncoderThatLearnsCanBeSaved(t *testing.T) {
	for _, test := range []struct {
		name, path string
		encoder    encoders.Encoder
		frozen     bool
		want       string
	}{
		{"from nothing", "", unsaved{}, false, "starts from nothing, but cannot be saved"},
		{"learning", "base", unsaved{}, false, "learns, but cannot be saved"},
		{"frozen", "base", unsaved{files: []string{"base/config.json"}}, true, ""},
		{"frozen, of unknown files", "base", unsaved{}, true, "can neither be saved nor tell"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := &multitask.Model{Encoder: test.encoder, Params: nn.NewParams(1)}
			m.Params.In("encoder").Zeros("w", 2).Frozen = test.frozen
			err := checkSaves(m, test.path)
			if (err == nil) != (test.want == "") || err != nil && !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("checkSaves = %v, want %q", err, test.want)
			}
		})
	}
}
