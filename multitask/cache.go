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

// CacheFile holds the states of a frozen encoder that do not fit in memory. Its errors name the file.
type CacheFile interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
}

// Cache keeps the states that a frozen encoder returns for texts: in memory as far as there is room, then in a file.
// States that fit in neither are computed each time.
type Cache struct {
	encoder encoders.Encoder
	layers  int // whose states are kept; 0: no text has been encoded yet

	kept map[*corpus.Example]record
	room int64                     // free memory, in floats
	open func() (CacheFile, error) // creates the file when memory is full; nil: no file
	file CacheFile                 // nil: not opened yet, or given up
	end  int64                     // of the file, in bytes
	lost error                     // why the file was given up, until failure returns it
}

// record is the place of a text's states [layers L D].
type record struct {
	states []float32 // nil: they are in the file
	at     int64     // in the file, in bytes
}

// NewCache returns a cache of the states of an encoder, with memory for room floats.
func NewCache(encoder encoders.Encoder, room int64, open func() (CacheFile, error)) *Cache {
	return &Cache{encoder: encoder, kept: map[*corpus.Example]record{}, room: room, open: open}
}

// encode returns a batch's states [T D] of the mode's layers, which are always the same.
func (c *Cache) encode(p *nn.Pass, batch *corpus.Batch, mode encoders.Mode) ([][]float32, error) {
	var fresh []*corpus.Example
	var places []int // of fresh in the batch
	for b, e := range batch.Examples {
		if _, have := c.kept[e]; !have {
			fresh, places = append(fresh, e), append(places, b)
		}
	}
	if len(fresh) == len(batch.Examples) {
		return c.fill(p, batch, mode)
	}

	// texts that are kept
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

	// texts that are not: a text's states are the same in any batch
	rest := corpus.Pack(fresh)
	encoded, err := c.fill(p, rest, mode)
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
func (c *Cache) fill(p *nn.Pass, batch *corpus.Batch, mode encoders.Mode) ([][]float32, error) {
	layers, err := c.encoder.Encode(p, batch.Tokens, mode)
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

// keep keeps an example's states, from:to of each layer, if there is room.
func (c *Cache) keep(e *corpus.Example, layers [][]float32, from, to int) {
	if e.Transient {
		return
	}
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

// write appends from:to of each layer to the file and returns their offset.
func (c *Cache) write(layers [][]float32, from, to int) (at int64, err error) {
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
func (c *Cache) read(r record, layers [][]float32, from, to int) error {
	n := to - from
	for l, layer := range layers {
		if r.states != nil {
			copy(layer[from:to], r.states[l*n:])
			continue
		}
		raw := bytesOf(layer[from:to])
		// at the end of the file a ReaderAt may return io.EOF with a complete read
		if read, err := c.file.ReadAt(raw, r.at+int64(l*len(raw))); read < len(raw) {
			return fmt.Errorf("states of a frozen encoder: %w", err)
		}
	}
	return nil
}

// giveUp continues without the file, which frees the disk for the run's checkpoints.
func (c *Cache) giveUp(err error) {
	c.lost = fmt.Errorf("%w: states of the frozen encoder that exceed training.cache_memory are computed again "+
		"each time; a training.cache_file on a disk with more room, or more training.cache_memory, would keep them",
		err)
	maps.DeleteFunc(c.kept, func(_ *corpus.Example, r record) bool { return r.states == nil })
	c.open = nil
	c.Close()
}

// Close closes the file, if there is one. Its error is ignored: the contents are not needed any more.
func (c *Cache) Close() {
	if c.file != nil {
		c.file.Close()
		c.file = nil
	}
}

// bytesOf returns the memory of values as bytes, in native byte order: the same process reads them again.
func bytesOf(values []float32) []byte {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&values[0])), 4*len(values))
}

// Failure returns once why the file was given up, nil if it was not.
func (c *Cache) Failure() error {
	err := c.lost
	c.lost = nil
	return err
}
