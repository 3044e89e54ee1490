package snapshots

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

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

// written returns the file of a snapshot.
func written(t *testing.T, s *Snapshot) []byte {
	t.Helper()
	var file bytes.Buffer
	if _, err := s.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestASnapshotIsReadAsItWasWritten(t *testing.T) {
	again, err := Read(bytes.NewReader(written(t, aSnapshot())))
	if want := aSnapshot(); err != nil || !reflect.DeepEqual(again, want) {
		t.Errorf("Read = %+v, %v; want %+v", again, err, want)
	}
}

func TestADamagedSnapshotIsAnError(t *testing.T) {
	good := written(t, aSnapshot())
	header := func(text string, size int) []byte {
		file := binary.LittleEndian.AppendUint64([]byte(snapshotMagic), uint64(size))
		return append(file, text...)
	}
	flipped := slices.Clone(good)
	flipped[len(flipped)-9] ^= 1
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "snapshot: truncated: it has 0 bytes, which end in its header"},
		{"another file", bytes.Repeat([]byte("jenga "), 10), `snapshot: it begins with "jenga jenga jenga"; want`},
		{"another version", append([]byte("jenga snapshot 2\n"), good[len(snapshotMagic):]...),
			"snapshot: it is of version 2; this jenga reads version 1"},
		{"a header without end", header("", 1<<62), "a header of 4611686018427387904 bytes; want at most 67108864"},
		{"a truncated header", header("{", 1<<20), "truncated: it has 26 bytes, which end in its header"},
		{"no JSON", header("{", 1), "snapshot: damaged: header: unexpected end of JSON input"},
		{"values without end", header(`{"sections":[{"params":[{"name":"w","values":2147483648}]}]}`, 60),
			"truncated: it has 85 bytes of 8589934681"},
		{"fewer than no values", header(`{"sections":[{"params":[{"name":"w","values":-1}]}]}        `, 60),
			`parameter "w": -1 values; want from 0 to`},
		{"more objects than parameters", header(strings.Repeat("{", maxObjects+1), maxObjects+1),
			"snapshot: damaged: header: 1048577 objects; want at most 1048576"},
		{"a truncated end", good[:len(good)-2],
			fmt.Sprintf("truncated: it has %d bytes of %d", len(good)-2, len(good))},
		{"a flipped bit", flipped, "damaged: the checksum is"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Read(bytes.NewReader(c.file))
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 8<<20 {
			t.Errorf("%s: it took %d bytes", c.name, after.TotalAlloc-before.TotalAlloc)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

func TestASnapshotThatCannotBeReadIsNotWritten(t *testing.T) {
	s := aSnapshot()
	s.Weighting = make([]byte, maxHeader)
	var file bytes.Buffer
	_, err := s.WriteTo(&file)
	want := "67108864 of the weighting's and 0 of the best evaluation and other data of the run; want at most 67108864"
	if err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("WriteTo = %v, want %s", err, want)
	}
	if file.Len() > 0 {
		t.Errorf("%d bytes are written", file.Len())
	}
}
