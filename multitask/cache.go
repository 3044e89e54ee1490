package multitask

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// cache keeps what a frozen encoder makes of texts.
type cache struct {
	states map[*corpus.Example][][]float32 // of each layer asked for, [L D]
	room   int                             // how many more numbers may be kept
}

// cacheRoom is 2 GiB of states: a million tokens of 512 numbers. What is beyond it is encoded each time.
const cacheRoom = 2 << 30 / 4

func newCache(room int) *cache {
	return &cache{states: map[*corpus.Example][][]float32{}, room: room}
}

// encode gives a batch's states [T D] of the layers wanted. What it has not kept it encodes, and keeps if there is room.
func (c *cache) encode(p *nn.Pass, batch *corpus.Batch, encoder encoders.Encoder, wanted nn.Wanted) ([][]float32, error) {
	width := encoder.Width()
	states := make([][][]float32, len(batch.Examples)) // of each example, its layers
	var fresh []*corpus.Example
	var places []int // of fresh in the batch
	for b, e := range batch.Examples {
		if states[b] = c.states[e]; states[b] == nil {
			fresh, places = append(fresh, e), append(places, b)
		}
	}

	if len(fresh) > 0 {
		packed := corpus.Pack(fresh)
		layers, err := encoder.Encode(p, packed.Tokens, wanted)
		if err != nil {
			return nil, err
		}
		for i, e := range fresh {
			from, to := packed.Tokens.Rows.Starts[i]*width, packed.Tokens.Rows.Starts[i+1]*width
			for _, layer := range layers {
				states[places[i]] = append(states[places[i]], layer[from:to])
			}
			c.keep(e, states[places[i]])
		}
	}

	layers := make([][]float32, len(states[0]))
	for l := range layers {
		layers[l] = p.Floats(batch.Tokens.Rows.Tokens() * width)
		for b := range states {
			copy(layers[l][batch.Tokens.Rows.Starts[b]*width:], states[b][l])
		}
	}
	return layers, nil
}

// keep copies an example's states if there is room.
func (c *cache) keep(e *corpus.Example, layers [][]float32) {
	n := 0
	for _, layer := range layers {
		n += len(layer)
	}
	if n > c.room {
		return
	}
	c.room -= n
	kept := make([][]float32, len(layers))
	for l, layer := range layers {
		kept[l] = slices.Clone(layer)
	}
	c.states[e] = kept
}
