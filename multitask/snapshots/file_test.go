package snapshots

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// aSnapshot is one with parameters of two kinds.
func aSnapshot() *Snapshot {
	state := nn.ParamState{Name: "w", Values: []float32{1, 2, 3}}
	state.Steps, state.Slots = 2, []nn.Slot{{Name: "m", Values: []float32{4, 5, 6}}}
	return &Snapshot{
		Settings: []Setting{{Key: "seed", Value: "5"}}, Progress: json.RawMessage(`{"step":2}`), Losses: []byte("{}"),
		Kinds: []Kind{{"model", []nn.ParamState{state}}, {"fitted", []nn.ParamState{{Name: "v",
			Values: []float32{7}}}}},
	}
}

// written returns the path of the file of a snapshot.
func written(t *testing.T, s *Snapshot) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	again, err := Read(written(t, aSnapshot()))
	if want := aSnapshot(); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("Read = %+v, %v; want %+v", again, err, want)
	}
}

// holding returns a file of a state and a parameter, whose checksum is right.
func holding(t *testing.T, state string) []byte {
	t.Helper()
	tensors := []safetensors.Tensor{{Name: "model/value/w", Shape: []int{1}, Data: []float32{1}}}
	metadata := map[string]string{formatKey: format, stateKey: state}
	metadata[sumKey] = fmt.Sprintf("%08x", safetensors.Sum(tensors, metadata))
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := safetensors.Write(path, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

func TestADamagedSnapshotIsAnError(t *testing.T) {
	good, err := os.ReadFile(written(t, aSnapshot()))
	if err != nil {
		t.Fatal(err)
	}
	header := func(text string, size int) []byte {
		return append(binary.LittleEndian.AppendUint64(nil, uint64(size)), text...)
	}
	flip := func(at int) []byte {
		flipped := slices.Clone(good)
		flipped[at] ^= 1
		return flipped
	}
	path := filepath.Join(t.TempDir(), "damaged")
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, path + ": not a safetensors file: it has 0 bytes"},
		{"another file", header("{}", 2), path + `: snapshot: it is of the format ""; this jenga reads "jenga`},
		{"another version", []byte(strings.Replace(string(good), format, "jenga snapshot 9", 1)),
			`snapshot: it is of the format "jenga snapshot 9"; this jenga reads "jenga snapshot 2"`},
		{"a header without end", header("", 1<<62), "its header claims 4611686018427387904 bytes, 0 follow"},
		{"a truncated header", header("{", 1<<20), "truncated, or not a safetensors file: its header claims 1048576"},
		{"no JSON", header("{", 1), path + ": header: EOF"},
		{"values without end", header(`{"w":{"dtype":"F32","shape":[2147483648],"data_offsets":[0,8589934592]}}`, 72),
			`truncated: tensor "w" ends 8589934592 bytes after the end of the file`},
		{"fewer than no values", header(`{"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}`, 55),
			`tensor "w": its shape is [-1]`},
		{"more objects than parameters", holding(t, strings.Repeat("{", maxObjects+1)),
			"snapshot: damaged: 1048577 objects; want at most 1048576"},
		{"a state that is no JSON", holding(t, "{"), "snapshot: damaged: unexpected end of JSON input"},
		{"a truncated end", good[:len(good)-2], "truncated: tensor "},
		{"a flipped bit", flip(len(good) - 9), "snapshot: damaged: the checksum is"},
		{"a flipped bit of the header", flip(slices.Index(good, '5')), "snapshot: damaged: the checksum is"},
	} {
		if err := os.WriteFile(path, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(path)
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 16<<20 {
			t.Errorf("%s: it took %d bytes", c.name, after.TotalAlloc-before.TotalAlloc)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestASnapshotThatCannotBeReadIsNotWritten(t *testing.T) {
	s := aSnapshot()
	s.Weighting = make([]byte, maxState)
	path := filepath.Join(t.TempDir(), "snapshot")
	want := "33554432 of the weighting's and 0 of the best evaluation and other data of the run; want at most 33554432"
	if err := s.Write(path); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("Write = %v, want %s", err, want)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is written: %v", err)
	}
}
