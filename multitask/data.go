package multitask

import (
	"encoding/binary"
	"fmt"
	"hash"
	"hash/fnv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/outputs"
)

// Data is the examples of one group of tasks, with their Windows and the ids of their Targets set.
type Data struct {
	Train, Dev []*corpus.Example
	Stream     Stream  // has the training examples in place of Train; nil: Train has them
	Answers    Answers // of teachers for them; nil: none
}

// Answered adds the answers of teachers to the targets of training examples of the group with some numbers.
func (d Data) Answered(examples []*corpus.Example, numbers []int) error {
	if d.Answers == nil {
		return nil
	}
	for i, e := range examples {
		for h, target := range e.Targets {
			t, is := target.(*heads.Taught)
			if !is {
				continue
			}
			if err := d.Answers.Answer(h, numbers[i], e, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// Forget removes the answers of teachers from the targets of examples: they take more memory than the texts.
func Forget(examples []*corpus.Example) {
	for _, e := range examples {
		for _, target := range e.Targets {
			if t, is := target.(*heads.Taught); is {
				t.Answer, t.Predicted = nil, nil
			}
		}
	}
}

// Stream has training examples that are read when a batch needs them, as of a file that is larger than memory. Those
// that are read each time are Transient; others it returns again.
type Stream interface {
	// Lengths returns the number of tokens of each example.
	Lengths() []int32
	// At returns the example with a number, as Data.Train would have it. Goroutines may call it at once.
	At(number int) (*corpus.Example, error)
	// Sum returns the ExampleSum of all examples.
	Sum() string
}

// Lengths returns the numbers of tokens of examples.
func Lengths(examples []*corpus.Example) []int32 {
	n := make([]int32, len(examples))
	for i, e := range examples {
		n[i] = int32(e.Tokens())
	}
	return n
}

// Pick returns the examples with some numbers.
func Pick(examples []*corpus.Example, numbers []int) []*corpus.Example {
	picked := make([]*corpus.Example, len(numbers))
	for i, n := range numbers {
		picked[i] = examples[n]
	}
	return picked
}

// Lengths returns the numbers of tokens of the training examples.
func (d Data) Lengths() []int32 {
	if d.Stream != nil {
		return d.Stream.Lengths()
	}
	return Lengths(d.Train)
}

// Checksum describes the training examples of a group for a snapshot.
func (d Data) Checksum(g *Group) string {
	if d.Stream != nil {
		return fmt.Sprintf("%d:%s", len(d.Stream.Lengths()), d.Stream.Sum())
	}
	return g.Checksum(d.Train)
}

// Checksum returns the number of examples and a checksum of their tokens and targets, in their order.
func (g *Group) Checksum(examples []*corpus.Example) string {
	var kinds []*outputs.Kind
	for _, t := range g.types() {
		kinds = append(kinds, t.Output())
	}
	sum := NewExampleSum()
	for _, e := range examples {
		sum.Add(e, kinds)
	}
	return fmt.Sprintf("%d:%s", len(examples), sum)
}

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
