package multitask

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
)

// Data is the examples of one group of tasks, with their Windows and the ids of their Targets set.
type Data struct {
	Train, Dev []*corpus.Example
	Stream     Stream // has the training examples in place of Train; nil: Train has them
}

// Stream has training examples that are read when a batch needs them, as of a file that is larger than memory. Its
// examples are Transient.
type Stream interface {
	// Lengths returns the number of tokens of each example.
	Lengths() []int32
	// At returns the example with a number, as Data.Train would have it. Goroutines may call it at once.
	At(number int) (*corpus.Example, error)
	// Sum returns the ExampleSum of all examples.
	Sum() string
}

// checkStreams returns an error if a head of m is fitted to examples that are streamed.
func checkStreams(m *Model, data []Data) error {
	for g, d := range data {
		for h, head := range m.Groups[g].Heads() {
			if _, fits := head.Head.(heads.Fitter); fits && d.Stream != nil {
				return fmt.Errorf("head %d of task %q is fitted to training examples in memory; they are streamed", h,
					m.Groups[g].Name)
			}
		}
	}
	return nil
}

// source returns where the training examples are.
func (d Data) source() source {
	if d.Stream != nil {
		return streamSource{d.Stream}
	}
	return memorySource(d.Train)
}

// lengths returns the numbers of tokens of the training examples.
func (d Data) lengths() []int32 {
	if d.Stream != nil {
		return d.Stream.Lengths()
	}
	return lengths(d.Train)
}

// checksum describes the training examples of a group for a snapshot.
func (d Data) checksum(g *Group) string {
	if d.Stream != nil {
		return fmt.Sprintf("%d:%s", len(d.Stream.Lengths()), d.Stream.Sum())
	}
	return g.checksum(d.Train)
}

// source is where a batch iterator has its examples from.
type source interface {
	// read begins to read the examples with some numbers.
	read(numbers []int) *reading
	// slow reports whether reading takes time, so that it is better begun early.
	slow() bool
}

// reading is a batch that is being read.
type reading struct {
	examples []*corpus.Example
	done     chan error // one for each goroutine that reads; nil: all examples are there
	readers  int
}

// wait returns the batch when all of it is there.
func (r *reading) wait() ([]*corpus.Example, error) {
	var first error
	for range r.readers {
		if err := <-r.done; err != nil && first == nil {
			first = err
		}
	}
	return r.examples, first
}

// memorySource has examples in memory.
type memorySource []*corpus.Example

func (s memorySource) read(numbers []int) *reading { return &reading{examples: pick(s, numbers)} }

func (s memorySource) slow() bool { return false }

// streamSource reads examples.
type streamSource struct{ Stream }

// streamReaders is the number of goroutines that read a batch: disks serve several reads at once.
const streamReaders = 4

func (s streamSource) read(numbers []int) *reading {
	n := min(streamReaders, len(numbers))
	r := &reading{examples: make([]*corpus.Example, len(numbers)), done: make(chan error, n), readers: n}
	for first := range n {
		go func() {
			for i := first; i < len(numbers); i += n {
				example, err := s.At(numbers[i])
				if err != nil {
					r.done <- err
					return
				}
				r.examples[i] = example
			}
			r.done <- nil
		}()
	}
	return r
}

func (s streamSource) slow() bool { return true }
