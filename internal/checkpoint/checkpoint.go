// Package checkpoint writes parameters to safetensors files and reads them back. A tensor's name is its parameter's
// below the corner it was made in.
package checkpoint

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// Write writes params, made below corner, to a file.
func Write(path string, params []*nn.Param, corner nn.Params) error {
	var tensors []safetensors.Tensor
	for _, w := range params {
		tensors = append(tensors, safetensors.Tensor{Name: name(w, corner), DType: "F32", Shape: w.Shape, Data: w.Data})
	}
	return safetensors.Write(path, tensors, nil)
}

// Read fills in params, made below corner with or without values, from a file that Write has written; what is missing,
// too much, of another shape or not finite is one error. asker is what errors call the one who asks for these params.
func Read(path, asker string, params []*nn.Param, corner nn.Params) error {
	file, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var wrong []error
	known := map[string]bool{}
	for _, w := range params {
		name := name(w, corner)
		known[name] = true
		info, ok := file.Info(name)
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("%s: no tensor %q", path, name))
			continue
		case !slices.Equal(info.Shape, w.Shape):
			wrong = append(wrong, fmt.Errorf("%s: tensor %q has shape %v; %s asks for %v", path, name, info.Shape,
				asker, w.Shape))
			continue
		}
		values, err := file.Floats(name)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
			continue
		}
		if i := slices.IndexFunc(values,
			func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }); i >= 0 {
			wrong = append(wrong, fmt.Errorf("%s: tensor %q has %v at place %d; want numbers that are finite", path,
				name, values[i], i))
			continue
		}
		if w.Data == nil {
			w.Data = values
		} else {
			copy(w.Data, values)
		}
		w.Changed()
	}
	for _, info := range file.Tensors() {
		if !known[info.Name] {
			wrong = append(wrong, fmt.Errorf("%s: tensor %q is none that %s asks for", path, info.Name, asker))
		}
	}
	return errors.Join(wrong...)
}

func name(w *nn.Param, corner nn.Params) string {
	return strings.TrimPrefix(strings.TrimPrefix(w.Name, corner.Path()), ".")
}
