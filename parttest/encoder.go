package parttest

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

const (
	vocabulary = 20 // token ids of the encoders under test
	longest    = 9  // tokens of their texts
)

// Encoder checks the encoder registered as name, made from scratch with options written as YAML. Small sizes keep it
// quick: "{layers: 2, hidden: 5}".
func Encoder(t *testing.T, name, options string) {
	t.Helper()
	choice, err := encoders.Registry().FromString(name, options)
	if err != nil {
		t.Fatalf("encoder %q with options %q: %v", name, options, err)
	}
	m := encoderMaker(choice.Build)
	e := m.encoder(t, "none", 0.2)

	t.Run("it gives the states of the layers asked for", func(t *testing.T) { checkLayers(t, e) })
	t.Run("order and company of texts change no bit", func(t *testing.T) { checkEncoderCompany(t, e) })
	t.Run("threads change no bit", func(t *testing.T) { checkThreads(t, m) })
	t.Run("what it has no embedding for is an error that names the text", func(t *testing.T) { checkRefused(t, e) })
	if e.trainable() != nil {
		t.Run("gradients agree with differences, dropout on", func(t *testing.T) { checkEncoderGradients(t, m) })
		t.Run("what is frozen learns nothing and drops nothing", func(t *testing.T) { checkFrozenLayers(t, m) })
	}
	if _, saves := e.Encoder.(encoders.Saver); saves {
		t.Run("saved and opened it gives the same states", func(t *testing.T) { checkOpened(t, name, e) })
	}
	if _, estimates := e.Encoder.(encoders.MemoryEstimator); estimates {
		t.Run("it counts the memory that it takes", func(t *testing.T) { checkMemory(t, m) })
	}
}

// encoderMaker makes the encoder under test.
type encoderMaker func(encoders.Site) (encoders.Encoder, error)

// encoder is an encoder under test.
type encoder struct {
	encoders.Encoder
	params []*nn.Param
}

// encoder makes one whose parameters are far from their initial values, so that all its parts matter.
func (m encoderMaker) encoder(t *testing.T, freeze string, dropout float64) encoder {
	t.Helper()
	params := nn.NewParams(3)
	made, err := m(encoders.Site{Vocabulary: vocabulary, MaxLength: longest, Dropout: dropout, DropoutSet: true, Freeze: freeze,
		Params: params.In("encoder")})
	if err != nil {
		t.Fatalf("freeze %q: %v", freeze, err)
	}
	e := encoder{made, params.All()}
	for i, w := range e.params {
		for j, x := range direction(uint64(i), len(w.Data)) {
			w.Data[j] += 0.3 * x
		}
		w.Changed()
	}
	return e
}

// trainable is the encoder as one that learns, nil if it does not.
func (e encoder) trainable() encoders.Trainable {
	t, _ := e.Encoder.(encoders.Trainable)
	return t
}

// tokensOf makes texts of the given lengths.
func tokensOf(lengths ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b, length := range lengths {
		for i := range length {
			tokens.IDs = append(tokens.IDs, int32((7*b+3*i+i*i)%vocabulary))
			tokens.Rows.Segment = append(tokens.Rows.Segment, int8(2*i/length))
		}
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
		tokens.Rows.Example = append(tokens.Rows.Example, b)
	}
	return tokens
}

// ofTexts packs some texts of a batch, in the order they are named in.
func ofTexts(all corpus.Tokens, texts ...int) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b, text := range texts {
		lo, hi := all.Rows.Starts[text], all.Rows.Starts[text+1]
		tokens.IDs = append(tokens.IDs, all.IDs[lo:hi]...)
		tokens.Rows.Segment = append(tokens.Rows.Segment, all.Rows.Segment[lo:hi]...)
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
		tokens.Rows.Example = append(tokens.Rows.Example, b)
	}
	return tokens
}

// encode returns the states of the layers asked for, and the pass they live in.
func (e encoder) encode(t *testing.T, tokens corpus.Tokens, layers nn.Wanted, training bool) (*nn.Pass, [][]float32) {
	t.Helper()
	p := nn.NewPass(5)
	p.Training = training
	states, err := e.Encode(p, tokens, layers)
	if err != nil {
		t.Fatal(err)
	}
	return p, states
}

// upstream are gradients that tell all states apart.
func upstream(states [][]float32) [][]float32 {
	at := make([][]float32, len(states))
	for l, x := range states {
		at[l] = direction(uint64(50+l), len(x))
	}
	return at
}

// gradients returns those of Σ upstream·states in training, and the states.
func (e encoder) gradients(t *testing.T, tokens corpus.Tokens, layers nn.Wanted) (nn.Gradients, [][]float32) {
	t.Helper()
	p, states := e.encode(t, tokens, layers, true)
	into := nn.NewGradients(e.params)
	e.trainable().Backward(p, upstream(states), into)
	return into, states
}

func checkLayers(t *testing.T, e encoder) {
	tokens := tokensOf(1, 5, 3)
	_, last := e.encode(t, tokens, nn.LastLayer, false)
	_, all := e.encode(t, tokens, nn.AllLayers, false)
	if len(last) != 1 {
		t.Fatalf("%d layers where the last one is asked for", len(last))
	}
	if want := max(1, e.Describe().Layers); len(all) != want {
		t.Errorf("%d layers where all are asked for, Describe says %d", len(all), want)
	}
	for l, x := range slices.Concat(all, last) {
		if len(x) != len(tokens.IDs)*e.Describe().Width {
			t.Fatalf("layer %d has %d numbers for %d tokens of width %d", l, len(x), len(tokens.IDs), e.Describe().Width)
		}
	}
	if len(all) == 0 || !sameBits(all[len(all)-1], last[0]) {
		t.Error("the last of all layers is not the last layer")
	}
}

func checkEncoderCompany(t *testing.T, e encoder) {
	tokens := tokensOf(1, 5, longest, 3)
	_, all := e.encode(t, tokens, nn.AllLayers, false)
	_, backwards := e.encode(t, ofTexts(tokens, 3, 2, 1, 0), nn.AllLayers, false)
	row := len(tokens.IDs) // of the text in the batch that is backwards
	for b := range tokens.Rows.Texts() {
		lo, hi := tokens.Rows.Starts[b]*e.Describe().Width, tokens.Rows.Starts[b+1]*e.Describe().Width
		row -= tokens.Rows.Starts[b+1] - tokens.Rows.Starts[b]
		_, alone := e.encode(t, ofTexts(tokens, b), nn.AllLayers, false)
		for l := range all {
			if !sameBits(alone[l], all[l][lo:hi]) {
				t.Errorf("text %d: layer %d is not what it is in a batch", b, l)
			}
			if !sameBits(backwards[l][row*e.Describe().Width:][:hi-lo], all[l][lo:hi]) {
				t.Errorf("text %d: layer %d is not what it is in a batch of another order", b, l)
			}
		}
	}
}

func checkThreads(t *testing.T, m encoderMaker) {
	defer kernel.SetThreads(0)
	lengths := make([]int, 60)
	for i := range lengths {
		lengths[i] = 1 + i%longest
	}
	var want [][]float32
	for threads := 1; threads <= 2; threads++ {
		kernel.SetThreads(threads)
		e := m.encoder(t, "none", 0.2)
		_, got := e.encode(t, tokensOf(lengths...), nn.LastLayer, false)
		if e.trainable() != nil {
			into, states := e.gradients(t, tokensOf(lengths...), nn.LastLayer)
			got = append(slices.Clone(got), states...)
			for _, w := range e.params {
				got = append(got, into.Of(w))
			}
		}
		if threads == 1 {
			want = got
		}
		for i := range want {
			if !sameBits(got[i], want[i]) {
				t.Errorf("states or gradients, number %d of %d, differ with %d threads", i+1, len(want), threads)
			}
		}
	}
}

func checkRefused(t *testing.T, e encoder) {
	refused := func(what string, tokens corpus.Tokens) {
		t.Helper()
		_, err := e.Encode(nn.NewPass(1), tokens, nn.LastLayer)
		if err == nil || !strings.Contains(err.Error(), "text 3") {
			t.Errorf("%s in the third text: error %v, want one that says text 3", what, err)
		}
	}
	for what, id := range map[string]int32{"a token outside the vocabulary": vocabulary, "a token below 0": -1} {
		tokens := tokensOf(1, 5, 3)
		tokens.IDs[7] = id
		refused(what, tokens)
	}
	if most := e.Describe().MaxTokens; most > 0 {
		refused("more tokens than MaxTokens says", tokensOf(1, 2, most+1))
	}
}

// checkOpened saves the encoder, and opens it without saying its sizes.
func checkOpened(t *testing.T, name string, e encoder) {
	folder, tokens := filepath.Join(t.TempDir(), "encoder"), tokensOf(1, 5, 3)
	if err := e.Encoder.(encoders.Saver).Save(folder); err != nil {
		t.Fatal(err)
	}
	choice, err := encoders.Registry().FromString(name, "")
	if err != nil {
		t.Fatal(err)
	}
	opened, err := choice.Build(encoders.Site{Model: folder, Vocabulary: vocabulary, MaxLength: longest, Params: nn.NewParams(9).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	if opened.Describe().Width != e.Describe().Width {
		t.Fatalf("opened it has the width %d, saved %d", opened.Describe().Width, e.Describe().Width)
	}
	_, want := e.encode(t, tokens, nn.AllLayers, false)
	_, got := encoder{Encoder: opened}.encode(t, tokens, nn.AllLayers, false)
	if len(got) != len(want) {
		t.Fatalf("opened it has %d layers, saved %d", len(got), len(want))
	}
	for l := range want {
		if !sameBits(got[l], want[l]) {
			t.Errorf("layer %d differs", l)
		}
	}
}

func checkMemory(t *testing.T, m encoderMaker) {
	tokens := tokensOf(longest, longest, longest)
	for _, training := range []bool{false, true} {
		for _, c := range []struct {
			layers nn.Wanted
			freeze string
		}{{nn.LastLayer, "none"}, {nn.AllLayers, "none"}, {nn.LastLayer, "1"}, {nn.LastLayer, "all"}} {
			layers, e := c.layers, m.encoder(t, c.freeze, 0.2)
			load := encoders.Load{Tokens: len(tokens.IDs), Layers: layers, Training: training}
			said := e.Encoder.(encoders.MemoryEstimator).Memory(load)
			load.Tokens *= 2
			if twice := e.Encoder.(encoders.MemoryEstimator).Memory(load); said <= 0 || twice <= said {
				t.Errorf("training %v: %d tokens take %d bytes, twice as many %d", training, len(tokens.IDs), said, twice)
			}

			if training && e.trainable() == nil {
				continue
			}
			p, states := e.encode(t, tokens, layers, training)
			if training {
				e.trainable().Backward(p, upstream(states), nn.NewGradients(e.params))
			}
			if takes := p.Bytes(); said < takes*9/10 || said > takes*2 {
				t.Errorf("training %v, freeze %s: Memory says %d bytes, a pass takes %d", training, c.freeze, said, takes)
			}
		}
	}
}
