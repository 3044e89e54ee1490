package snapshots

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/nn"

	"github.com/jenga-nlp/jenga/internal/files"
)

// A snapshot is written as
//
//	"jenga snapshot 1\n"
//	length of the header in bytes, 8 bytes, little-endian
//	header, JSON
//	numbers of the header's parameters in its order, float32, little-endian: values, then those of each slot of the
//	optimizer's state
//	CRC-32C of all preceding bytes, 4 bytes, little-endian
//
// The digit is the version: reading another version is an error.
const snapshotMagic = "jenga snapshot 1\n"

const (
	maxHeader  = 64 << 20 // bytes
	maxObjects = 1 << 20  // in it: parameters, their slots, settings, shuffled groups
	maxValues  = 1 << 31  // of a parameter or a slot
)

// WriteTo writes the snapshot so that Read reads it. It returns an error before it writes anything if the
// state of sampler and weighting is too large.
func (s *Snapshot) WriteTo(w io.Writer) (n int64, err error) {
	text, err := json.Marshal(s.header())
	if err != nil {
		return 0, fmt.Errorf("snapshot: header: %w", err)
	}
	if len(text) > maxHeader {
		return 0,
			fmt.Errorf("snapshot: a header of %d bytes, with %d of the sampler's state, %d of the weighting's and %d "+
				"of the best evaluation and other data of the run; want at most %d", len(text), len(s.Sampler),
				len(s.Weighting), len(s.Attached), maxHeader)
	}
	buffered := bufio.NewWriterSize(w, 1<<16)
	out := &summed{to: buffered, sum: crc32.New(files.CRC32C)}
	out.write([]byte(snapshotMagic))
	out.write(binary.LittleEndian.AppendUint64(nil, uint64(len(text))))
	out.write(text)
	for _, kind := range s.Kinds {
		for _, p := range kind.Params {
			out.floats(p.Values)
			for _, slot := range p.Slots {
				out.floats(slot.Values)
			}
		}
	}
	out.write(binary.LittleEndian.AppendUint32(nil, out.sum.Sum32()))
	if out.err == nil {
		out.err = buffered.Flush()
	}
	return out.n, out.err
}

// summed is a writer that computes a checksum of what it writes, and stops at the first error.
type summed struct {
	to   io.Writer
	sum  hash.Hash32
	n    int64
	err  error
	room []byte
}

func (w *summed) write(b []byte) {
	if w.err != nil {
		return
	}
	w.sum.Write(b)
	var n int
	n, w.err = w.to.Write(b)
	w.n += int64(n)
}

// chunk is the number of floats read or written at a time, so that memory grows with a file's real length, not with the
// lengths in its header.
const chunk = 1 << 16

func (w *summed) floats(x []float32) {
	if w.room == nil {
		w.room = make([]byte, 4*chunk)
	}
	for len(x) > 0 {
		part := x[:min(chunk, len(x))]
		room := w.room[:4*len(part)]
		for i, v := range part {
			binary.LittleEndian.PutUint32(room[4*i:4*i+4], math.Float32bits(v))
		}
		w.write(room)
		x = x[len(part):]
	}
}

// Read reads a snapshot written by WriteTo, and no bytes after it.
func Read(r io.Reader) (*Snapshot, error) {
	in := &countedReader{from: r}
	s, size, err := readSnapshot(in)
	switch {
	case errors.Is(err, errEnd) && size > in.n: // else the header is damaged too
		return nil, fmt.Errorf("snapshot: truncated: it has %d bytes of %d", in.n, size)
	case errors.Is(err, errEnd) && size == 0:
		return nil, fmt.Errorf("snapshot: truncated: it has %d bytes, which end in its header", in.n)
	case err != nil:
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return s, nil
}

// countedReader counts the bytes that are read.
type countedReader struct {
	from io.Reader
	n    int64
}

// Read implements io.Reader.
func (c *countedReader) Read(b []byte) (int, error) {
	n, err := c.from.Read(b)
	c.n += int64(n)
	return n, err
}

// size returns the bytes of the file of a snapshot with this header, which has so many bytes.
func (h header) size(bytes int) int64 {
	n := int64(len(snapshotMagic) + 8 + bytes + 4)
	for _, section := range h.Sections {
		for _, p := range section.Params {
			n += 4 * int64(p.Values)
			for _, slot := range p.Slots {
				n += 4 * int64(slot.Values)
			}
		}
	}
	return n
}

// readSnapshot reads a snapshot, and returns the bytes that its file should have, 0 if that is not known.
func readSnapshot(r io.Reader) (s *Snapshot, bytesOf int64, err error) {
	sum := crc32.New(files.CRC32C)
	in := io.TeeReader(r, sum)

	// header
	start := make([]byte, len(snapshotMagic)+8)
	if err := readFull(in, start); err != nil {
		return nil, 0, err
	}
	if magic := start[:len(snapshotMagic)]; string(magic) != snapshotMagic {
		return nil, 0, wrongMagic(string(magic))
	}
	size := binary.LittleEndian.Uint64(start[len(snapshotMagic):])
	if size > maxHeader {
		return nil, 0, fmt.Errorf("a header of %d bytes; want at most %d", size, maxHeader)
	}
	var text bytes.Buffer
	text.Grow(int(min(size, maxObjects)) + bytes.MinRead) // without it the buffer grows, and copies, many times
	if _, err := io.CopyN(&text, in, int64(size)); err != nil {
		return nil, 0, unexpectedEnd(err)
	}
	if n := bytes.Count(text.Bytes(), []byte("{")); n > maxObjects {
		return nil, 0, fmt.Errorf("damaged: header: %d objects; want at most %d", n, maxObjects)
	}
	var h header
	if err := json.Unmarshal(text.Bytes(), &h); err != nil {
		return nil, 0, fmt.Errorf("damaged: header: %w", err)
	}
	s, bytesOf = &h.Snapshot, h.size(text.Len())

	// numbers
	for _, section := range h.Sections {
		state := make([]nn.ParamState, 0, min(len(section.Params), chunk))
		for _, shape := range section.Params {
			p, err := readParam(in, shape)
			if err != nil {
				return nil, bytesOf, fmt.Errorf("parameter %q: %w", shape.Name, err)
			}
			state = append(state, p)
		}
		s.Kinds = append(s.Kinds, Kind{section.Name, state})
	}

	// checksum
	want := sum.Sum32()
	end := make([]byte, 4)
	if err := readFull(r, end); err != nil {
		return nil, bytesOf, err
	}
	if have := binary.LittleEndian.Uint32(end); have != want {
		return nil, bytesOf, fmt.Errorf("damaged: the checksum is %08x, that of the bytes is %08x", have, want)
	}
	return s, bytesOf, nil
}

// wrongMagic returns the error of a file that begins in another way.
func wrongMagic(magic string) error {
	name := strings.TrimSuffix(snapshotMagic, "1\n")
	if other, ok := strings.CutPrefix(magic, name); ok && strings.HasSuffix(magic, "\n") {
		return fmt.Errorf("it is of version %s; this jenga reads version 1", strings.TrimSpace(other))
	}
	return fmt.Errorf("it begins with %q; want %q", magic, snapshotMagic)
}

func readParam(r io.Reader, shape paramShape) (p nn.ParamState, err error) {
	p = nn.ParamState{Name: shape.Name, OptimizerState: nn.OptimizerState{Steps: shape.Steps}}
	if p.Values, err = readFloats(r, shape.Values); err != nil {
		return p, err
	}
	for _, slot := range shape.Slots {
		values, err := readFloats(r, slot.Values)
		if err != nil {
			return p, fmt.Errorf("slot %q: %w", slot.Name, err)
		}
		p.Slots = append(p.Slots, nn.Slot{Name: slot.Name, Values: values})
	}
	return p, nil
}

func readFloats(r io.Reader, n int) ([]float32, error) {
	if n < 0 || n > maxValues {
		return nil, fmt.Errorf("%d values; want from 0 to %d", n, maxValues)
	}
	x := make([]float32, 0, min(n, chunk))
	raw := make([]byte, 4*min(n, chunk))
	for len(x) < n {
		raw = raw[:4*min(n-len(x), chunk)]
		if err := readFull(r, raw); err != nil {
			return nil, err
		}
		read := len(x)
		if have := read + len(raw)/4; have > cap(x) {
			x = slices.Grow(x, min(n, 4*have)-read) // append would grow it by a quarter
		}
		x = x[:read+len(raw)/4]
		for i := range x[read:] {
			x[read+i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i : 4*i+4]))
		}
	}
	return x, nil
}

func readFull(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	return unexpectedEnd(err)
}

// errEnd is the error of an input that has ended too early.
var errEnd = errors.New("unexpected end")

// unexpectedEnd returns err, or errEnd if it is that the input has ended.
func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errEnd
	}
	return err
}
