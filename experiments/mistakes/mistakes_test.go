package mistakes

import (
	"encoding/json"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
	"github.com/jenga-nlp/jenga/tasks"
)

// What is listed sums up to what an evaluation of the same run says.
func TestMistakesAreThoseOfTheEvaluation(t *testing.T) {
	run, err := predict.OpenRun(t.Context(), trained.Kinds(t))
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Read(t.Context(), config.Train, "", nil); err != nil {
		t.Fatal(err)
	}
	groups, err := run.Evaluate(t.Context(), config.Train, nil)
	if err != nil {
		t.Fatal(err)
	}
	heads, err := Of(t.Context(), run, config.Train, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, of := range task.Heads {
				at := slices.IndexFunc(heads, func(h Head) bool { return h.Task == task.Task && h.Head == of.Head })
				if at < 0 {
					checked["left out"]++
					continue
				}
				checkHead(t, heads[at], of, checked)
			}
		}
	}
	for _, what := range []string{"left out", "accuracy", "span_f1", "mae", "exact_match", "loss", "loss of words"} {
		if checked[what] == 0 {
			t.Errorf("no head with %s; %v", what, checked)
		}
	}

	// those of one task
	only, err := Of(t.Context(), run, config.Train, heads[0].Task, nil)
	if err != nil || slices.ContainsFunc(only, func(h Head) bool { return h.Task != heads[0].Task }) || len(only) == 0 {
		t.Errorf("%d heads, %v; want those of %s", len(only), err, heads[0].Task)
	}
}

// checkHead compares the mistakes of a head with its metrics, and counts in checked what was compared.
func checkHead(t *testing.T, h Head, of multitask.HeadMetrics, checked map[string]int) {
	t.Helper()
	errors, losses, units := 0.0, 0.0, 0
	for i, j := range h.Judged {
		if j.Error != nil {
			errors += math.Abs(*j.Error) / float64(h.Examples)
		}
		if j.Loss != nil { // a mean over the text's units: itself, or its words with a tag
			n := 1
			if tags, ok := j.Gold.([]*string); ok {
				n = len(tags) - len(slices.DeleteFunc(slices.Clone(tags), func(tag *string) bool { return tag != nil }))
			}
			losses, units = losses+float64(n)**j.Loss, units+n
		}
		if i > 0 && h.Judged[i-1].Loss != nil && !h.Numbers && *h.Judged[i-1].Loss < *j.Loss {
			t.Errorf("%s: text %d has a larger loss than the one before", h.Task, i+1)
		}
		if j.File == "" || j.Line == 0 || j.Text == "" {
			t.Errorf("%s: %+v, want its place and its text", h.Task, j)
		}
	}
	right := 1 - float64(h.Wrong)/float64(h.Examples)
	spans := 0.0
	if n := h.Spans[Missed] + h.Spans[Spurious] + 2*(h.Spans[Label]+h.Spans[Boundary]+h.Spans[Right]); n > 0 {
		spans = 2 * float64(h.Spans[Right]) / float64(n)
	}
	for _, m := range of.Metrics {
		of := map[string]float64{"accuracy": right, "exact_match": right, "span_f1": spans, "mae": errors}
		want, compared := of[m.Name]
		if m.Name == "accuracy" && h.Words {
			want = float64(h.Spans[Right]) / float64(h.Spans[Right]+h.Spans[Label]+h.Spans[Missed])
		}
		if !compared || m.Name == "accuracy" && h.Spans != nil && !h.Words { // of all words
			continue
		}
		if checked[m.Name]++; math.Abs(m.Value-want) > 1e-9 {
			t.Errorf("%s, %s: %s %v by the mistakes, of the evaluation %v", h.Task, h.Head, m.Name, want, m.Value)
		}
	}
	if float64(units) == of.Loss.Units && units > 0 {
		if checked["loss"]++; h.Spans != nil {
			checked["loss of words"]++
		}
		if math.Abs(losses/float64(units)-of.Loss.Mean()) > 1e-5 {
			t.Errorf("%s, %s: loss %v by the mistakes, of the evaluation %v", h.Task, h.Head, losses/float64(units),
				of.Loss.Mean())
		}
	}
}

func TestSpansAreComparedByTheirWords(t *testing.T) {
	e := &corpus.Example{Text: "a b c d e f g é h"}
	for at, word := 0, ""; at < len(e.Text); at += len(word) + 1 {
		word, _, _ = strings.Cut(e.Text[at:], " ")
		e.Words = append(e.Words, corpus.Span{Start: at, End: at + len(word)})
	}
	type spans []outputs.TagSpan
	at := func(label string, start, end int) outputs.TagSpan {
		return outputs.TagSpan{Label: label, Start: start, End: end}
	}
	for name, c := range map[string]struct {
		gold, predicted spans
		want            []Span
	}{
		"the same":   {spans{at("X", 1, 3)}, spans{at("X", 1, 3)}, nil},
		"missed":     {spans{at("X", 1, 3)}, nil, []Span{{Missed, "X", "", 2, 5, "b c", ""}}},
		"spurious":   {nil, spans{at("X", 1, 3)}, []Span{{Spurious, "", "X", 2, 5, "b c", ""}}},
		"label":      {spans{at("X", 1, 3)}, spans{at("Y", 1, 3)}, []Span{{Label, "X", "Y", 2, 5, "b c", ""}}},
		"boundary":   {spans{at("X", 1, 3)}, spans{at("X", 2, 5)}, []Span{{Boundary, "X", "X", 4, 9, "c d e", "b c"}}},
		"characters": {nil, spans{at("X", 7, 9)}, []Span{{Spurious, "", "X", 14, 17, "é h", ""}}},
		"both": {spans{at("X", 1, 3)}, spans{at("Y", 2, 5)},
			[]Span{{Missed, "X", "", 2, 5, "b c", ""}, {Spurious, "", "Y", 4, 9, "c d e", ""}}},
		"beside": {spans{at("X", 1, 3)}, spans{at("X", 3, 5)},
			[]Span{{Missed, "X", "", 2, 5, "b c", ""}, {Spurious, "", "X", 6, 9, "d e", ""}}},
		"one of two that overlap it": {spans{at("X", 1, 5)}, spans{at("X", 0, 2), at("X", 3, 6)},
			[]Span{{Boundary, "X", "X", 0, 3, "a b", "b c d e"}, {Spurious, "", "X", 6, 11, "d e f", ""}}},
		"that of its words before one that overlaps it": {spans{at("X", 1, 3), at("X", 3, 5)},
			spans{at("X", 2, 4), at("Y", 1, 3)},
			[]Span{{Label, "X", "Y", 2, 5, "b c", ""}, {Boundary, "X", "X", 4, 7, "c d", "d e"}}},
	} {
		got := new(judge).compare(e, slices.Clone(c.gold), slices.Clone(c.predicted))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// Of tags that mark no spans the words that have a gold tag are compared: one that was not read is missed.
func TestWordsWithoutAGoldTagAreNotJudged(t *testing.T) {
	j := &judge{spans: tasks.DescriptionOf(tasks.NewTagging(tasks.Env{Heads: []string{"pos"}})).Spans}
	gold, predicted := j.marked(&outputs.TagsTarget{Tags: []string{"A", "", "B", "C"}},
		&outputs.TagsPrediction{IDs: []int{0, 1, 1, -1}, Tags: []string{"A", "B", "A", "O"}})
	last := outputs.TagSpan{Label: "A", Start: 2, End: 3}
	if len(gold) != 3 || len(predicted) != 2 || !j.of.Words || predicted[1] != last {
		t.Errorf("%v, %v; want the three words with a tag, two of which were read", gold, predicted)
	}
}

// A text of 100,000 words takes well below a second; a comparison of each span with each other one takes minutes.
func TestSpansOfALongTextAreComparedInLinearTime(t *testing.T) {
	e, n := &corpus.Example{Text: strings.Repeat("é ", 100_000)}, 100_000
	var gold, predicted []outputs.TagSpan
	for w := range n {
		e.Words = append(e.Words, corpus.Span{Start: 3 * w, End: 3*w + 2})
		if w%4 == 0 {
			label := []string{"X", "Y"}[w/4%2]
			gold = append(gold, outputs.TagSpan{Label: label, Start: w, End: w + 2})
			predicted = append(predicted, outputs.TagSpan{Label: "X", Start: w + w/8%2, End: w + 3})
		}
	}
	j, began := new(judge), time.Now()
	wrong := j.compare(e, gold, predicted)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("%v", took)
	}
	if len(wrong) != 3*n/8 || j.of.Spans[Boundary] != n/8 || j.of.Spans[Missed] != n/8 || j.of.Spans[Spurious] != n/8 {
		t.Errorf("%d wrong spans, %v; want half of the gold ones with a wrong boundary, half missed", len(wrong),
			j.of.Spans)
	}
	if last := wrong[len(wrong)-1]; last.End != 2*(n-2)+1 {
		t.Errorf("the last one ends at %d, want the end of the one before the last word", last.End)
	}
}

// forbidding is a head that cannot predict a label.
type forbidding struct{ *heads.OneClass }

func (forbidding) Logits(*nn.Pass, nn.Hidden) heads.Logits { return heads.Logits{} }

func (forbidding) Describe() heads.Description {
	return heads.Description{CheckTarget: func(t corpus.Target) error {
		if outputs.As[outputs.LabelTarget](t).Label == "forbidden" {
			return errors.New("it is forbidden")
		}
		return nil
	}}
}

// Wrong examples without a loss are first, right ones last, whatever the losses of the others are.
func TestExamplesWithoutALoss(t *testing.T) {
	j := judge{kind: outputs.Label, head: multitask.Head{Head: forbidding{new(heads.OneClass)}}}
	for _, one := range []struct {
		text, gold, predicted string
		id                    int
		loss                  float64
	}{
		{"right without", "a", "a", 0, math.NaN()}, {"right", "a", "a", 0, 0.1}, {"wrong", "a", "b", 0, 2},
		{"unknown", "z", "a", corpus.Unknown, math.NaN()}, {"forbidden", "forbidden", "a", 0, math.NaN()},
		{"more wrong", "a", "b", 0, 3},
	} {
		j.add(&corpus.Example{Text: one.text}, &outputs.LabelTarget{Label: one.gold, ID: one.id},
			&outputs.LabelPrediction{Label: one.predicted, Probabilities: []float32{1}}, one.loss)
	}
	want := []string{"unknown", "forbidden", "more wrong", "wrong", "right", "right without"}
	var got []string
	reasons := map[string]string{"unknown": `train has no label "z"`, "forbidden": "it is forbidden"}
	for _, one := range j.ordered().Judged {
		got = append(got, one.Text)
		if one.NoLoss != reasons[one.Text] || one.Loss == nil != (strings.HasSuffix(one.Text, "without") ||
			one.NoLoss != "") {
			t.Errorf("%s: %q, loss %v; want %q", one.Text, one.NoLoss, one.Loss, reasons[one.Text])
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestWhatIsListedOfAnExample(t *testing.T) {
	e := &corpus.Example{Text: "the text", Pair: "the other", Paired: true,
		Place: corpus.Place{File: "a.json", Line: 3, Entry: "record 2"}}
	j := judge{kind: outputs.Label, of: Head{Task: "topic", Head: "main"}}
	j.add(e, &outputs.LabelTarget{Label: "a"}, &outputs.LabelPrediction{Label: "b", ID: 1, Abstained: true,
		Probabilities: []float32{0.25, 0.75}}, 0.5)
	object, err := json.Marshal(j.of.Judged[0])
	const want = `{"task":"topic","head":"main","file":"a.json","line":3,"entry":"record 2","right":false,"loss":0.5,` +
		`"gold":"a","predicted":"b","abstained":true,"probability":0.75,"text":"the text","pair":"the other"}`
	if string(object) != want || err != nil || j.of.Wrong != 1 {
		t.Errorf("%s, %v; want %s", object, err, want)
	}

	// of several labels none is a list
	none := judge{kind: outputs.Labels}
	none.add(e, &outputs.LabelsTarget{}, &outputs.LabelsPrediction{IDs: []int{}, Labels: []string{}}, 0)
	if object, err := json.Marshal(none.of.Judged[0].Gold); string(object) != "[]" {
		t.Errorf("%s, %v; want an empty list", object, err)
	}
}

// The least certain of several labels is one that holds or one that does not.
func TestCertainty(t *testing.T) {
	for _, c := range []struct {
		predicted corpus.Prediction
		want      float64
	}{
		{&outputs.LabelPrediction{ID: 1, Probabilities: []float32{0.25, 0.75}}, 0.75},
		{&outputs.LabelsPrediction{IDs: []int{0}, Probabilities: []float32{0.875, 0.25, 0.125}}, 0.75},
		{&outputs.LabelsPrediction{IDs: []int{0, 1}, Probabilities: []float32{0.875, 0.5625, 0.125}}, 0.5625},
		{&outputs.TagsPrediction{IDs: []int{0, -1, 1}, Probabilities: []float32{0.875, 0, 0.5}}, 0.5},
		{&outputs.SpanPrediction{Probability: 0.5}, 0.5},
	} {
		if got, ok := certainty(c.predicted); got != c.want || !ok {
			t.Errorf("%+v: %v, want %v", c.predicted, got, c.want)
		}
	}
}

type rank struct{ Rank int }

// A kind of outputs of another module may have no form in data files.
func TestAKindWithoutAFormInData(t *testing.T) {
	kind := outputs.Register(outputs.Spec[*rank, *rank]{Name: "rank", Description: "a rank",
		Right: func(t, p *rank) bool { return *t == *p },
		JSON:  func(p *rank, _ outputs.Input) any { return map[string]int{"ranked": p.Rank} }})
	j := judge{kind: kind}
	j.add(&corpus.Example{}, &rank{1}, &rank{2}, 1)
	object, err := json.Marshal(j.of.Judged[0])
	if !strings.Contains(string(object), `"gold":{"Rank":1},"predicted":{"ranked":2}`) {
		t.Errorf("%s, %v; want the target, and the prediction as jenga predict writes it", object, err)
	}
}

// A batch takes memory for each of its examples, not for each pair of them; and what is listed does not depend on it.
func TestMistakesOfALargeBatch(t *testing.T) {
	run, err := predict.OpenRun(t.Context(), trained.Kinds(t))
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Read(t.Context(), config.Train, "", nil); err != nil {
		t.Fatal(err)
	}
	for g := range run.Data.Groups {
		of := run.Data.Groups[g].Examples
		of[config.Train] = slices.Repeat(of[config.Train], 1+1000/len(of[config.Train]))
	}
	listed := func(batchSize int) (text string, bytes uint64) {
		run.Data.Experiment.Training.BatchSize = batchSize
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		heads, err := Of(t.Context(), run, config.Train, "", nil)
		runtime.ReadMemStats(&after)
		object, errJSON := json.Marshal(heads)
		if err := errors.Join(err, errJSON); err != nil {
			t.Fatal(err)
		}
		return string(object), after.TotalAlloc - before.TotalAlloc
	}
	small, ofSmall := listed(8)
	large, ofLarge := listed(1000)
	if small != large {
		t.Error("batches of 1,000 examples have other mistakes than those of 8")
	}
	if ofLarge > 2*ofSmall {
		t.Errorf("batches of 1,000 examples take %d bytes, those of 8 %d", ofLarge, ofSmall)
	}
}

// counted is a target and a prediction of a kind of numbers that is not jenga's.
type counted struct{ N int }

var counts = outputs.Register(outputs.Spec[*counted, *counted]{
	Name: "counted_test", Description: "a count", Field: "count",
	Count: func(t *counted) outputs.Count {
		n := float64(t.N)
		return outputs.Count{Units: 1, Number: &n}
	},
	Number: func(p *counted) float64 { return float64(p.N) },
})

func TestKindsOfNumbersHaveErrors(t *testing.T) {
	for _, kind := range []*outputs.Kind{outputs.Number, outputs.Similarity, counts} {
		if !judges(kind) {
			t.Errorf("%s: its mistakes are not listed", kind)
		}
	}
	j := judge{kind: counts}
	j.add(&corpus.Example{Text: "so"}, &counted{3}, &counted{5}, math.NaN())
	if e := j.of.Judged[0].Error; !j.of.Numbers || e == nil || *e != 2 {
		t.Errorf("5 predicted for 3: %+v", j.of.Judged[0])
	}
	if judges(outputs.Anomaly) {
		t.Error("mistakes of distances are listed")
	}
}
