package parttest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// numbered is a tokenizer whose tokens are their ids.
type numbered struct{ corpus.Tokenizer }

func (numbered) Token(id int32) string { return strconv.Itoa(int(id)) }

func checkKinds(t *testing.T, s subject, kind *outputs.Kind, b batch) {
	logits := s.run(t, b, false, false).logits
	got := s.Predict(logits)
	if len(got) != len(b.gold) {
		t.Fatalf("%d predictions for %d examples", len(got), len(b.gold))
	}
	shape, values := []int(logits.Nodes[0].Shape()), nn.Values(logits.Nodes[0])
	for e, p := range got {
		if err := kind.Sample().Check(p, b.rows, e, len(labels)); err != nil {
			t.Errorf("prediction %d: %v", e, err)
		}
		checkPredictionBytes(t, kind, p)
		in := outputs.Input{Labels: corpus.NewLabels(labels), Tokenizer: numbered{}}
		for _, answer := range kind.Answers(p, in, b.rows, e, shape) {
			for _, i := range answer.Logits {
				if i < 0 || i >= len(values) {
					t.Errorf("prediction %d: logit %d of %d", e, i, len(values))
				}
			}
			for _, text := range answer.Texts {
				if b.rows.Example[text] != e {
					t.Errorf("prediction %d: an answer is about text %d, of another example", e, text)
				}
			}
		}
	}
}

// show formats predictions, which are pointers.
func show(predictions ...corpus.Prediction) string {
	all := make([]string, len(predictions))
	for i, p := range predictions {
		all[i] = fmt.Sprintf("%+v", p)
	}
	return strings.Join(all, "\n")
}

func checkSaved(t *testing.T, m maker, b batch) {
	trained := m.subject(t, 1)
	trained.train(t, b, 3)
	checkLoaded(t, trained, m.subject(t, 2), b)
}

// checkLoaded gives loaded the parameters of trained, and compares what they predict.
func checkLoaded(t *testing.T, trained, loaded subject, b batch) {
	saved := map[string]*nn.Param{}
	for _, w := range trained.params {
		saved[w.Name] = w
	}
	if len(loaded.params) != len(trained.params) {
		t.Fatalf("made twice it has %d and %d parameters", len(trained.params), len(loaded.params))
	}
	for _, w := range loaded.params {
		from := saved[w.Name]
		if from == nil || !slices.Equal(from.Shape, w.Shape) {
			t.Fatalf("parameter %s %v is not among those of the same head made before", w.Name, w.Shape)
		}
		copy(w.Data, from.Data)
	}
	got := loaded.Predict(loaded.run(t, b, false, false).logits)
	want := trained.Predict(trained.run(t, b, false, false).logits)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("loaded it predicts\n%s\nwhere the trained one predicts\n%s\nAll that it learns must be in its env's "+
			"Params", show(got...), show(want...))
	}
}

func checkCompany(t *testing.T, s subject, texts []text) {
	all := s.Predict(s.run(t, pack(texts...), false, false).logits)
	backwards := slices.Clone(texts)
	slices.Reverse(backwards)
	reversed := s.Predict(s.run(t, pack(backwards...), false, false).logits)
	slices.Reverse(reversed)
	for i, x := range texts {
		alone := s.Predict(s.run(t, pack(x), false, false).logits)[0]
		if !reflect.DeepEqual(all[i], alone) {
			t.Errorf("text %d: in a batch %s, alone %s", i, show(all[i]), show(alone))
		}
		if !reflect.DeepEqual(all[i], reversed[i]) {
			t.Errorf("text %d: %s, in a batch of another order %s", i, show(all[i]), show(reversed[i]))
		}
	}
}

// checkReads checks that a head which is a heads.RowReader needs no other states than it names.
func checkReads(t *testing.T, s subject, b batch) {
	reader, ok := s.Head.(heads.RowReader)
	if !ok {
		return
	}
	read := reader.Reads(b.rows)
	if read == nil {
		return
	}
	want := s.Predict(s.run(t, b, false, false).logits)
	b.states = leftOut(b.states, read)
	if got := s.Predict(s.run(t, b, false, false).logits); !reflect.DeepEqual(got, want) {
		t.Errorf("it predicts\n%s\nwith NaN in all rows but %v, else\n%s", show(got...), read, show(want...))
	}
}

// leftOut returns a copy of states of the common width with NaN in all rows but those that are read.
func leftOut(states []float32, read []int) []float32 {
	left := make([]float32, len(states))
	for i := range left {
		left[i] = float32(math.NaN())
		if slices.Contains(read, i/width) {
			left[i] = states[i]
		}
	}
	return left
}

func checkNaN(t *testing.T, s subject, b batch) {
	b.states = slices.Clone(b.states)
	for i := range b.states {
		b.states[i] = float32(math.NaN())
	}
	p := s.run(t, b, false, true)
	if got := s.Predict(p.logits); len(got) != len(b.gold) {
		t.Errorf("%d predictions, want %d", len(got), len(b.gold))
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
