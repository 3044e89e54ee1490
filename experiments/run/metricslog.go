package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/regular"
)

// metricsLog writes the lines of a metrics file.
type metricsLog struct {
	file  *os.File
	lines *json.Encoder
	at    metricsPlace // the end of what is written
	open  bool         // lines are written; before that they are dropped
}

// metricsPlace is a place in a metrics file: the end of a line, and the CRC-32C of all before it.
type metricsPlace struct {
	Bytes  int64  `json:"bytes"`
	CRC32C uint32 `json:"crc32c"`
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// newMetricsLog returns a log of an empty file.
func newMetricsLog(file *os.File) *metricsLog {
	log := &metricsLog{file: file, open: true}
	log.lines = json.NewEncoder(log)
	return log
}

// Write implements io.Writer for the encoder of lines.
func (m *metricsLog) Write(b []byte) (int, error) {
	n, err := m.file.Write(b)
	m.at.Bytes += int64(n)
	m.at.CRC32C = crc32.Update(m.at.CRC32C, castagnoli, b[:n])
	return n, err
}

// event writes the line of an event.
func (m *metricsLog) event(event any) error {
	if !m.open {
		return nil
	}
	return m.lines.Encode(report.Line(event))
}

// readMetrics returns how far a run has come by its metrics file. Without one it has not begun. With a
// *report.LineError the state is what the other lines say.
func readMetrics(path string) (report.State, error) {
	file, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return report.State{}, nil
	}
	if err != nil {
		return report.State{}, err
	}
	defer file.Close()
	state, err := report.ReadState(file)
	var damaged *report.LineError
	switch {
	case errors.As(err, &damaged):
		err = fmt.Errorf("%s:%d: %w", path, damaged.Line, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return state, err
}

// openMetrics opens the metrics file of a run that is resumed at a place. The file does not change before cut.
func openMetrics(path string, at metricsPlace) (*metricsLog, error) {
	only, err := regular.Open(path) // os.OpenFile opens a named pipe, too
	if err == nil {
		err = only.Close()
	}
	var file *os.File
	if err == nil {
		file, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file; restore it from a copy", path)
	}
	if err != nil {
		return nil, err
	}
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, io.NewSectionReader(file, 0, at.Bytes))
	switch {
	case err != nil:
	case n < at.Bytes:
		err = fmt.Errorf("%s: it has %d bytes, and had %d when the checkpoint was written; restore it from a copy",
			path, n, at.Bytes)
	case sum.Sum32() != at.CRC32C:
		err = fmt.Errorf("%s: its first %d bytes are not those that it had when the checkpoint was written: the file "+
			"was changed or damaged; restore it from a copy", path, at.Bytes)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	log := newMetricsLog(file)
	log.at, log.open = at, false
	return log, nil
}

// fits reports whether a metrics file has what it had when the checkpoint was written.
func (s *resumption) fits(metrics string) bool {
	log, err := openMetrics(metrics, s.state.Metrics)
	if err == nil {
		err = log.file.Close()
	}
	return err == nil
}

// cut removes the lines after the place at which the run is resumed, and begins to write.
func (m *metricsLog) cut() error {
	if m.open {
		return nil
	}
	m.open = true
	if err := m.file.Truncate(m.at.Bytes); err != nil {
		return err
	}
	_, err := m.file.Seek(m.at.Bytes, io.SeekStart)
	return err
}

// sync writes the file to the disk.
func (m *metricsLog) sync() error { return m.file.Sync() }
