package snapshots

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// A snapshot is a safetensors file. Its tensors are the parameters' values and the slots of the optimizer's state, as
// KIND/SLOT/PARAMETER; its metadata are the format, all else as JSON, and a CRC-32C of the tensors and the JSON.
const (
	format    = "jenga snapshot 2" // the number is the version: another one is an error
	valueSlot = "value"            // of the parameter itself

	formatKey, stateKey, sumKey = "format", "state", "crc32c"
)

const (
	maxState   = 32 << 20 // bytes of the JSON, which a header may have twice as many of
	maxObjects = 1 << 20  // in it: parameters, settings, shuffled groups
)

// state is all of a snapshot except the numbers of its parameters and of the optimizer, for which it has their names.
type state struct {
	Snapshot
	Kinds []kindState `json:"kinds"`
}

type kindState struct {
	Name   string       `json:"name"`
	Params []paramState `json:"params"`
}

type paramState struct {
	Name  string   `json:"name"`
	Steps int      `json:"steps"` // updates
	Slots []string `json:"slots,omitempty"`
}

// tensorName returns the name of a slot of a parameter. No kind and no slot has a slash in its name.
func tensorName(kind, slot, param string) string { return kind + "/" + slot + "/" + param }

// Write writes the snapshot to a file that Read reads. It returns an error before it writes anything if the state of
// sampler and weighting is too large.
func (s *Snapshot) Write(path string) error {
	all := state{Snapshot: *s}
	var tensors []safetensors.Tensor
	for _, kind := range s.Kinds {
		of := kindState{Name: kind.Name}
		for _, p := range kind.Params {
			param := paramState{Name: p.Name, Steps: p.Steps}
			add := func(slot string, values []float32) {
				tensors = append(tensors, safetensors.Tensor{Name: tensorName(kind.Name, slot, p.Name),
					Shape: []int{len(values)}, Data: values})
			}
			if p.Values != nil {
				add(valueSlot, p.Values)
			}
			for _, slot := range p.Slots {
				add(slot.Name, slot.Values)
				param.Slots = append(param.Slots, slot.Name)
			}
			of.Params = append(of.Params, param)
		}
		all.Kinds = append(all.Kinds, of)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	if len(text) > maxState {
		return fmt.Errorf("snapshot: a header of %d bytes, with %d of the sampler's state, %d of the weighting's and %d "+
			"of the best evaluation and other data of the run; want at most %d", len(text), len(s.Sampler),
			len(s.Weighting), len(s.Attached), maxState)
	}
	metadata := map[string]string{formatKey: format, stateKey: string(text)}
	metadata[sumKey] = fmt.Sprintf("%08x", safetensors.Sum(tensors, metadata))
	return safetensors.Write(path, tensors, metadata)
}

// Read reads a file that Write has written.
func Read(path string) (*Snapshot, error) {
	return readOf(path, func(string, string) bool { return true })
}

// readOf reads the tensors of the kinds and slots that fulfil a condition; parameters have no values of the others.
// Of a part of the tensors there is no checksum.
func readOf(path string, of func(kind, slot string) bool) (*Snapshot, error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	s, err := read(file, of)
	if err != nil {
		return nil, fmt.Errorf("%s: snapshot: %w", path, err)
	}
	return s, nil
}

// Shorten writes the snapshot in the file at path to another one without the optimizer's state, and without the values
// of the parameters of some kinds, which the caller has elsewhere. It is called with the snapshot without any.
func Shorten(path, to string, without func(s *Snapshot, kind string) bool) error {
	short, err := readOf(path, func(string, string) bool { return false })
	if err != nil {
		return err
	}
	s, err := readOf(path, func(kind, slot string) bool { return slot == valueSlot && !without(short, kind) })
	if err != nil {
		return err
	}
	for _, kind := range s.Kinds {
		for i := range kind.Params {
			kind.Params[i].OptimizerState = nn.OptimizerState{}
		}
	}
	return s.Write(to)
}

func read(file *safetensors.File, of func(kind, slot string) bool) (*Snapshot, error) {
	metadata := file.Metadata()
	if of := metadata[formatKey]; of != format {
		return nil, fmt.Errorf("it is of the format %q; this jenga reads %q", of, format)
	}

	// numbers
	var tensors []safetensors.Tensor
	values := map[string][]float32{}
	whole := true
	for _, info := range file.Tensors() {
		kind, rest, _ := strings.Cut(info.Name, "/")
		if slot, _, _ := strings.Cut(rest, "/"); !of(kind, slot) {
			whole = false
			continue
		}
		read, err := file.Floats(info.Name)
		if err != nil {
			return nil, err
		}
		tensors = append(tensors, safetensors.Tensor{Name: info.Name, Shape: info.Shape, Data: read})
		values[info.Name] = read
	}

	// checksum
	have := metadata[sumKey]
	delete(metadata, sumKey)
	if want := fmt.Sprintf("%08x", safetensors.Sum(tensors, metadata)); whole && have != want {
		return nil, fmt.Errorf("damaged: the checksum is %s, that of the contents is %s", have, want)
	}

	// all else
	text := metadata[stateKey]
	if n := strings.Count(text, "{"); n > maxObjects {
		return nil, fmt.Errorf("damaged: %d objects; want at most %d", n, maxObjects)
	}
	var all state
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("damaged: %w", err)
	}
	s := &all.Snapshot
	for _, of := range all.Kinds {
		kind := Kind{Name: of.Name}
		for _, param := range of.Params {
			p := nn.ParamState{Name: param.Name, Values: values[tensorName(of.Name, valueSlot, param.Name)]}
			p.Steps = param.Steps
			for _, slot := range param.Slots {
				p.Slots = append(p.Slots, nn.Slot{Name: slot, Values: values[tensorName(of.Name, slot, param.Name)]})
			}
			kind.Params = append(kind.Params, p)
		}
		s.Kinds = append(s.Kinds, kind)
	}
	return s, nil
}
