package outputs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestTopListsTheLikeliestLabels(t *testing.T) {
	set, probabilities := corpus.NewLabels([]string{"a", "b", "c"}), []float32{0.2, 0.5, 0.2}
	label := &outputs.LabelPrediction{ID: 1, Probabilities: probabilities, Label: "b"}
	labels := &outputs.LabelsPrediction{IDs: []int{1}, Probabilities: probabilities, Labels: []string{"b"}}
	const b, a = `{"label":"b","probability":0.5}`, `{"label":"a","probability":0.2}`
	const c = `{"label":"c","probability":0.2}`
	for _, test := range []struct {
		kind *outputs.Kind
		p    corpus.Prediction
		top  int
		want string
	}{
		{outputs.Label, label, 0, b},
		{outputs.Label, label, 2, `{"label":"b","probability":0.5,"top":[` + b + `,` + a + `]}`},
		{outputs.Labels, labels, 9, `{"labels":[` + b + `],"top":[` + b + `,` + a + `,` + c + `]}`},
	} {
		got, err := json.Marshal(test.kind.JSON(test.p, outputs.Input{Labels: set, Top: test.top}))
		if err != nil || string(got) != test.want {
			t.Errorf("%s, top %d: %s, %v, want %s", test.kind, test.top, got, err, test.want)
		}
	}
}

func TestTagsStandBesideTheWordsThatWereSplit(t *testing.T) {
	e := &corpus.Example{Text: "é 😀!", Words: []corpus.Span{{Start: 0, End: 2}, {Start: 3, End: 7}, {Start: 7, End: 8}}}
	tags := &outputs.TagsPrediction{
		IDs: []int{0, 0, 0}, Probabilities: []float32{1, 1, 1}, Tags: []string{"X", "S", "P"},
	}
	unread := &outputs.TagsPrediction{
		IDs: []int{0, -1, -1}, Probabilities: []float32{1, 0, 0}, Tags: []string{"X", "O", "O"},
	}
	for _, c := range []struct {
		in   outputs.Input
		p    corpus.Prediction
		want string
	}{
		{outputs.Input{Example: e}, tags, `{"tags":["X","S","P"]}`},
		{outputs.Input{Example: e, SplitWords: true}, tags,
			`{"words":[[0,1],[2,3],[3,4]],"tags":["X","S","P"]}`},
		{outputs.Input{Example: e, SplitWords: true, Unit: corpus.UTF16}, tags,
			`{"words":[[0,1],[2,4],[4,5]],"tags":["X","S","P"]}`},
		{outputs.Input{Example: &corpus.Example{}, SplitWords: true}, &outputs.TagsPrediction{Tags: []string{}},
			`{"words":[],"tags":[]}`},
		{outputs.Input{Example: e}, unread, `{"tags":["X",null,null]}`}, // "O" need not be a tag of the task
	} {
		got, err := json.Marshal(outputs.Tags.JSON(c.p, c.in))
		if err != nil || string(got) != c.want {
			t.Errorf("%s, %v, want %s", got, err, c.want)
		}
	}
}

// The emoji takes 4 bytes and 2 code units of UTF-16, é and ü take 2 bytes.
func TestOffsetsInJSONHaveTheUnitOfTheInput(t *testing.T) {
	e := &corpus.Example{Text: "é 😀 kite", Pair: "ü 😀 kite", Paired: true, Words: []corpus.Span{
		{Start: 0, End: 2}, {Start: 3, End: 7}, {Start: 8, End: 12}}}
	e.Windows = []corpus.Encoding{{
		IDs: []int32{0, 0}, Segments: []int8{0, 1}, Offsets: []corpus.Span{{Start: 3, End: 7}, {Start: 8, End: 12}},
	}}
	tags := &outputs.TagsPrediction{
		IDs: []int{0, 0, 0}, Probabilities: []float32{1, 1, 1}, Tags: []string{"B-x", "I-x", "O"},
	}
	answer := corpus.TextSpan{Text: "kite", Span: corpus.Span{Start: 8, End: 12}}
	hidden := &outputs.HiddenPrediction{Tokens: []outputs.HiddenToken{{}, {Token: 1}}}
	for _, c := range []struct {
		kind *outputs.Kind
		p    corpus.Prediction
		want map[corpus.OffsetUnit]string // starts and ends in the JSON
	}{
		{outputs.Tags, tags, map[corpus.OffsetUnit]string{
			corpus.Characters: `"start":0,"end":3,"text":"é 😀"`, corpus.Bytes: `"start":0,"end":7,"text":"é 😀"`,
			corpus.UTF16: `"start":0,"end":4,"text":"é 😀"`,
		}},
		{outputs.Span, &outputs.SpanPrediction{Answer: answer}, map[corpus.OffsetUnit]string{
			corpus.Characters: `"start":4,"end":8`, corpus.Bytes: `"start":8,"end":12`,
			corpus.UTF16: `"start":5,"end":9`,
		}},
		{outputs.HiddenTokens, hidden, map[corpus.OffsetUnit]string{
			corpus.Characters: `{"start":2,"end":3,"guesses":null},{"start":4,"end":8,"in_pair":true,`,
			corpus.Bytes:      `{"start":3,"end":7,"guesses":null},{"start":8,"end":12,"in_pair":true,`,
			corpus.UTF16:      `{"start":2,"end":4,"guesses":null},{"start":5,"end":9,"in_pair":true,`,
		}},
	} {
		for unit, want := range c.want {
			in := outputs.Input{Example: e, Spans: fixedSpans, Unit: unit}
			got, err := json.Marshal(c.kind.JSON(c.p, in))
			if err != nil || !strings.Contains(string(got), want) {
				t.Errorf("%s with offsets in %v: %s, %v, want %s", c.kind, unit, got, err, want)
			}
		}
	}
}
