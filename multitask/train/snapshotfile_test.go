package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
)

// FuzzSnapshot reads and restores any state of a training, with any numbers of one tensor. The checksum is that of the
// contents, so that they are checked.
func FuzzSnapshot(f *testing.F) {
	m := smallModel(f, "none", 0)
	data := smallData(m, 6)
	plan := smallPlan()
	plan.MaxSteps = 6
	training, err := New(m, data, plan)
	if err != nil {
		f.Fatal(err)
	}
	metadata, tensors := contents(f, training)
	first := tensors[0]
	f.Add(metadata["state"], first.Name, binary.LittleEndian.AppendUint32(nil, math.Float32bits(first.Data[0])))
	f.Add(metadata["state"], "model/none", []byte{})
	f.Add(`{"progress":{"step":3,"used":2,"left":[1]}}`, first.Name, []byte{})
	f.Fuzz(func(t *testing.T, state, name string, numbers []byte) {
		values := make([]float32, len(numbers)/4)
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(numbers[4*i:]))
		}
		metadata := map[string]string{"format": metadata["format"], "state": state}
		tensors := slices.DeleteFunc(slices.Clone(tensors), func(t safetensors.Tensor) bool { return t.Name == name })
		if name != "__metadata__" { // which the format reserves
			tensors = append(tensors, safetensors.Tensor{Name: name, Shape: []int{len(values)}, Data: values})
		}
		metadata["crc32c"] = fmt.Sprintf("%08x", safetensors.Sum(tensors, metadata))
		path := filepath.Join(t.TempDir(), "snapshot")
		if err := safetensors.Write(path, tensors, metadata); err != nil {
			t.Fatal(err)
		}
		s, err := snapshots.Read(path)
		if err != nil {
			return
		}
		if err := restoreSame(training, s); err != nil {
			return
		}
		if !training.Done() && !training.Due() {
			training.next() // no panic
		}
	})
}

// contents returns what is in the file of a training's snapshot.
func contents(t testing.TB, training *Training) (metadata map[string]string, tensors []safetensors.Tensor) {
	t.Helper()
	s, err := training.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	file, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, info := range file.Tensors() {
		values, err := file.Floats(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		tensors = append(tensors, safetensors.Tensor{Name: info.Name, Shape: info.Shape, Data: values})
	}
	return file.Metadata(), tensors
}
