package safetensors

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// WriteParams writes params to a file. A tensor's name is its parameter's name relative to scope, the subtree that it
// was made in.
func WriteParams(path string, params []*nn.Param, scope nn.Params) error {
	var tensors []Tensor
	for _, w := range params {
		tensors = append(tensors, Tensor{Name: nameOf(w, scope), Shape: w.Shape, Data: w.Data})
	}
	return Write(path, tensors, nil)
}

// CopyParams returns copies of params in the memory of copies, to be written while params change. Frozen ones are
// copied too, since some are fitted or tuned; frozen tables are not.
func CopyParams(params []*nn.Param, copies *nn.Copies) []*nn.Param {
	all := slices.Clone(params)
	for i, w := range params {
		if !w.Frozen || !w.Table {
			copied := *w
			copied.Data = copies.Clone(w.Data)
			all[i] = &copied
		}
	}
	return all
}

// ReadParams sets params, made in scope with or without values, from a file that WriteParams has written. The error lists
// missing and unexpected tensors, wrong shapes and values that are not finite. owner is the name, in errors, of what
// defines the params.
func ReadParams(path, owner string, params []*nn.Param, scope nn.Params) error {
	file, err := Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	var wrong []error
	known := map[string]bool{}
	for _, w := range params {
		name := nameOf(w, scope)
		known[name] = true
		info, ok := file.Info(name)
		switch {
		case !ok:
			wrong = append(wrong, fmt.Errorf("%s: tensor %q not found", path, name))
			continue
		case !slices.Equal(info.Shape, w.Shape):
			wrong = append(wrong, fmt.Errorf("%s: tensor %q has shape %v; %s requires %v", path, name, info.Shape,
				owner, w.Shape))
			continue
		}
		values, err := file.Floats(name)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", path, err))
			continue
		}
		if i := floats.NotFinite(values); i >= 0 {
			wrong = append(wrong, fmt.Errorf("%s: tensor %q has %v at index %d; want finite numbers", path,
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
			wrong = append(wrong, fmt.Errorf("%s: unexpected tensor %q: %s has no such parameter", path, info.Name,
				owner))
		}
	}
	return errors.Join(wrong...)
}

func nameOf(w *nn.Param, scope nn.Params) string {
	return strings.TrimPrefix(strings.TrimPrefix(w.Name, scope.Path()), ".")
}
