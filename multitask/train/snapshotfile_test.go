package train

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
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
		file := binary.LittleEndian.AppendUint64([]byte(magic), uint64(len(header)))
		file = append(append(file, header...), numbers...)
		file = binary.LittleEndian.AppendUint32(file, crc32.Checksum(file, files.CRC32C))
		s, err := snapshots.Read(bytes.NewReader(file))
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

// magic is what the file of a snapshot begins with.
const magic = "jenga snapshot 1\n"

// parts returns the header and the numbers of a snapshot's file.
func parts(file []byte) (header, numbers []byte) {
	at := len(magic)
	size := int(binary.LittleEndian.Uint64(file[at:]))
	at += 8
	return file[at : at+size], file[at+size : len(file)-4]
}
