package heads

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Answer is what the head of a teacher predicts for an example, whatever its tokens are: probabilities at a
// temperature, or a number.
type Answer struct {
	// Values are, row by row, the probabilities of a text's labels, one row; of the tags of each word of the example,
	// zeros for one that the teacher has not read; of each of Places as the first and as the last of a span. Or they
	// are a number, in the unit of the data.
	Values []float32
	// Places are those that an answer to a question may begin or end with: their bytes in the context, the first {0 0}
	// for no answer; nil for other outputs. Of an answer that was located they are the units of the loss.
	Places []corpus.Span
}

// Soft is what a head needs to be a teacher, or to learn from the answers of one (Hinton et al. 2015, "Distilling the
// Knowledge in a Neural Network"; Clark et al. 2019, "BAM! Born-Again Multi-Task Networks"). Teacher and student have
// the same kind of outputs, and the same labels in the same order; their heads, tokens and windows may differ. Each
// unit of the loss weighs 1: class weights, label smoothing and focus are for gold labels.
type Soft struct {
	// Answers returns the answer for each of the examples of a batch, after p.Forward: the probabilities of Predict at
	// a temperature above 0.
	Answers func(logits Logits, examples []*corpus.Example, temperature float64) []Answer
	// Locate returns an answer of any teacher for the tokens of a student's example, of which the methods below take
	// such answers. It may share the memory of a. Words that are in no window have zeros. Places become the tokens of
	// windows, that with no answer and those that a window lacks its first token; Values have then a row for each token
	// of the example, window after window, and Places the tokens of each window.
	Locate func(a Answer, e *corpus.Example) Answer
	// Units counts the units of located answers, one for each example, nil without an answer: texts, words whose row is
	// not zeros, or windows of a question.
	Units func(answers []*Answer) float64
	// Loss is the sum over these units of the cross entropy against the answers, of the probabilities at the
	// temperature, times its square; or of the head's distance to a number, whatever the temperature. It is nil if
	// there are none. The loss of a text in windows is the mean over them.
	Loss func(p *nn.Pass, logits Logits, answers []*Answer, temperature float64) *nn.Node
}

// softTexts is for probabilities of labels for each text, those of logits as a head is calibrated. loss is as
// nn.SoftCrossEntropy.
func softTexts(calibrated *Calibration, probabilities func(logits []float32) []float32,
	loss func(logits *nn.Node, q []float32, temperature float64, rows []float32) *nn.Node) *Soft {
	answers := func(logits Logits, _ []*corpus.Example, temperature float64) []Answer {
		var all []Answer
		for _, windows := range WindowLogits(logits) {
			all = append(all, Answer{Values: calibrated.meanOver(windows, func(z []float32) []float32 {
				return probabilities(nn.Tempered(z, temperature))
			})})
		}
		return all
	}
	lossOf := func(_ *nn.Pass, logits Logits, answers []*Answer, temperature float64) *nn.Node {
		texts, labels := textsOf(logits.Rows), logits.Nodes[0].Shape()[1]
		weights, q := make([]float32, logits.Rows.Texts()), make([]float32, logits.Rows.Texts()*labels)
		for b, e := range logits.Rows.Example {
			if a := answers[e]; a != nil {
				checkAnswer(a, 1, labels)
				weights[b] = 1 / texts[e]
				copy(q[b*labels:(b+1)*labels], a.Values)
			}
		}
		if answered(answers) == 0 {
			return nil
		}
		return loss(logits.Nodes[0], q, temperature, weights)
	}
	return &Soft{Answers: answers, Locate: asIs, Units: answered, Loss: lossOf}
}

// asIs is Soft.Locate of answers that do not depend on tokens.
func asIs(a Answer, _ *corpus.Example) Answer { return a }

// answered is Soft.Units of answers that are one unit each.
func answered(answers []*Answer) float64 {
	n := 0.0
	for _, a := range answers {
		if a != nil {
			n++
		}
	}
	return n
}

func checkAnswer(a *Answer, rows, columns int) {
	if len(a.Values) != rows*columns {
		panic(fmt.Sprintf("heads: an answer of %d values, want %d for each of %d", len(a.Values), columns, rows))
	}
}

// softNumbers is for numbers of texts: the answer of a teacher is as a gold number.
func softNumbers(o Objective) *Soft {
	answers := func(logits Logits, _ []*corpus.Example, _ float64) []Answer {
		var all []Answer
		for _, p := range outputs.AllAs[outputs.NumberPrediction](o.Predict(logits)) {
			all = append(all, Answer{Values: []float32{float32(p.Value)}})
		}
		return all
	}
	loss := func(p *nn.Pass, logits Logits, answers []*Answer, _ float64) *nn.Node {
		gold := make([]corpus.Target, len(answers))
		for e, a := range answers {
			if a != nil {
				checkAnswer(a, 1, 1)
				gold[e] = &outputs.NumberTarget{Value: float64(a.Values[0])}
			}
		}
		return o.Loss(p, logits, gold)
	}
	return &Soft{Answers: answers, Locate: asIs, Units: answered, Loss: loss}
}

// softWords is for probabilities of tags for each word. Both functions receive logits [W L] and the row of each word of
// each example, below 0 for none. answers writes the probabilities of the words that have a row. loss is against
// probabilities q [W L]; words without an answer have no row there.
func softWords(
	answers func(logits *nn.Node, words [][]int, temperature float64, write func(e, w int, p []float32)),
	loss func(logits *nn.Node, words [][]int, q []float32, temperature float64) *nn.Node) *Soft {
	answersOf := func(logits Logits, _ []*corpus.Example, temperature float64) []Answer {
		words, tags := outputs.WordRows(logits.Rows), logits.Nodes[0].Shape()[1]
		all := make([]Answer, len(words))
		for e := range words {
			all[e].Values = make([]float32, len(words[e])*tags)
		}
		answers(logits.Nodes[0], words, temperature, func(e, w int, p []float32) { copy(all[e].Values[w*tags:], p) })
		return all
	}
	lossOf := func(_ *nn.Pass, logits Logits, answers []*Answer, temperature float64) *nn.Node {
		rows, tags, has := outputs.WordRows(logits.Rows), logits.Nodes[0].Shape()[1], false
		q := make([]float32, len(logits.Rows.Words)*tags)
		for e, words := range rows {
			if answers[e] != nil {
				checkAnswer(answers[e], len(words), tags)
			}
			for w, k := range words {
				if k < 0 || answers[e] == nil || isZero(answers[e].Values[w*tags:(w+1)*tags]) {
					words[w] = -1
					continue
				}
				copy(q[k*tags:], answers[e].Values[w*tags:(w+1)*tags])
				has = true
			}
		}
		if !has {
			return nil
		}
		return loss(logits.Nodes[0], rows, q, temperature)
	}
	return &Soft{Answers: answersOf, Locate: locateWords, Units: answeredWords, Loss: lossOf}
}

// locateWords is Soft.Locate of tags: Places are the words.
func locateWords(a Answer, e *corpus.Example) Answer {
	words := len(e.Words)
	tags := max(1, len(a.Values)/max(1, words))
	checkAnswer(&a, words, tags)
	located := Answer{slices.Clone(a.Values), e.Words}
	for w, there := range e.WordsInWindows() {
		if !there {
			clear(located.Values[w*tags : (w+1)*tags])
		}
	}
	return located
}

func answeredWords(answers []*Answer) float64 {
	n := 0.0
	for _, a := range answers {
		if a == nil || len(a.Places) == 0 {
			continue
		}
		for row := range slices.Chunk(a.Values, len(a.Values)/len(a.Places)) {
			if !isZero(row) {
				n++
			}
		}
	}
	return n
}

func isZero(x []float32) bool {
	return !slices.ContainsFunc(x, func(v float32) bool { return v != 0 })
}
