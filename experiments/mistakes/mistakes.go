// Package mistakes lists what the heads of a trained run get wrong, each prediction beside its gold target.
package mistakes

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
	"github.com/jenga-nlp/jenga/tasks"
)

// Head is what a head predicts for the labelled examples of a split.
type Head struct {
	Task, Head string
	Examples   int            // that have a target
	Wrong      int            // of them; 0 of a head of numbers
	Numbers    bool           // it predicts numbers, which are neither right nor wrong
	Words      bool           // its spans are single words: its tags mark none
	Spans      map[string]int // of tags: how many spans are right, and how many of each kind of mistake
	// Judged are the examples in their order: wrong ones without a loss, then those of the largest loss, or of numbers
	// of the largest error, first, and right ones without a loss last.
	Judged []Judged
}

// Judged is a prediction beside its gold target.
type Judged struct {
	Task  string `json:"task"`
	Head  string `json:"head"`
	File  string `json:"file"`
	Line  int    `json:"line,omitzero"`
	Entry string `json:"entry,omitzero"` // of a line that holds several examples

	Right *bool `json:"right,omitempty"` // nil for a number
	// Loss is the mean over the example's units, by the logits as they are without a calibration; nil where it has
	// none, and of a number, whose loss may be one of several examples.
	Loss   *float64 `json:"loss,omitempty"`
	NoLoss string   `json:"no_loss,omitempty"` // why there is none, where that is known
	Error  *float64 `json:"error,omitempty"`   // of a number: the predicted one less the gold one

	Gold      any `json:"gold"`      // as a data file has it; the target where its kind has no such form
	Predicted any `json:"predicted"` // likewise, or as jenga predict writes it
	// Abstained says that the label is too improbable to be an answer. Right does not depend on it, as in evaluations.
	Abstained   bool     `json:"abstained,omitempty"`
	Probability *float64 `json:"probability,omitempty"` // of what is predicted; of several the least certain one's
	Spans       []Span   `json:"spans,omitempty"`       // that are wrong

	Text string  `json:"text"`
	Pair *string `json:"pair,omitempty"`
}

// Kinds of mistakes of a Span, and Right, as which Head.Spans counts the others.
const (
	Right    = "right"
	Missed   = "missed"   // a gold span that no predicted one overlaps, or one of another label and other words
	Spurious = "spurious" // a predicted span for which the same holds
	Label    = "label"    // the words of a gold span, with another label
	Boundary = "boundary" // the label of a gold span that it overlaps, on other words
)

// Kinds are those of spans, in their order.
var Kinds = []string{Missed, Spurious, Label, Boundary}

// Span is a span of words that is missed or predicted wrongly. Its offsets are characters of Judged.Text, End
// exclusive.
type Span struct {
	Kind      string `json:"kind"`
	Gold      string `json:"gold,omitempty"`      // label
	Predicted string `json:"predicted,omitempty"` // label
	Start     int    `json:"start"`
	End       int    `json:"end"`
	Text      string `json:"text"`
	GoldText  string `json:"gold_text,omitempty"` // of the gold span, where the boundary is wrong
}

// Of returns what the heads of a run, or those of one task, predict for the examples of a split, which Read has read.
// It leaves out heads that hide tokens and heads of anomalies. It returns an error if the machine has too little
// memory. progress, if not nil, is called with the number of examples done, of all.
func Of(ctx context.Context, o *predict.Opened, split, task string, progress func(done, of int)) ([]Head, error) {
	if err := o.CheckMemory(split); err != nil {
		return nil, err
	}
	t, ofGroup := o.Data.Experiment.Training, o.OfAll(split, progress)
	var all []Head
	for g, group := range o.Data.Groups {
		examples := group.Examples[split]
		if examples == nil {
			continue
		}
		of := &o.Model.Groups[g]
		var judged []bool
		for _, t := range of.Tasks {
			for range t.Heads {
				judged = append(judged, (task == "" || task == t.Name) && judges(t.Type.Output()))
			}
		}
		if !slices.Contains(judged, true) {
			continue
		}
		results, err := o.Model.Judge(ctx, of, judged, examples, t.BatchSize, t.BatchTokens, ofGroup)
		if err != nil {
			return nil, err
		}
		h := 0
		for _, t := range of.Tasks {
			for _, head := range t.Heads {
				if judged[h] {
					j := judge{head: head, kind: t.Type.Output(), spans: tasks.DescriptionOf(t.Type).Spans,
						tokenizer: o.Data.Tokenizer, of: Head{Task: t.Name, Head: head.Name}}
					for i, e := range examples {
						j.add(e, e.Targets[h], results[h].Predicted[i], results[h].Losses[i])
					}
					all = append(all, j.ordered())
				}
				h++
			}
		}
	}
	return all, nil
}

// judges reports whether mistakes of a kind of outputs are listed.
func judges(kind *outputs.Kind) bool {
	return !kind.HidesTokens && (kind.Discrete() || kind.Number != nil)
}

// judge judges the predictions of a head.
type judge struct {
	head      multitask.Head
	kind      *outputs.Kind
	spans     func(tags []string) []outputs.TagSpan // nil of tags without spans
	tokenizer corpus.Tokenizer
	of        Head
}

// add judges a prediction; an example without a target is none.
func (j *judge) add(e *corpus.Example, target corpus.Target, predicted corpus.Prediction, loss float64) {
	if target == nil {
		return
	}
	in := outputs.Input{Example: e, Labels: j.head.Labels, Tokenizer: j.tokenizer, Spans: j.spans}
	one := Judged{Task: j.of.Task, Head: j.of.Head, File: e.Place.File, Line: e.Place.Line, Entry: e.Place.Entry,
		Gold: j.kind.Gold(target, in), Text: e.Text}
	one.Predicted, one.Abstained = j.answer(predicted, in)
	if e.Paired {
		one.Pair = &e.Pair
	}
	if p, ok := certainty(predicted); ok {
		one.Probability = &p
	}
	j.of.Examples++
	switch {
	case j.kind.Discrete():
		right := j.kind.Right(target, predicted)
		if math.IsNaN(loss) {
			one.NoLoss = j.noLoss(target)
		} else {
			one.Loss = &loss
		}
		if one.Right = &right; !right {
			j.of.Wrong++
		}
	case j.kind.Count(target).Number != nil:
		difference := j.kind.Number(predicted) - *j.kind.Count(target).Number
		one.Error, j.of.Numbers = &difference, true
	}
	if tags, ok := target.(*outputs.TagsTarget); ok {
		gold, found := j.marked(tags, outputs.As[outputs.TagsPrediction](predicted))
		one.Spans = j.compare(e, gold, found)
	}
	j.of.Judged = append(j.of.Judged, one)
}

// answer returns a prediction as a data file has it, or as jenga predict writes it where its kind has no such form. A
// label that is too improbable to be an answer is there too.
func (j *judge) answer(predicted corpus.Prediction, in outputs.Input) (answer any, abstained bool) {
	if label, ok := predicted.(*outputs.LabelPrediction); ok && label.Abstained {
		other := *label
		other.Abstained, abstained = false, true
		predicted = &other
	}
	if answer = j.kind.Data(predicted, in); answer == nil {
		answer = j.kind.JSON(predicted, in)
	}
	return answer, abstained
}

// noLoss returns why an example has no loss; "" where that is not known.
func (j *judge) noLoss(target corpus.Target) string {
	if unknown := j.kind.Unknown(target); len(unknown) > 0 {
		return fmt.Sprintf("train has no label %q", unknown[0])
	}
	if check := j.head.Head.Describe().CheckTarget; check != nil {
		if err := check(target); err != nil {
			return err.Error()
		}
	}
	return ""
}

// certainty returns the probability of what is predicted: of several labels or tags the least certain.
func certainty(predicted corpus.Prediction) (float64, bool) {
	least := float32(1)
	switch p := predicted.(type) {
	case *outputs.LabelPrediction:
		least = p.Probabilities[p.ID]
	case *outputs.LabelsPrediction:
		for c, probability := range p.Probabilities {
			if !slices.Contains(p.IDs, c) {
				probability = 1 - probability
			}
			least = min(least, probability)
		}
	case *outputs.TagsPrediction:
		for w, probability := range p.Probabilities {
			if p.IDs[w] >= 0 {
				least = min(least, probability)
			}
		}
	case *outputs.SpanPrediction:
		least = p.Probability
	default:
		return 0, false
	}
	return float64(least), true
}

// marked returns the spans that gold and predicted tags mark; where they mark none, each word that has a gold tag.
func (j *judge) marked(tags *outputs.TagsTarget, found *outputs.TagsPrediction) (gold, predicted []outputs.TagSpan) {
	if j.spans != nil {
		return j.spans(tags.Tags), j.spans(found.Tags)
	}
	j.of.Words = true
	for w, tag := range tags.Tags {
		if tag != "" {
			gold = append(gold, outputs.TagSpan{Label: tag, Start: w, End: w + 1})
			if found.IDs[w] >= 0 {
				predicted = append(predicted, outputs.TagSpan{Label: found.Tags[w], Start: w, End: w + 1})
			}
		}
	}
	return gold, predicted
}

// compare returns the predicted spans that differ from gold ones, in the order of their words. One with the words of a
// gold one, then one that overlaps a gold one of its label, is compared with that.
func (j *judge) compare(e *corpus.Example, missed, spurious []outputs.TagSpan) (wrong []Span) {
	if j.of.Spans == nil {
		j.of.Spans = map[string]int{}
	}
	offsets := corpus.NewOffsets(e.Text, corpus.Characters)
	bytesOf := func(s outputs.TagSpan) corpus.Span {
		return corpus.Span{Start: e.Words[s.Start].Start, End: e.Words[s.End-1].End}
	}
	add := func(kind string, at outputs.TagSpan, gold, predicted string) *Span {
		place := bytesOf(at)
		shown := offsets.Span(place)
		wrong = append(wrong, Span{Kind: kind, Gold: gold, Predicted: predicted, Start: shown.Start, End: shown.End,
			Text: e.Text[place.Start:place.End]})
		return &wrong[len(wrong)-1]
	}

	missed, spurious = pairEqual(missed, spurious, func(s outputs.TagSpan) outputs.TagSpan { return s },
		func(_, _ outputs.TagSpan) { j.of.Spans[Right]++ })
	missed, spurious = pairEqual(missed, spurious,
		func(s outputs.TagSpan) outputs.TagSpan { return outputs.TagSpan{Start: s.Start, End: s.End} },
		func(g, p outputs.TagSpan) {
			j.of.Spans[Label]++
			add(Label, p, g.Label, p.Label)
		})
	missed, spurious = pairOverlapping(missed, spurious, func(g, p outputs.TagSpan) {
		j.of.Spans[Boundary]++
		of := bytesOf(g)
		add(Boundary, p, g.Label, p.Label).GoldText = e.Text[of.Start:of.End]
	})
	for _, g := range missed {
		add(Missed, g, g.Label, "")
	}
	for _, p := range spurious {
		add(Spurious, p, "", p.Label)
	}
	j.of.Spans[Missed] += len(missed)
	j.of.Spans[Spurious] += len(spurious)
	slices.SortStableFunc(wrong, func(a, b Span) int { return cmp.Compare(a.Start, b.Start) })
	return wrong
}

// pairEqual calls pair with each gold span and the first predicted one with the same key that has none yet, and returns
// the others.
func pairEqual(gold, predicted []outputs.TagSpan, key func(outputs.TagSpan) outputs.TagSpan,
	pair func(g, p outputs.TagSpan)) (missed, spurious []outputs.TagSpan) {
	waiting := map[outputs.TagSpan][]int{}
	for i, p := range predicted {
		waiting[key(p)] = append(waiting[key(p)], i)
	}
	paired := make([]bool, len(predicted))
	for _, g := range gold {
		at := waiting[key(g)]
		if len(at) == 0 {
			missed = append(missed, g)
			continue
		}
		paired[at[0]], waiting[key(g)] = true, at[1:]
		pair(g, predicted[at[0]])
	}
	return missed, without(predicted, paired)
}

// pairOverlapping is pairEqual of spans that overlap and have the same label, from left to right.
func pairOverlapping(gold, predicted []outputs.TagSpan, pair func(g, p outputs.TagSpan)) (
	missed, spurious []outputs.TagSpan) {
	byStart := func(a, b outputs.TagSpan) int { return cmp.Compare(a.Start, b.Start) }
	slices.SortStableFunc(gold, byStart)
	slices.SortStableFunc(predicted, byStart)
	waiting := map[string][]int{}
	for i, p := range predicted {
		waiting[p.Label] = append(waiting[p.Label], i)
	}
	paired := make([]bool, len(predicted))
	for _, g := range gold {
		at := waiting[g.Label]
		for len(at) > 0 && predicted[at[0]].End <= g.Start { // and so before all later ones
			at = at[1:]
		}
		if len(at) > 0 && predicted[at[0]].Start < g.End {
			pair(g, predicted[at[0]])
			paired[at[0]], at = true, at[1:]
		} else {
			missed = append(missed, g)
		}
		waiting[g.Label] = at
	}
	return missed, without(predicted, paired)
}

func without(all []outputs.TagSpan, which []bool) (left []outputs.TagSpan) {
	for i, s := range all {
		if !which[i] {
			left = append(left, s)
		}
	}
	return left
}

// ordered returns the head with its examples in their order.
func (j *judge) ordered() Head {
	badness := func(one Judged) float64 {
		switch {
		case one.Error != nil:
			return math.Abs(*one.Error)
		case one.Loss != nil:
			return *one.Loss
		case one.Right != nil && *one.Right:
			return math.Inf(-1)
		}
		return math.Inf(1)
	}
	slices.SortStableFunc(j.of.Judged, func(a, b Judged) int { return cmp.Compare(badness(b), badness(a)) })
	return j.of
}
