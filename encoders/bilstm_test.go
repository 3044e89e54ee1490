package encoders

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

var smallBiLSTM = BiLSTMOptions{Embedding: 6, Layers: 2, Hidden: 5}

func makeBiLSTM(t *testing.T, o BiLSTMOptions, freeze string) *bilstm {
	t.Helper()
	e, err := NewBiLSTM(o, Site{Vocabulary: 20, Dropout: 0.2, DropoutSet: true, Freeze: freeze, Params: nn.NewParams(3).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	return e.(*bilstm)
}

// someTexts are texts of 1, 5 and 3 tokens.
func someTexts() corpus.Tokens {
	tokens := corpus.Tokens{IDs: []int32{3, 1, 4, 1, 5, 9, 2, 6, 19}}
	tokens.Rows.Starts = []int{0, 1, 6, 9}
	return tokens
}

func encodeAll(t *testing.T, e Encoder, tokens corpus.Tokens, training bool) (*nn.Pass, [][]float32) {
	t.Helper()
	p := nn.NewPass(5)
	p.Training = training
	layers, err := e.Encode(p, tokens, nn.AllLayers)
	if err != nil {
		t.Fatal(err)
	}
	return p, layers
}

func TestBiLSTMsGradientsAgreeWithDifferences(t *testing.T) {
	e, tokens := makeBiLSTM(t, smallBiLSTM, "none"), someTexts()
	weigh := func(layers [][]float32) (loss float64, d [][]float32) {
		for l, x := range layers {
			g := make([]float32, len(x))
			for i, v := range x {
				g[i] = float32(math.Sin(float64(7*l + i)))
				loss += float64(v * g[i])
			}
			d = append(d, g)
		}
		return loss, d
	}
	p, layers := encodeAll(t, e, tokens, true)
	_, d := weigh(layers)
	into := nn.NewGradients(e.params.All())
	e.Backward(p, d, into)
	for _, w := range e.params.All() {
		got := into.Of(w)
		for i := 0; i < len(w.Data); i += 1 + len(w.Data)/9 {
			const h = 1e-2
			was := w.Data[i]
			at := func(v float32) float64 {
				w.Data[i] = v
				_, layers := encodeAll(t, e, tokens, true)
				loss, _ := weigh(layers)
				return loss
			}
			want := (at(was+h) - at(was-h)) / (2 * h)
			w.Data[i] = was
			if math.Abs(float64(got[i])-want) > 5e-3*math.Max(1, math.Abs(want)) {
				t.Errorf("gradient of %s at %d is %v, differences say %v", w.Name, i, got[i], want)
			}
		}
	}
}

func TestATextsBiLSTMStatesAreItsOwn(t *testing.T) {
	e, tokens := makeBiLSTM(t, BiLSTMOptions{Embedding: 24, Layers: 2, Hidden: 40}, "none"), someTexts()
	_, all := encodeAll(t, e, tokens, false)
	for b := range tokens.Rows.Texts() {
		lo, hi := tokens.Rows.Starts[b], tokens.Rows.Starts[b+1]
		alone := corpus.Tokens{IDs: tokens.IDs[lo:hi], Rows: nn.Rows{Starts: []int{0, hi - lo}}}
		_, got := encodeAll(t, e, alone, false)
		for l := range got {
			if !slices.Equal(got[l], all[l][lo*e.Width():hi*e.Width()]) {
				t.Errorf("text %d: layer %d alone is not what it is in a batch", b, l)
			}
		}
	}
}

func TestAFrozenBiLSTMDropsNothingAndLearnsNothing(t *testing.T) {
	e, tokens := makeBiLSTM(t, smallBiLSTM, "all"), someTexts()
	_, evaluated := encodeAll(t, e, tokens, false)
	_, training := encodeAll(t, e, tokens, true)
	for l := range evaluated {
		if !slices.Equal(evaluated[l], training[l]) {
			t.Errorf("layer %d differs in training", l)
		}
	}
	e = makeBiLSTM(t, smallBiLSTM, "1") // embeddings and the first layer
	p, layers := encodeAll(t, e, tokens, true)
	into := nn.NewGradients(e.params.All())
	e.Backward(p, [][]float32{nil, layers[1]}, into)
	for _, w := range e.params.All() {
		if learns := strings.HasPrefix(w.Name, "encoder.layer.1."); into.Takes(w) != learns {
			t.Errorf("parameter %s takes a gradient: %v", w.Name, into.Takes(w))
		} else if learns && !slices.ContainsFunc(into.Of(w), func(v float32) bool { return v != 0 }) {
			t.Errorf("parameter %s has no gradient", w.Name)
		}
	}
}

func TestABiLSTMIsSavedAndOpened(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "encoder")
	e, tokens := makeBiLSTM(t, smallBiLSTM, "none"), someTexts()
	if err := e.Save(folder); err != nil {
		t.Fatal(err)
	}
	opened, err := NewBiLSTM(bilstmDefaults, Site{Model: folder, Vocabulary: 20, Freeze: "all", Params: nn.NewParams(9)})
	if err != nil {
		t.Fatal(err)
	}
	_, want := encodeAll(t, e, tokens, false)
	_, got := encodeAll(t, opened, tokens, false)
	for l := range want {
		if !slices.Equal(got[l], want[l]) {
			t.Errorf("layer %d differs", l)
		}
	}

	for name, c := range map[string]struct{ config, want string }{
		"sizes that are too large": {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":2,"hidden":1000000000}`, "hidden 1000000000: want sizes above 0"},
		"another model":            {`{"model_type":"bert"}`, `model_type is "bert"; want bilstm`},
		"other sizes":              {`{"model_type":"bilstm","vocab_size":20,"embedding":6,"layers":2,"hidden":7}`, "has shape"},
		"a smaller vocabulary":     {`{"model_type":"bilstm","vocab_size":19,"embedding":6,"layers":2,"hidden":5}`, "vocab_size is 19, but the tokenizer has 20"},
		"no JSON":                  {`{`, "unexpected end"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(filepath.Join(folder, "config.json"), []byte(c.config), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := NewBiLSTM(bilstmDefaults, Site{Model: folder, Vocabulary: 20, Params: nn.NewParams(9)})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestATokenOutsideTheVocabularyIsAnError(t *testing.T) {
	e, tokens := makeBiLSTM(t, smallBiLSTM, "none"), someTexts()
	tokens.IDs[7] = 20
	_, err := e.Encode(nn.NewPass(1), tokens, nn.LastLayer)
	if want := "text 3 of the batch: token id 20 is outside the encoder's vocabulary of 20"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
