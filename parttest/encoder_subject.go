package parttest

import (
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

type encoderMaker func(encoders.Env) (encoders.Encoder, error)

type encoder struct {
	encoders.Encoder
	params []*nn.Param
}

// encoder makes an encoder whose parameters are far from their initial values, so that all of them have an effect.
func (m encoderMaker) encoder(t *testing.T, freeze string, dropout float64) encoder {
	t.Helper()
	params := nn.NewParams(3)
	made, err := m(encoders.Env{Vocabulary: vocabulary, MaxLength: longest, Dropout: dropout, DropoutSet: true,
		Freeze: freeze,
		Params: params.In("encoder")})
	if err != nil {
		t.Fatalf("freeze %q: %v", freeze, err)
	}
	shift(params.All())
	return encoder{made, params.All()}
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

func (e encoder) encode(t *testing.T, tokens corpus.Tokens, layers nn.LayerSet, training bool) (*nn.Pass, [][]float32) {
	t.Helper()
	p := nn.NewPass(5)
	p.Training = training
	states, err := e.Encode(p, tokens, encoders.Mode{Layers: layers})
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
func (e encoder) gradients(t *testing.T, tokens corpus.Tokens, layers nn.LayerSet) (nn.Gradients, [][]float32) {
	t.Helper()
	p, states := e.encode(t, tokens, layers, true)
	into := nn.NewGradients(e.params)
	e.Describe().Backward(p, upstream(states), into)
	return into, states
}

func checkMemory(t *testing.T, m encoderMaker) {
	tokens := tokensOf(longest, longest, longest)
	for _, training := range []bool{false, true} {
		for _, c := range []struct {
			layers nn.LayerSet
			freeze string
		}{
			{nn.LastLayer, encoders.FreezeNone}, {nn.AllLayers, encoders.FreezeNone},
			{nn.LastLayer, "1"}, {nn.LastLayer, encoders.FreezeAll},
		} {
			layers, e := c.layers, m.encoder(t, c.freeze, 0.2)
			load := encoders.Workload{Tokens: len(tokens.IDs), Layers: layers, Training: training}
			estimate := e.Describe().Memory(load)
			load.Tokens *= 2
			if twice := e.Describe().Memory(load); estimate <= 0 || twice <= estimate {
				t.Errorf("training %v: %d tokens take %d bytes, twice as many %d", training, len(tokens.IDs), estimate,
					twice)
			}

			if training && e.Describe().Backward == nil {
				continue
			}
			p, states := e.encode(t, tokens, layers, training)
			if training {
				e.Describe().Backward(p, upstream(states), nn.NewGradients(e.params))
			}
			if takes := p.Bytes(); estimate < takes*9/10 || estimate > takes*2 {
				t.Errorf("training %v, freeze %s: Memory says %d bytes, a pass takes %d", training, c.freeze, estimate,
					takes)
			}
		}
	}
}

// checkMemoryOfMaps checks that a pass takes as much more as the estimate says where attention maps are observed.
func checkMemoryOfMaps(t *testing.T, m encoderMaker) {
	e := m.encoder(t, encoders.FreezeNone, 0)
	if (e.Describe().Attention == encoders.AttentionMaps{}) {
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
	estimate := e.Describe().Memory(load)
	load.Mapped = longest
	more := e.Describe().Memory(load) - estimate
	if got := takes(true) - takes(false); more <= 0 || got < more || got > more+64 { // parts of memory are aligned
		t.Errorf("maps take %d bytes, Memory says %d", got, more)
	}
}
