package heads

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// softOf is the loss of a head whose logits are values [N C] against answers, and its gradient at them.
func softOf(t *testing.T, soft *Soft, rows nn.Rows, values []float32, columns int, answers []*Answer,
	temperature float64) (loss float64, d []float32) {
	t.Helper()
	p := nn.NewPass(1)
	logits := Logits{[]*nn.Node{p.Input(values, len(values)/columns, columns)}, rows}
	node := soft.Loss(p, logits, answers, temperature)
	if node == nil {
		t.Fatal("no loss")
	}
	loss = lossOf(t, p, node)
	d = make([]float32, len(values))
	if err := p.Backward(node, 1, nn.Gradients{}, logits.Nodes[:1], [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	return loss, d
}

// answersOf are the answers of a head whose logits are values, located in the examples.
func answersOf(t *testing.T, soft *Soft, rows nn.Rows, values []float32, columns int, examples []*corpus.Example,
	temperature float64) []*Answer {
	t.Helper()
	p := nn.NewPass(1)
	logits := Logits{[]*nn.Node{p.Input(values, len(values)/columns, columns)}, rows}
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	var all []*Answer
	for e, a := range soft.Answers(logits, examples, temperature) {
		located := soft.Locate(a, examples[e])
		all = append(all, &located)
	}
	return all
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// three examples: a text, a text without an answer, and a text in two windows
var softTextRows = nn.Rows{Starts: []int{0, 2, 3, 5, 6}, Example: []int{0, 1, 2, 2}}

var softTextLogits = []float32{1, -0.5, 2, 0, 3, 1, 0.25, 0.5, -1, 2, 1, 0}

func TestSoftLossOfALabelIsTheMeanOverWindows(t *testing.T) {
	soft := (&OneClass{}).Describe().Soft
	answers := []*Answer{{Values: []float32{0.2, 0.3, 0.5}}, nil, {Values: []float32{1, 0, 0}}}
	const temperature = 2
	want := 0.0
	for _, c := range []struct {
		row     int
		factor  float64
		targets []float32
	}{{0, 1, answers[0].Values}, {2, 0.5, answers[2].Values}, {3, 0.5, answers[2].Values}} {
		total := 0.0
		for _, z := range softTextLogits[3*c.row : 3*c.row+3] {
			total += math.Exp(float64(z) / temperature)
		}
		for k, q := range c.targets {
			z := float64(softTextLogits[3*c.row+k])
			want += temperature * temperature * c.factor * float64(q) * (math.Log(total) - z/temperature)
		}
	}
	got, d := softOf(t, soft, softTextRows, softTextLogits, 3, answers, temperature)
	near(t, "loss", got, want, 1e-5)
	if units := soft.Units(answers); units != 2 {
		t.Errorf("%v units, want 2", units)
	}
	if !isZero(d[3:6]) {
		t.Errorf("gradient %v at a text without an answer, want 0", d[3:6])
	}
	if soft.Loss(nil, Logits{[]*nn.Node{nn.NewPass(1).Input(softTextLogits, 4, 3)}, softTextRows}, make([]*Answer, 3),
		1) != nil {
		t.Error("examples without answers have a loss")
	}
}

// A student that has the logits of its teacher has nothing to learn from it.
func TestLogitsOfTheTeacherHaveNoGradient(t *testing.T) {
	whole := nn.Rows{Starts: []int{0, 2, 3}, Example: []int{0, 1}}
	for name, soft := range map[string]*Soft{"label": (&OneClass{}).Describe().Soft} {
		t.Run(name, func(t *testing.T) {
			answers := answersOf(t, soft, whole, softTextLogits[:6], 3, []*corpus.Example{{}, {}}, 1)
			_, d := softOf(t, soft, whole, softTextLogits[:6], 3, answers, 1)
			for _, g := range d {
				near(t, "gradient", float64(g), 0, 1e-6)
			}
		})
	}
}

func TestAnswersOfCalibratedHeadsAreThoseOfPredict(t *testing.T) {
	head := &OneClass{}
	head.Calibrate(Calibration{Scale: []float32{0.5}, Offset: []float32{1, 0, 0}})
	p := nn.NewPass(1)
	logits := Logits{[]*nn.Node{p.Input(softTextLogits, 4, 3)}, softTextRows}
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	predicted := outputs.AllAs[outputs.LabelPrediction](head.Predict(logits))
	for e, a := range head.Describe().Soft.Answers(logits, nil, 1) {
		if !slices.Equal(a.Values, predicted[e].Probabilities) {
			t.Errorf("answer %v, want %v", a.Values, predicted[e].Probabilities)
		}
	}
}

// Two examples: [CLS] 0 1 1' [SEP] whose words 2 and 3 are truncated, and [CLS] 0 1 [SEP], [CLS] 1 2 [SEP].
func softWordExamples() ([]*corpus.Example, nn.Rows) {
	encoding := func(words ...int32) corpus.Encoding {
		n := len(words)
		return corpus.Encoding{IDs: make([]int32, n), Offsets: make([]corpus.Span, n), Segments: make([]int8, n),
			Words: words}
	}
	examples := []*corpus.Example{
		{Words: make([]corpus.Span, 4), Windows: []corpus.Encoding{encoding(-1, 0, 1, 1, -1)}},
		{Words: make([]corpus.Span, 3), Windows: []corpus.Encoding{encoding(-1, 0, 1, -1), encoding(-1, 1, 2, -1)}},
	}
	return examples, corpus.Pack(examples).Tokens.Rows
}

func TestSoftLossOfTagsCountsWordsWithAnAnswerAndATokenOnce(t *testing.T) {
	soft := TagPerWord{}.Describe().Soft
	examples, rows := softWordExamples()
	var answers []*Answer
	for e, values := range [][]float32{{0.25, 0.75, 0, 0, 0.5, 0.5, 1, 0}, {1, 0, 0.4, 0.6, 0, 1}} {
		// the teacher has read no word 1 of the first example
		a := soft.Locate(Answer{Values: values}, examples[e])
		answers = append(answers, &a)
	}
	if want := []float32{0.25, 0.75, 0, 0, 0, 0, 0, 0}; !slices.Equal(answers[0].Values, want) {
		t.Errorf("located values %v, want %v", answers[0].Values, want)
	}
	if units := soft.Units(append(answers, nil)); units != 4 {
		t.Errorf("%v units, want 4", units)
	}
	// rows: words 0 and 1 of the first; 0, 1, 1 and 2 of the second, whose word 1 has its row in the first window
	logits := []float32{1, 0, 7, 7, 0, 2, 3, 1, 7, -7, 0, 0}
	want := -0.25*math.Log(1/(1+math.Exp(-1))) - 0.75*math.Log(1/(1+math.Exp(1))) // word 0
	want += math.Log(1+math.Exp(2)) + math.Ln2                                    // words 0 and 2 of the second
	want += -0.4*math.Log(1/(1+math.Exp(-2))) - 0.6*math.Log(1/(1+math.Exp(2)))
	got, d := softOf(t, soft, rows, logits, 2, answers, 1)
	near(t, "loss", got, want, 1e-5)
	if !isZero(d[2:4]) || !isZero(d[8:10]) {
		t.Errorf("gradient %v, want 0 at rows 1 and 4", d)
	}
	answers[0] = nil
	if units := soft.Units(answers); units != 3 {
		t.Errorf("%v units, want 3", units)
	}
}
