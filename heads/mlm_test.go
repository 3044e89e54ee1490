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
	made, err := NewMLM(MLMOptions{Fraction: 0.15, Masked: 0.8, Random: 0.1, Guesses: 3}, env)
	if err != nil {
		t.Fatal(err)
	}
	return made.(*mlm)
}

// plainBatch is texts of the given numbers of tokens, two of them special.
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

func sources(seed uint64) func(int) rand.Source {
	return func(example int) rand.Source { return rand.NewPCG(seed, uint64(example)) }
}

func TestTokensAreHiddenAsBERTDoes(t *testing.T) {
	h := newHiding(t)
	batch := plainBatch(402, 202, 3)
	masked, random, kept := 0, 0, 0
	for seed := range uint64(40) {
		hiding := h.Prepare(batch, sources(seed))
		asked := 0
		for b, e := range hiding.Examples {
			from, to := hiding.Rows(b)
			n := len(hiddenIDs(e.Targets[:1]))
			if want := max(1, int(0.15*float64(to-from-2)+0.5)); n != want {
				t.Fatalf("%d of %d tokens are hidden, want %d", n, to-from-2, want)
			}
			for _, id := range outputs.As[outputs.HiddenTarget](e.Targets[0]).IDs {
				row := hiding.Tokens.Rows.Hidden[asked]
				asked++
				if row <= from || row >= to-1 || id != batch.Tokens.IDs[row] {
					t.Fatalf("row %d of %d to %d is hidden for token %d", row, from, to, id)
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
		if asked != len(hiding.Tokens.Rows.Hidden) || !slices.IsSorted(hiding.Tokens.Rows.Hidden) {
			t.Fatalf("rows %v for %d tokens", hiding.Tokens.Rows.Hidden, asked)
		}
	}
	all := float64(masked + random + kept)
	if !(math.Abs(float64(masked)/all-0.8) <= 0.03 && math.Abs(float64(random)/all-0.1) <= 0.02) {
		t.Errorf("of %v hidden tokens %d are masked, %d random, %d kept", all, masked, random, kept)
	}
	if len(hiddenIDs(batch.Examples[0].Targets)) != 0 || batch.Tokens.IDs[5] != 15 {
		t.Error("the batch itself was changed")
	}
	a, b, c := h.Prepare(batch, sources(1)), h.Prepare(batch, sources(1)), h.Prepare(batch, sources(2))
	if !slices.Equal(a.Tokens.IDs, b.Tokens.IDs) || slices.Equal(a.Tokens.IDs, c.Tokens.IDs) {
		t.Error("what is hidden is no function of the source")
	}
}

func TestAMaskOfTheTextIsNoAnswer(t *testing.T) {
	h := newHiding(t)
	for seed := range uint64(20) {
		batch := plainBatch(6)
		w := &batch.Examples[0].Windows[0]
		w.IDs[2], batch.Tokens.IDs[2] = h.mask, h.mask
		if got := hiddenIDs(h.Prepare(batch, sources(seed)).Examples[0].Targets); len(got) != 1 ||
			got[0] == int(h.mask) {
			t.Fatalf("tokens %v are asked for", got)
		}
	}
}

func TestPrepareWithoutSourceHidesTheMaskTokens(t *testing.T) {
	h := newHiding(t)
	batch := plainBatch(4, 5)
	batch.Tokens.IDs[2], batch.Tokens.IDs[5] = h.mask, h.mask
	asked := h.Prepare(batch, nil)
	if !slices.Equal(asked.Tokens.Rows.Hidden, []int{2, 5}) || !slices.Equal(asked.Tokens.IDs, batch.Tokens.IDs) {
		t.Errorf("rows %v are asked for", asked.Tokens.Rows.Hidden)
	}
}

func TestGuessesNameTheirPlace(t *testing.T) {
	h := newHiding(t)
	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 2, 5, 6}, Example: []int{0, 0, 1}, Hidden: []int{1, 4}}
	values := make([]float32, 2*hidingVocabulary)
	values[7], values[9], values[hidingVocabulary+5] = 9, 8, 4
	scores := LogitsOf(nn.Hidden{Rows: rows}, p.Input(values, 2, hidingVocabulary))
	predictions := outputs.Predictions[outputs.HiddenPrediction](h.Predict(scores))
	if len(predictions) != 2 || len(predictions[0].Tokens) != 2 || predictions[1].Tokens != nil {
		t.Fatalf("predictions %+v", predictions)
	}
	first, second := predictions[0].Tokens[0], predictions[0].Tokens[1]
	if first.Window != 0 || first.Token != 1 || second.Window != 1 || second.Token != 2 {
		t.Errorf("guesses at %d %d and %d %d, want 0 1 and 1 2", first.Window, first.Token, second.Window, second.Token)
	}
	if len(first.Guesses) != 3 || first.Guesses[0].ID != 7 || first.Guesses[1].ID != 9 || second.Guesses[0].ID != 5 ||
		first.Guesses[0].Probability < first.Guesses[1].Probability {
		t.Errorf("best %v and %v", first.Guesses, second.Guesses)
	}
}
