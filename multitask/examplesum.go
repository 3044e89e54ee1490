package multitask

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// ExampleSum is a checksum of the tokens and targets of examples, in their order.
type ExampleSum struct {
	sum hash.Hash64
	buf []byte
}

// NewExampleSum returns the checksum of no examples.
func NewExampleSum() *ExampleSum { return &ExampleSum{sum: fnv.New64a()} }

// Add adds the next example, which is encoded; kinds are those of its targets.
func (s *ExampleSum) Add(e *corpus.Example, kinds []*outputs.Kind) {
	s.buf = s.buf[:0]
	for _, w := range e.Windows {
		for _, id := range w.IDs {
			s.buf = binary.LittleEndian.AppendUint32(s.buf, uint32(id))
		}
		s.buf = append(s.buf, 0xff, 0xff, 0xff, 0xff) // separator: not a token id
	}
	for i, t := range e.Targets {
		target := kinds[i].MarshalTarget(t)
		s.buf = binary.LittleEndian.AppendUint64(s.buf, uint64(len(target)))
		s.buf = append(s.buf, target...)
	}
	s.sum.Write(s.buf)
}

// String returns the checksum in hexadecimal.
func (s *ExampleSum) String() string { return fmt.Sprintf("%016x", s.sum.Sum64()) }
