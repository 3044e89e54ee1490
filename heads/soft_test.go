package heads

import (
	"fmt"
	"math"
	"math/rand/v2"
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

// softCase is a head whose logits are values [N C] for the examples, packed into a batch.
type softCase struct {
	soft     *Soft
	examples []*corpus.Example
	values   []float32
	columns  int
}

func (c softCase) rows() nn.Rows { return corpus.Pack(c.examples).Tokens.Rows }

// softCases are of two examples each, the second of which is in two windows if windows is set.
func softCases(t *testing.T, windows bool) map[string]softCase {
	t.Helper()
	texts, words, questions := softTextExamples(), softWordExamples(), softQuestions()
	if !windows {
		for _, examples := range [][]*corpus.Example{texts, words, questions} {
			examples[1].Windows = examples[1].Windows[:1]
		}
	}
	env := Env{Output: outputs.Tags, Labels: []string{"a", "b", "c"}, Width: 2, Params: nn.NewParams(1)}
	chain, err := newCRF(CRFOptions{Constraints: "none"}, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range env.Params.In("chain").All() {
		clear(w.Data)
	}
	unit := Number{unit: &nn.Param{Data: []float32{3, 2}}}
	noise := func(n int) []float32 {
		r, x := rand.New(rand.NewPCG(7, uint64(n))), make([]float32, n)
		for i := range x {
			x[i] = float32(2 * r.NormFloat64())
		}
		return x
	}
	cases := map[string]softCase{}
	add := func(name string, soft *Soft, examples []*corpus.Example, count func(rows nn.Rows) int, columns int) {
		n := count(corpus.Pack(examples).Tokens.Rows)
		cases[name] = softCase{soft, examples, noise(n * columns), columns}
	}
	wordsOf := func(rows nn.Rows) int { return len(rows.Words) }
	add("label", (&OneClass{}).Describe().Soft, texts, nn.Rows.Texts, 3)
	add("labels", (&ManyClasses{}).Describe().Soft, texts, nn.Rows.Texts, 3)
	add("number", unit.Describe().Soft, texts, nn.Rows.Texts, 1)
	add("tags", TagPerWord{}.Describe().Soft, words, wordsOf, 3)
	add("crf", chain.Describe().Soft, words, wordsOf, 3)
	add("span", (&span{}).Describe().Soft, questions, nn.Rows.Tokens, 2)
	return cases
}

// A student that has the logits of its teacher has nothing to learn from it.
func TestLogitsOfTheTeacherHaveNoGradient(t *testing.T) {
	for name, c := range softCases(t, false) {
		t.Run(name, func(t *testing.T) {
			answers := answersOf(t, c.soft, c.rows(), c.values, c.columns, c.examples, 1)
			_, d := softOf(t, c.soft, c.rows(), c.values, c.columns, answers, 1)
			for i, g := range d {
				near(t, fmt.Sprintf("gradient at %d", i), float64(g), 0, 1e-6)
			}
		})
	}
}

func TestGradientsOfSoftLossesAgreeWithDifferences(t *testing.T) {
	for name, c := range softCases(t, true) {
		for _, temperature := range []float64{1, 3} {
			t.Run(fmt.Sprintf("%s at temperature %v", name, temperature), func(t *testing.T) {
				other := slices.Clone(c.values)
				slices.Reverse(other)
				answers := answersOf(t, c.soft, c.rows(), other, c.columns, c.examples, temperature)
				value := func() float64 {
					loss, _ := softOf(t, c.soft, c.rows(), c.values, c.columns, answers, temperature)
					return loss
				}
				_, d := softOf(t, c.soft, c.rows(), c.values, c.columns, answers, temperature)
				const h = 1e-2
				for i, was := range c.values {
					c.values[i] = was + h
					up := value()
					c.values[i] = was - h
					down := value()
					c.values[i] = was
					near(t, fmt.Sprintf("gradient at %d", i), float64(d[i]), (up-down)/(2*h), 5e-3)
				}

				// an example without an answer changes nothing
				alone, _ := softOf(t, c.soft, c.rows(), c.values, c.columns, []*Answer{nil, answers[1]}, temperature)
				first, _ := softOf(t, c.soft, c.rows(), c.values, c.columns, []*Answer{answers[0], nil}, temperature)
				near(t, "sum of the losses of examples", alone+first, value(), 1e-4)
				if got := c.soft.Units(answers); got != c.soft.Units(answers[:1])+c.soft.Units(answers[1:]) {
					t.Errorf("%v units of two examples, which have others alone", got)
				}
			})
		}
	}
}

// Heads of either kind learn from the other. Without transitions the marginals of a chain are the probabilities of its
// words.
func TestTagsAndChainsLearnFromEachOther(t *testing.T) {
	cases := softCases(t, true)
	tags, chain := cases["tags"], cases["crf"]
	rows := tags.rows()
	a := answersOf(t, tags.soft, rows, tags.values, 3, tags.examples, 2)
	b := answersOf(t, chain.soft, rows, tags.values, 3, tags.examples, 2)
	for e := range a {
		for i, p := range a[e].Values {
			near(t, "marginal", float64(b[e].Values[i]), float64(p), 1e-5)
		}
	}
	one, _ := softOf(t, tags.soft, rows, chain.values, 3, b, 2)
	two, _ := softOf(t, chain.soft, rows, chain.values, 3, a, 2)
	near(t, "loss of the chain", two, one, 1e-4)
	if one, two := tags.soft.Units(b), chain.soft.Units(a); one != 5 || two != 5 {
		t.Errorf("%v and %v units, want 5", one, two)
	}
}

// A gold target that has no unit, such as a label that training lacks or tags of no word, is none: the answer counts.
func TestAStudentLearnsFromTheAnswerWhereGoldHasNoUnit(t *testing.T) {
	env := Env{Output: outputs.Label, Labels: []string{"a", "b", "c"}, Width: 2, Params: nn.NewParams(1)}
	head, err := newLinear(LinearOptions{Pool: "cls", ObjectiveOptions: PlainObjective}, env)
	if err != nil {
		t.Fatal(err)
	}
	student := NewStudent(head, &Lesson{Temperature: 2, Weight: 0.25})
	rows, answer := nn.Rows{Starts: []int{0, 1}, Example: []int{0}}, &Answer{Values: []float32{0.2, 0.3, 0.5}}
	loss := func(gold corpus.Target) float64 {
		targets := []corpus.Target{&Taught{Gold: gold, Answer: answer}}
		if units := student.Units(targets); units != 1 {
			t.Errorf("%v units with the gold target %v, want 1", units, gold)
		}
		p := nn.NewPass(1)
		logits := Logits{[]*nn.Node{p.Input([]float32{1, -0.5, 2}, 1, 3)}, rows}
		return lossOf(t, p, student.Loss(p, logits, targets))
	}
	near(t, "loss", loss(&outputs.LabelTarget{Label: "d", ID: corpus.Unknown}), loss(nil), 1e-6)
}

// The teacher of a head with probabilities may have a head without: what that predicts is as a gold label.
func TestAStudentLearnsWhatAHeadWithoutProbabilitiesPredicts(t *testing.T) {
	env := Env{Output: outputs.Label, Labels: []string{"a", "b", "c"}, Width: 2, Params: nn.NewParams(1)}
	head, err := newLinear(LinearOptions{Pool: "cls", ObjectiveOptions: PlainObjective}, env)
	if err != nil {
		t.Fatal(err)
	}
	student := NewStudent(head, &Lesson{Temperature: 2, Weight: 0.25})
	loss := func(target *Taught) float64 {
		targets := []corpus.Target{target}
		if units := student.Units(targets); units != 1 {
			t.Fatalf("%v units of %+v, want 1", units, target)
		}
		p := nn.NewPass(1)
		rows := nn.Rows{Starts: []int{0, 1}, Example: []int{0}}
		logits := Logits{[]*nn.Node{p.Input([]float32{1, -0.5, 2}, 1, 3)}, rows}
		return lossOf(t, p, student.Loss(p, logits, targets))
	}
	label := &outputs.LabelTarget{ID: 1}
	near(t, "loss", loss(&Taught{Predicted: label}), loss(&Taught{Gold: label}), 1e-6)
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

// A word that the teacher has not read is left out of the student's chain: no transition is forbidden across it.
func TestWordsWithoutAnAnswerAreAGapOfTheChain(t *testing.T) {
	env := Env{Output: outputs.Tags, Labels: []string{"O", "B-x", "E-x"}, Width: 2, Params: nn.NewParams(1)}
	made, err := newCRF(CRFOptions{Constraints: "bio"}, env)
	if err != nil {
		t.Fatal(err)
	}
	randomised(env)
	rows := nn.Rows{Starts: []int{0, 4}, Example: []int{0}, WordCount: []int{4}, Words: []int{0, 1, 2},
		WordIndex: []int{0, 1, 2}} // word 3 is truncated
	values := []float32{1, 2, 0, 5, 5, 5, 0, 1, 1}
	q := []float32{0.25, 0.5, 0.25, 0, 0, 0, 0.5, 0.25, 0.25}
	answer := &Answer{Values: append(slices.Clone(q), 1, 0, 0)}
	got, d := softOf(t, made.Describe().Soft, rows, values, 3, []*Answer{answer}, 2)

	p := nn.NewPass(1)
	chain := nn.Chain{Rows: []int{0, 2}, Gaps: []bool{false, true, true}}
	want := lossOf(t, p, made.(*crf).chain.SoftLoss(p.Input(values, 3, 3), []nn.Chain{chain}, q, 2))
	near(t, "loss", got, want, 1e-6)
	if !isZero(d[3:6]) {
		t.Errorf("gradient %v at a word without an answer, want 0", d[3:6])
	}
}

// encodingOf has the words of tokens, -1 for none.
func encodingOf(words ...int32) corpus.Encoding {
	n := len(words)
	return corpus.Encoding{IDs: make([]int32, n), Offsets: make([]corpus.Span, n), Segments: make([]int8, n),
		Words: words}
}

func softTextExamples() []*corpus.Example {
	return []*corpus.Example{{Windows: []corpus.Encoding{encodingOf(-1, -1)}},
		{Windows: []corpus.Encoding{encodingOf(-1), encodingOf(-1, -1, -1)}}}
}

// softWordExamples are [CLS] 0 1 1' [SEP] whose words 2 and 3 are truncated, and [CLS] 0 1 [SEP], [CLS] 1 2 [SEP].
func softWordExamples() []*corpus.Example {
	return []*corpus.Example{
		{Words: make([]corpus.Span, 4), Windows: []corpus.Encoding{encodingOf(-1, 0, 1, 1, -1)}},
		{Words: make([]corpus.Span, 3), Windows: []corpus.Encoding{encodingOf(-1, 0, 1, -1), encodingOf(-1, 1, 2, -1)}},
	}
}

// questionOf is [CLS] q [SEP] and tokens of the context, [SEP].
func questionOf(context ...corpus.Span) corpus.Encoding {
	n := 4 + len(context)
	w := corpus.Encoding{IDs: make([]int32, n), Offsets: make([]corpus.Span, n), Segments: make([]int8, n)}
	w.Offsets[1] = corpus.Span{Start: 0, End: 1}
	copy(w.Offsets[3:], context)
	for t := range context {
		w.Segments[3+t] = 1
	}
	w.Segments[n-1] = 1
	return w
}

// The tokens of the context "ab cd ef".
var ab, cd, ef = corpus.Span{Start: 0, End: 2}, corpus.Span{Start: 3, End: 5}, corpus.Span{Start: 6, End: 8}

// softQuestions are about the context "ab cd ef", the second in two windows.
func softQuestions() []*corpus.Example {
	return []*corpus.Example{
		{Text: "q", Pair: "ab cd ef", Paired: true, Windows: []corpus.Encoding{questionOf(ab, cd, ef)}},
		{Text: "q", Pair: "ab cd ef", Paired: true, Windows: []corpus.Encoding{questionOf(ab, cd), questionOf(cd, ef)}},
	}
}

func TestSoftLossOfTagsCountsWordsWithAnAnswerAndATokenOnce(t *testing.T) {
	soft := TagPerWord{}.Describe().Soft
	examples := softWordExamples()
	rows := corpus.Pack(examples).Tokens.Rows
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

// A teacher of two windows, and a student that has other tokens of the context, and not its end.
func TestAnswersToQuestionsAreLocatedInOtherTokens(t *testing.T) {
	soft := (&span{}).Describe().Soft
	teacher := softQuestions()[1:]
	rows := corpus.Pack(teacher).Tokens.Rows
	const inf = -1e9     // of tokens that are no answer
	values := []float32{ // [CLS] q [SEP] ab cd [SEP], [CLS] q [SEP] cd ef [SEP]
		1, 0, inf, inf, inf, inf, 2, 1, 0, 2, inf, inf,
		0, 0.5, inf, inf, inf, inf, 3, 1, 0, 4, inf, inf,
	}
	p := nn.NewPass(1)
	logits := Logits{[]*nn.Node{p.Input(values, 12, 2)}, rows}
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	const temperature = 2
	answer := soft.Answers(logits, teacher, temperature)[0]
	// no answer has the least logits of a window, 0 and 0.5; cd has its highest ones, 3 and 2
	starts := nn.Softmax(nn.Tempered([]float32{0, 2, 3, 0}, temperature))
	ends := nn.Softmax(nn.Tempered([]float32{0.5, 1, 2, 4}, temperature))
	if want := []corpus.Span{{}, ab, cd, ef}; !slices.Equal(answer.Places, want) {
		t.Fatalf("places %v, want %v", answer.Places, want)
	}
	for i := range starts {
		near(t, "start", float64(answer.Values[2*i]), float64(starts[i]), 1e-6)
		near(t, "end", float64(answer.Values[2*i+1]), float64(ends[i]), 1e-6)
	}

	// a b c, d: [CLS] and the tokens "ab c" and "d", and a window of "cd" alone
	student := &corpus.Example{Text: "q", Pair: "ab cd ef", Paired: true, Windows: []corpus.Encoding{
		questionOf(corpus.Span{Start: 0, End: 4}, corpus.Span{Start: 4, End: 5}), questionOf(cd)}}
	located := soft.Locate(answer, student)
	want := make([]float32, 2*11)
	want[0], want[1] = starts[0]+starts[3], ends[0]+ends[3]
	want[6], want[7] = starts[1]+starts[2], ends[1] // "ab c"
	want[9] = ends[2]                               // "d"
	want[12], want[13] = starts[0]+starts[1]+starts[3], ends[0]+ends[1]+ends[3]
	want[18], want[19] = starts[2], ends[2]
	for i := range want {
		near(t, fmt.Sprintf("located value %d", i), float64(located.Values[i]), float64(want[i]), 1e-6)
	}
	if units := soft.Units([]*Answer{&located, nil}); units != 2 {
		t.Errorf("%v units, want 2", units)
	}
}

func TestNumbersOfTeachersAreAsGoldNumbers(t *testing.T) {
	rows := nn.Rows{Starts: []int{0, 1, 2, 3}, Example: []int{0, 0, 1}}
	answers := []*Answer{{Values: []float32{4}}, nil}
	number := Number{unit: &nn.Param{Data: []float32{3, 2}}}
	got, _ := softOf(t, number.Describe().Soft, rows, []float32{1, 0, 9}, 1, answers, 7)
	near(t, "loss", got, (0.25+0.25)/2, 1e-6) // of (4-3)/2 in two windows
	var windows []corpus.Encoding
	for range 3 {
		windows = append(windows, encodingOf(-1))
	}
	examples := []*corpus.Example{{Windows: windows[:2]}, {Windows: windows[2:]}}
	own := answersOf(t, number.Describe().Soft, rows, []float32{1, 0, 9}, 1, examples, 1)
	near(t, "answer", float64(own[0].Values[0]), 3+2*0.5, 1e-6)

	pairs := nn.Rows{Starts: []int{0, 1, 2, 3, 4}, Example: []int{0, 0, 1, 1}, Second: []bool{false, true, false, true}}
	mse := &similarity{SimilarityOptions: SimilarityOptions{Loss: "mse", Range: []float64{1, 5}}}
	got, _ = softOf(t, mse.Describe().Soft, pairs, []float32{0.5, 0}, 1, answers, 1)
	near(t, "loss of a similarity", got, 0.0625, 1e-6) // of 0.5 and (4-1)/(5-1)
}

func TestWhichHeadsLearnFromTeachers(t *testing.T) {
	if (&oneLabel{}).Describe().Soft == nil {
		t.Error("a head that embeds OneClass does not")
	}
	reconstruction, err := newReconstruction(ReconstructionOptions{Pool: "cls"}, anomalyEnv())
	if err != nil {
		t.Fatal(err)
	}
	if reconstruction.Describe().Soft != nil {
		t.Error("reconstruction does, though its distances are no probabilities")
	}
}

// The states of a text in windows are one after the other; a text without an answer has no loss.
func TestSoftLossOfStatesIsTheMeanSquaredErrorOfTokens(t *testing.T) {
	soft := NewStates(nn.NewParams(1), 5, 3).Describe().Soft
	answers := []*Answer{{Values: []float32{1, 2, 3, 0, 0, 1}}, nil, {Values: make([]float32, 9)}}
	values := make([]float32, 3*6)
	for i := range values {
		values[i] = float32(i%7) - 3
	}
	loss, d := softOf(t, soft, softTextRows, values, 3, answers, 2)
	want := 0.0
	for i, v := range values {
		target, weight := float32(0), 1.0
		switch {
		case i < 6:
			target = answers[0].Values[i]
		case i < 9:
			weight = 0
		}
		want += weight * float64((v-target)*(v-target)) / 3
		near(t, fmt.Sprintf("gradient %d", i), float64(d[i]), weight*2*float64(v-target)/3, 1e-6)
	}
	near(t, "loss", loss, want, 1e-5)
	near(t, "units", soft.Units(answers), 5, 0)
}
