package train

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/files"
)

// snapshotFile is what a training writes.
func snapshotFile(t testing.TB, training *Training) []byte {
	s, err := training.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := s.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestADamagedSnapshotIsAnError(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	training, err := New(m, data, smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	good := snapshotFile(t, training)
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
		_, err := ReadSnapshot(bytes.NewReader(c.file))
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 8<<20 {
			t.Errorf("%s: it took %d bytes", c.name, after.TotalAlloc-before.TotalAlloc)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzSnapshot reads and restores any file. The checksum is corrected, so that the contents are checked.
func FuzzSnapshot(f *testing.F) {
	m := smallModel(f, "none", 0)
	data := smallData(m, 6)
	plan := smallPlan()
	plan.MaxSteps = 6
	training, err := New(m, data, plan)
	if err != nil {
		f.Fatal(err)
	}
	header, numbers := parts(snapshotFile(f, training))
	f.Add(header, numbers)
	f.Add([]byte(`{"progress":{"step":3,"used":2,"left":[1]}}`), []byte{})
	f.Fuzz(func(t *testing.T, header, numbers []byte) {
		file := binary.LittleEndian.AppendUint64([]byte(snapshotMagic), uint64(len(header)))
		file = append(append(file, header...), numbers...)
		file = binary.LittleEndian.AppendUint32(file, crc32.Checksum(file, files.CRC32C))
		s, err := ReadSnapshot(bytes.NewReader(file))
		if err != nil {
			return
		}
		if err := training.Restore(s); err != nil {
			return
		}
		if !training.Done() && !training.Due() {
			training.next() // no panic
		}
	})
}

// parts returns the header and the numbers of a snapshot's file.
func parts(file []byte) (header, numbers []byte) {
	at := len(snapshotMagic)
	size := int(binary.LittleEndian.Uint64(file[at:]))
	at += 8
	return file[at : at+size], file[at+size : len(file)-4]
}
