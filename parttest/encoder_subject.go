package parttest

import (
	"fmt"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

type encoderMaker func(encoders.Env) (encoders.Encoder, error)

type encoder struct {
	encoders.Encoder
	encoders.Description
	params []*nn.Param
}

var lastLayer, allLayers = encoders.Mode{Layers: nn.LastLayer}, encoders.Mode{Layers: nn.AllLayers}

// encoder makes an encoder whose parameters are far from their initial values, so that all of them have an effect.
func (m encoderMaker) encoder(t *testing.T, freeze string, dropout float64) encoder {
	t.Helper()
	params := nn.NewParams(3)
	made, err := m(encoders.Env{Vocabulary: vocabulary, MaxLength: longest, Dropout: dropout, DropoutSet: true,
		Freeze: freeze, Params: params.In("encoder")})
	if err != nil {
		t.Fatalf("freeze %q: %v", freeze, err)
	}
	shift(params.All())
	return encoder{made, made.Describe(), params.All()}
}

func tokensOf(lengths ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b, length := range lengths {
		var ids []int32
		var segment []int8
		for i := range length {
			ids = append(ids, int32((7*b+3*i+i*i)%vocabulary))
			segment = append(segment, int8(2*i/length))
		}
		addText(&tokens, ids, segment)
	}
	return tokens
}

// ofTexts packs some texts of a batch, in the order they are named in.
func ofTexts(all corpus.Tokens, texts ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for _, text := range texts {
		lo, hi := all.Rows.Starts[text], all.Rows.Starts[text+1]
		addText(&tokens, all.IDs[lo:hi], all.Rows.Segment[lo:hi])
	}
	return tokens
}

func addText(to *corpus.Tokens, ids []int32, segment []int8) {
	to.Rows.Example = append(to.Rows.Example, to.Rows.Texts())
	to.IDs, to.Rows.Segment = append(to.IDs, ids...), append(to.Rows.Segment, segment...)
	to.Rows.Starts = append(to.Rows.Starts, len(to.IDs))
}

func (e encoder) encode(
	t *testing.T, tokens corpus.Tokens, mode encoders.Mode, training bool,
) (*nn.Pass, [][]float32) {
	t.Helper()
	p := nn.NewPass(5)
	p.Training = training
	states, err := e.Encode(p, tokens, mode)
	if err != nil {
		t.Fatal(err)
	}
	return p, states
}

// upstream are gradients that differ for all states.
func upstream(states [][]float32) [][]float32 {
	at := make([][]float32, len(states))
	for l, x := range states {
		at[l] = direction(uint64(50+l), len(x))
	}
	return at
}

// dotOf is the sum of the products of states with gradients at them.
func dotOf(states, at [][]float32) (sum float64) {
	for l, x := range states {
		for i, v := range x {
			sum += float64(v) * float64(at[l][i])
		}
	}
	return sum
}

func checkSame(t *testing.T, when string, got, want [][]float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d layers, want %d", when, len(got), len(want))
	}
	for l := range want {
		if !sameBits(got[l], want[l]) {
			t.Errorf("%s: layer %d differs", when, l)
		}
	}
}

// gradients returns those of Σ upstream·states in training, and the states.
func (e encoder) gradients(t *testing.T, tokens corpus.Tokens, mode encoders.Mode) (nn.Gradients, [][]float32) {
	t.Helper()
	p, states := e.encode(t, tokens, mode, true)
	into := nn.NewGradients(e.params)
	e.Backward(p, upstream(states), into)
	return into, states
}

func checkMemory(t *testing.T, m encoderMaker) {
	for _, training := range []bool{false, true} {
		for _, freeze := range []string{encoders.FreezeNone, "1", encoders.FreezeAll} {
			what := fmt.Sprintf("training %v, freeze %s", training, freeze)
			m.encoder(t, freeze, 0.2).checkMemory(t, what, lastLayer, training)
		}
		what := fmt.Sprintf("training %v, all layers", training)
		m.encoder(t, encoders.FreezeNone, 0.2).checkMemory(t, what, allLayers, training)
	}
}

// checkMemory compares the memory that a pass takes with the estimate of it.
func (e encoder) checkMemory(t *testing.T, what string, mode encoders.Mode, training bool) {
	t.Helper()
	tokens := tokensOf(longest, longest, longest)
	load := encoders.Workload{Tokens: len(tokens.IDs), Layers: mode.Layers, Training: training,
		Words: mode.Words != nil}
	estimate := e.Memory(load)
	load.Tokens *= 2
	if twice := e.Memory(load); estimate <= 0 || twice <= estimate {
		t.Errorf("%s: %d tokens take %d bytes, twice as many %d", what, len(tokens.IDs), estimate, twice)
	}
	if training && e.Backward == nil {
		return
	}
	p, states := e.encode(t, tokens, mode, training)
	switch {
	case training:
		e.Backward(p, upstream(states), nn.NewGradients(e.params))
	case load.Words:
		e.Words.Backward(p, upstream(states))
	}
	if takes := p.Bytes(); estimate < takes*9/10 || estimate > takes*2 {
		t.Errorf("%s: Memory says %d bytes, a pass takes %d", what, estimate, takes)
	}
}

// checkMemoryOfMaps checks that a pass takes as much more as the estimate says where attention maps are observed.
func checkMemoryOfMaps(t *testing.T, m encoderMaker) {
	e := m.encoder(t, encoders.FreezeNone, 0)
	if e.Attention == (encoders.AttentionMaps{}) {
		t.Skip("it has no attention maps")
	}
	takes := func(observe bool) int64 {
		p, texts := nn.NewPass(1), 0
		if observe {
			p.Observe(nn.AttentionMaps(0), func(int, []int, []float32) { texts++ })
		}
		if _, err := e.Encode(p, tokensOf(longest, 2), encoders.Mode{}); err != nil || observe != (texts == 2) {
			t.Fatalf("%d texts were observed, want 2; %v", texts, err)
		}
		return p.Bytes()
	}
	load := encoders.Workload{Tokens: longest + 2, Layers: nn.LastLayer}
	estimate := e.Memory(load)
	load.Mapped = longest
	more := e.Memory(load) - estimate
	if got := takes(true) - takes(false); more <= 0 || got < more || got > more+64 { // parts of memory are aligned
		t.Errorf("maps take %d bytes, Memory says %d", got, more)
	}
}
