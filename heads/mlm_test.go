package heads

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

const hidingVocabulary = 1000

func newHiding(t *testing.T) *mlm {
	t.Helper()
	params := nn.NewParams(1)
	env := Env{Output: outputs.HiddenTokens, Width: 4, Mask: 3,
		Words: params.In("encoder").Normal("words", 1, hidingVocabulary, 4), Params: params.In("head")}
	head, err := newMLM(MLMOptions{Fraction: 0.15, Masked: 0.8, Random: 0.1, Guesses: 3}, env)
	if err != nil {
		t.Fatal(err)
	}
	return head.(*mlm)
}

// plainBatch returns a batch of texts with these numbers of tokens, of which two are special.
func plainBatch(lengths ...int) *corpus.Batch {
	var examples []*corpus.Example
	for _, n := range lengths {
		w := corpus.Encoding{Segments: make([]int8, n), Offsets: make([]corpus.Span, n)}
		for i := range n {
			id := int32(10 + i)
			switch i {
			case 0:
				id = 1
			case n - 1:
				id = 2
			default:
				w.Offsets[i] = corpus.Span{Start: i, End: i + 1}
			}
			w.IDs = append(w.IDs, id)
		}
		target := &outputs.HiddenTarget{IDs: []int32{}}
		examples = append(examples, &corpus.Example{Windows: []corpus.Encoding{w}, Targets: []corpus.Target{target}})
	}
	return corpus.Pack(examples)
}

func randomSources(seed uint64) func(int) rand.Source {
	return func(example int) rand.Source { return rand.NewPCG(seed, uint64(example)) }
}

func TestTokensAreHiddenAsInBERT(t *testing.T) {
	h := newHiding(t)
	batch := plainBatch(402, 202, 3)
	masked, random, kept := 0, 0, 0
	for seed := range uint64(40) {
		hiding := h.prepare(batch, randomSources(seed))
		hidden := 0
		for b, e := range hiding.Examples {
			from, to := hiding.Rows(b)
			n := len(hiddenIDs(e.Targets[:1]))
			if want := max(1, int(0.15*float64(to-from-2)+0.5)); n != want {
				t.Fatalf("%d of %d tokens are hidden, want %d", n, to-from-2, want)
			}
			for _, id := range outputs.As[outputs.HiddenTarget](e.Targets[0]).IDs {
				row := hiding.Tokens.Rows.Hidden[hidden]
				hidden++
				if row <= from || row >= to-1 || id != batch.Tokens.IDs[row] {
					t.Fatalf("row %d of %d to %d is hidden with target %d", row, from, to, id)
				}
				switch hiding.Tokens.IDs[row] {
				case h.mask:
					masked++
				case id:
					kept++
				default:
					random++
				}
			}
		}
		if hidden != len(hiding.Tokens.Rows.Hidden) || !slices.IsSorted(hiding.Tokens.Rows.Hidden) {
			t.Fatalf("hidden rows %v for %d hidden tokens", hiding.Tokens.Rows.Hidden, hidden)
		}
	}
	total := float64(masked + random + kept)
	if !(math.Abs(float64(masked)/total-0.8) <= 0.03 && math.Abs(float64(random)/total-0.1) <= 0.02) {
		t.Errorf("of %v hidden tokens %d are masked, %d random, %d kept", total, masked, random, kept)
	}
	if len(hiddenIDs(batch.Examples[0].Targets)) != 0 || batch.Tokens.IDs[5] != 15 {
		t.Error("Prepare changed its argument")
	}
	a, b := h.prepare(batch, randomSources(1)), h.prepare(batch, randomSources(1))
	c := h.prepare(batch, randomSources(2))
	if !slices.Equal(a.Tokens.IDs, b.Tokens.IDs) || slices.Equal(a.Tokens.IDs, c.Tokens.IDs) {
		t.Error("the hidden tokens are not a function of the source")
	}
}

func TestMaskTokensOfTextAreNotHidden(t *testing.T) {
	h := newHiding(t)
	for seed := range uint64(20) {
		batch := plainBatch(6)
		w := &batch.Examples[0].Windows[0]
		w.IDs[2], batch.Tokens.IDs[2] = h.mask, h.mask
		if got := hiddenIDs(h.prepare(batch, randomSources(seed)).Examples[0].Targets); len(got) != 1 ||
			got[0] == int(h.mask) {
			t.Fatalf("hidden tokens %v, want one that is not the mask token", got)
		}
	}
}

func TestPrepareWithoutSourceTakesMaskTokens(t *testing.T) {
	h := newHiding(t)
	batch := plainBatch(4, 5)
	batch.Tokens.IDs[2], batch.Tokens.IDs[5] = h.mask, h.mask
	hidden := h.prepare(batch, nil)
	if !slices.Equal(hidden.Tokens.Rows.Hidden, []int{2, 5}) || !slices.Equal(hidden.Tokens.IDs, batch.Tokens.IDs) {
		t.Errorf("hidden rows %v, want those of the mask tokens, 2 and 5", hidden.Tokens.Rows.Hidden)
	}
}

func TestGuessesHaveWindowAndToken(t *testing.T) {
	h := newHiding(t)
	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 2, 5, 6}, Example: []int{0, 0, 1}, Hidden: []int{1, 4}}
	values := make([]float32, 2*hidingVocabulary)
	values[7], values[9], values[hidingVocabulary+5] = 9, 8, 4
	logits := LogitsOf(nn.Hidden{Rows: rows}, p.Input(values, 2, hidingVocabulary))
	predictions := outputs.AllAs[outputs.HiddenPrediction](h.Predict(logits))
	if len(predictions) != 2 || len(predictions[0].Tokens) != 2 || predictions[1].Tokens != nil {
		t.Fatalf("predictions %+v", predictions)
	}
	first, second := predictions[0].Tokens[0], predictions[0].Tokens[1]
	if first.Window != 0 || first.Token != 1 || second.Window != 1 || second.Token != 2 {
		t.Errorf("guesses at %d %d and %d %d, want 0 1 and 1 2", first.Window, first.Token, second.Window, second.Token)
	}
	if len(first.Guesses) != 3 || first.Guesses[0].ID != 7 || first.Guesses[1].ID != 9 || second.Guesses[0].ID != 5 ||
		first.Guesses[0].Probability < first.Guesses[1].Probability {
		t.Errorf("guesses %v and %v", first.Guesses, second.Guesses)
	}
}
