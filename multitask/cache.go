package multitask

import (
	"fmt"
	"io"
	"maps"
	"unsafe"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// CacheFile holds a frozen encoder's states that memory has no room for. Its errors name it.
type CacheFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Warning is an event: something about the run that its user should know, in a sentence.
type Warning struct{ Text string }

// cache keeps what a frozen encoder makes of texts: in memory as far as there is room, what is beyond in a file.
// What neither takes is encoded each time.
type cache struct {
	encoder encoders.Encoder
	wanted  nn.Wanted
	layers  int // that the encoder gives of a text; 0: it has not been asked yet

	kept map[*corpus.Example]record
	room int64                     // how many more numbers memory takes
	open func() (CacheFile, error) // makes the file when memory is full; nil: there is to be none
	file CacheFile                 // nil: not yet, or no more
	end  int64                     // of the file, in bytes
	lost error                     // why the file was given up, until it is told
}

// record is where a text's states [layers L D] are.
type record struct {
	states []float32 // nil: they are in the file
	at     int64     // in the file, in bytes
}

// newCache makes a cache of what m's encoder gives, with room for so many numbers in memory.
func newCache(m *Model, room int64, open func() (CacheFile, error)) *cache {
	return &cache{encoder: m.Encoder, wanted: m.wanted(), kept: map[*corpus.Example]record{}, room: room, open: open}
}

// encode gives a batch's states [T D] of the layers wanted.
func (c *cache) encode(p *nn.Pass, batch *corpus.Batch) ([][]float32, error) {
	var fresh []*corpus.Example
	var places []int // of fresh in the batch
	for b, e := range batch.Examples {
		if _, have := c.kept[e]; !have {
			fresh, places = append(fresh, e), append(places, b)
		}
	}
	if len(fresh) == len(batch.Examples) {
		return c.fill(p, batch)
	}

	// what is kept
	width := c.encoder.Describe().Width
	layers := make([][]float32, c.layers)
	for l := range layers {
		layers[l] = p.Floats(batch.Tokens.Rows.Tokens() * width)
	}
	for b, e := range batch.Examples {
		if r, have := c.kept[e]; have {
			from, to := batch.Rows(b)
			if err := c.read(r, layers, from*width, to*width); err != nil {
				return nil, err
			}
		}
	}
	if len(fresh) == 0 {
		return layers, nil
	}

	// what is not: a text's states are the same in any batch
	rest := corpus.Pack(fresh)
	encoded, err := c.fill(p, rest)
	if err != nil {
		return nil, err
	}
	for i, b := range places {
		at, _ := batch.Rows(b)
		from, to := rest.Rows(i)
		for l := range layers {
			copy(layers[l][at*width:], encoded[l][from*width:to*width])
		}
	}
	return layers, nil
}

// fill encodes a batch of texts that are not kept, and keeps them.
func (c *cache) fill(p *nn.Pass, batch *corpus.Batch) ([][]float32, error) {
	layers, err := c.encoder.Encode(p, batch.Tokens, c.wanted)
	if err != nil {
		return nil, err
	}
	c.layers = len(layers)
	width := c.encoder.Describe().Width
	for b, e := range batch.Examples {
		from, to := batch.Rows(b)
		c.keep(e, layers, from*width, to*width)
	}
	return layers, nil
}

// keep keeps an example's states, which are from:to of each layer, where there is room.
func (c *cache) keep(e *corpus.Example, layers [][]float32, from, to int) {
	n := int64(len(layers)) * int64(to-from)
	if n <= c.room {
		c.room -= n
		states := make([]float32, 0, n)
		for _, layer := range layers {
			states = append(states, layer[from:to]...)
		}
		c.kept[e] = record{states: states}
		return
	}
	if c.open == nil {
		return
	}
	at, err := c.write(layers, from, to)
	if err != nil {
		c.giveUp(err)
		return
	}
	c.kept[e] = record{at: at}
}

// write appends from:to of each layer to the file and returns where they begin.
func (c *cache) write(layers [][]float32, from, to int) (at int64, err error) {
	if c.file == nil {
		if c.file, err = c.open(); err != nil {
			return 0, err
		}
	}
	at = c.end
	for _, layer := range layers {
		raw := bytesOf(layer[from:to])
		if _, err := c.file.WriteAt(raw, c.end); err != nil {
			return 0, err
		}
		c.end += int64(len(raw))
	}
	return at, nil
}

// read copies a record to from:to of each layer.
func (c *cache) read(r record, layers [][]float32, from, to int) error {
	n := to - from
	for l, layer := range layers {
		if r.states != nil {
			copy(layer[from:to], r.states[l*n:])
			continue
		}
		raw := bytesOf(layer[from:to])
		// at its end a ReaderAt may say EOF of all that was asked for
		if read, err := c.file.ReadAt(raw, r.at+int64(l*len(raw))); read < len(raw) {
			return fmt.Errorf("states of a frozen encoder: %w", err)
		}
	}
	return nil
}

// giveUp goes on without the file, which frees the disk for what the run has to save.
func (c *cache) giveUp(err error) {
	c.lost = fmt.Errorf("%w: a frozen encoder's states beyond training.cache_memory are encoded anew each time; "+
		"a training.cache_file on a disk with more room, or more training.cache_memory, would keep them", err)
	maps.DeleteFunc(c.kept, func(_ *corpus.Example, r record) bool { return r.states == nil })
	c.open = nil
	c.close()
}

// warnings returns once that the file was given up.
func (c *cache) warnings() []Warning {
	if c == nil || c.lost == nil {
		return nil
	}
	warning := Warning{c.lost.Error()}
	c.lost = nil
	return []Warning{warning}
}

// close ends the file, if there is one. What it held is of no more use, so that an error says nothing.
func (c *cache) close() {
	if c != nil && c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

// bytesOf returns the memory of values, in the order of this processor, which reads them again.
func bytesOf(values []float32) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}
