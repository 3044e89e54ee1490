package outputs_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
)

func TestKinds(t *testing.T) {
	for _, kind := range outputs.Kinds() {
		t.Run(kind.Name, func(t *testing.T) { parttest.Output(t, kind) })
	}
}

func TestKindsAreListedByName(t *testing.T) {
	var names []string
	for _, kind := range outputs.Kinds() {
		names = append(names, kind.Name)
	}
	want := []string{"anomaly", "hidden_tokens", "label", "labels", "number", "similarity", "span", "tags"}
	if !slices.Equal(names, want) {
		t.Errorf("kinds %q, want %q", names, want)
	}
}

func TestDuplicateKindsPanic(t *testing.T) {
	defer func() {
		if message, _ := recover().(string); message != `outputs: duplicate kind "label"` {
			t.Errorf("panic %q", message)
		}
	}()
	another := outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]{Name: "label", Description: "another label"}
	outputs.Register(another)
}

// What teachers predict is compared with the words by Count.
func TestAKindWithLabelsForWordsCountsThem(t *testing.T) {
	defer func() {
		const want = `outputs: kind "uncounted" has a label for each word, want Count`
		if message, _ := recover().(string); message != want {
			t.Errorf("panic %q", message)
		}
	}()
	outputs.Register(outputs.Spec[*outputs.TagsTarget, *outputs.TagsPrediction]{Name: "uncounted", Description: "tags",
		Traits: outputs.Traits{PerWord: true, HasLabels: true}})
}

func TestTargetsOfOtherKindsPanic(t *testing.T) {
	defer func() {
		if message, _ := recover().(string); message != "outputs: unexpected *outputs.NumberTarget, want "+
			"*outputs.LabelTarget" {
			t.Errorf("panic %q", message)
		}
	}()
	outputs.Label.AssignIDs(&outputs.NumberTarget{}, corpus.NewLabels(nil))
}

// schemaOf compiles the schema of a kind's JSON.
func schemaOf(t *testing.T, kind *outputs.Kind) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(kind.Schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("kind.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("kind.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

func TestJSONMatchesSchema(t *testing.T) {
	set := corpus.NewLabels([]string{"O", "B-x", "I-x"})
	for _, kind := range outputs.Kinds() {
		t.Run(kind.Name, func(t *testing.T) {
			schema := schemaOf(t, kind)
			valid := func(v any) error {
				text, err := json.Marshal(v)
				if err != nil {
					t.Fatal(err)
				}
				document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				return schema.Validate(document)
			}
			for i := range 6 {
				in := parttest.Input(t, i)
				right, wrong := parttest.Predictions(kind, i, len(in.Example.Words))
				in.Labels, in.Top = set, i
				for _, p := range []corpus.Prediction{right, wrong} {
					if err := valid(kind.JSON(p, in)); err != nil {
						t.Errorf("%+v: %v", p, err)
					}
				}
			}
			for _, wrong := range []any{map[string]any{"else": 1}, []any{}, nil} {
				if valid(wrong) == nil {
					t.Errorf("%v is valid, want an error", wrong)
				}
			}
		})
	}
}

// fixedSpans finds one span of the first two words.
func fixedSpans([]string) []outputs.TagSpan {
	return []outputs.TagSpan{{Label: "x", Start: 0, End: 2}}
}

func TestJSON(t *testing.T) {
	e := &corpus.Example{Text: "red kite", Words: []corpus.Span{{Start: 0, End: 3}, {Start: 4, End: 8}}}
	alarm, nan := true, float32(math.NaN())
	labels := &outputs.LabelsPrediction{
		IDs: []int{0, 1}, Probabilities: []float32{0.6, 0.75}, Labels: []string{"a", "b"},
	}
	tags := &outputs.TagsPrediction{IDs: []int{1, 2}, Probabilities: []float32{0.5, 1}, Tags: []string{"B-x", "I-x"}}
	for _, c := range []struct {
		kind  *outputs.Kind
		p     corpus.Prediction
		spans func(tags []string) []outputs.TagSpan
		want  string
	}{
		{outputs.Label, &outputs.LabelPrediction{ID: 1, Probabilities: []float32{0.1, 0.98128}, Label: "b"}, nil,
			`{"label":"b","probability":0.9813}`},
		{outputs.Label, &outputs.LabelPrediction{Probabilities: []float32{nan}, Label: "a"}, nil,
			`{"label":"a","probability":null}`},
		{outputs.Labels, labels, nil,
			`{"labels":[{"label":"b","probability":0.75},{"label":"a","probability":0.6}]}`},
		{outputs.Labels, &outputs.LabelsPrediction{IDs: []int{}}, nil, `{"labels":[]}`},
		{outputs.Tags, tags, nil, `{"tags":["B-x","I-x"]}`},
		{outputs.Tags, tags, fixedSpans,
			`{"spans":[{"label":"x","start":0,"end":8,"text":"red kite","probability":0.75}],"tags":["B-x","I-x"]}`},
		{outputs.Number, &outputs.NumberPrediction{Value: 1. / 3}, nil, `{"value":0.3333333}`},
		{outputs.Number, &outputs.NumberPrediction{Value: math.Inf(1)}, nil, `{}`},
		{outputs.Anomaly, &outputs.AnomalyPrediction{Distance: 2}, nil, `{"value":2}`},
		{outputs.Anomaly, &outputs.AnomalyPrediction{Distance: 2, Alarm: &alarm}, nil, `{"value":2,"alarm":true}`},
		{outputs.Span, &outputs.SpanPrediction{Probability: 0.5}, nil,
			`{"answer":{"text":"","start":0,"end":0,"probability":0.5}}`},
		{outputs.HiddenTokens, &outputs.HiddenPrediction{}, nil, `{"hidden":[]}`},
	} {
		got, err := json.Marshal(c.kind.JSON(c.p, outputs.Input{Example: e, Spans: c.spans}))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v, want %s", c.kind, got, err, c.want)
		}
	}
}

// Values that encoding/gob or encoding/json do not preserve: NaN, nil beside empty slices, pointers to zero values.
func TestUnmarshalRestoresPredictions(t *testing.T) {
	alarm := false
	for _, c := range []struct {
		kind *outputs.Kind
		p    corpus.Prediction
	}{
		{outputs.Labels, &outputs.LabelsPrediction{IDs: []int{}, Probabilities: []float32{}, Labels: nil}},
		{outputs.Labels, &outputs.LabelsPrediction{IDs: nil, Probabilities: nil, Labels: []string{""}}},
		{outputs.Anomaly, &outputs.AnomalyPrediction{Distance: math.Inf(-1), Alarm: &alarm}},
		{outputs.Tags, &outputs.TagsPrediction{IDs: []int{-1, math.MaxInt}, Tags: []string{"\xff", ""}}},
	} {
		got, err := c.kind.UnmarshalPrediction(c.kind.MarshalPrediction(c.p))
		if err != nil || !reflect.DeepEqual(got, c.p) {
			t.Errorf("%+v is decoded as %+v, %v", c.p, got, err)
		}
	}
	nan := &outputs.LabelPrediction{Probabilities: []float32{math.Float32frombits(0x7fc00001)}}
	got, err := outputs.Label.UnmarshalPrediction(outputs.Label.MarshalPrediction(nan))
	if err != nil || math.Float32bits(outputs.As[outputs.LabelPrediction](got).Probabilities[0]) != 0x7fc00001 {
		t.Errorf("NaN is decoded as %+v, %v", got, err)
	}
}

func TestUnmarshalErrors(t *testing.T) {
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "want a number"},
		{[]byte{1}, "want a number"},
		{[]byte{0, 7}, "1 unexpected bytes at the end"},
		{[]byte{1, 2, 0xff, 0xff, 0xff, 0xff, 0x0f}, "a list of 4294967294 in 0 bytes"},
		{[]byte{1, 2, 3, 1, 2, 3}, "the bytes end too early"},
		{[]byte{1, 2, 0, 9, 'a'}, "the bytes end within a string"},
	} {
		if _, err := outputs.Label.UnmarshalPrediction(c.b); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want %q", c.b, err, c.want)
		}
	}
}

// FuzzUnmarshal decodes any bytes as a prediction. A decoded prediction has an encoding that decodes to the same.
func FuzzUnmarshal(f *testing.F) {
	for i, kind := range outputs.Kinds() {
		right, _ := parttest.Predictions(kind, 0, 3)
		f.Add(i, kind.MarshalPrediction(right))
	}
	f.Fuzz(func(t *testing.T, i int, b []byte) {
		kinds := outputs.Kinds()
		kind := kinds[uint(i)%uint(len(kinds))]
		p, err := kind.UnmarshalPrediction(b)
		if err != nil {
			return
		}
		first := kind.MarshalPrediction(p)
		second, err := kind.UnmarshalPrediction(first)
		if err != nil || !bytes.Equal(kind.MarshalPrediction(second), first) {
			t.Errorf("%+v is decoded as %+v, %v", p, second, err)
		}
	})
}

// A threshold takes the place of the head's, a least probability bounds what holds.
func TestDecisionsOfLabels(t *testing.T) {
	set, nan := corpus.NewLabels([]string{"a", "b", "c"}), float32(math.NaN())
	probabilities := []float32{0.3, 0.6, 0.9}
	for _, test := range []struct {
		by        outputs.Decision
		one, many string // JSON of the label c, which is an answer, and of the labels b and c, which hold
	}{
		{outputs.Decision{}, `"c","probability":0.9`, `["b","c"]`},
		{outputs.Decision{MinProbability: 0.9001}, `"c","probability":0.9,"abstained":true`, `[]`},
		{outputs.Decision{MinProbability: 0.7}, `"c","probability":0.9`, `["c"]`},
		{outputs.Decision{Thresholds: []float32{0.3, 0.7, 0.95}}, `"c","probability":0.9,"abstained":true`, `["a"]`},
		{outputs.Decision{Thresholds: []float32{0, 0, 0}, MinProbability: 0.5}, `"c","probability":0.9`, `["b","c"]`},
		{outputs.Decision{Thresholds: []float32{0.2, nan, 1}}, `"c","probability":0.9,"abstained":true`, `["a","b"]`},
		{outputs.Decision{Thresholds: []float32{1, 1, nan}}, `"c","probability":0.9`, `["c"]`},
		{outputs.Decision{MinProbability: probabilities[2]}, `"c","probability":0.9`, `["c"]`},
	} {
		one := &outputs.LabelPrediction{ID: 2, Probabilities: probabilities, Label: "c"}
		many := &outputs.LabelsPrediction{IDs: []int{1, 2}, Probabilities: probabilities, Labels: []string{"b", "c"}}
		outputs.Label.Decide(one, test.by, set)
		outputs.Labels.Decide(many, test.by, set)
		got, err := json.Marshal(outputs.Label.JSON(one, outputs.Input{Labels: set}))
		if want := `{"label":` + test.one + `}`; err != nil || string(got) != want {
			t.Errorf("%+v: %s, %v, want %s", test.by, got, err, want)
		}
		if got, err := json.Marshal(many.Labels); err != nil || string(got) != test.many {
			t.Errorf("%+v: labels %s, %v, want %s", test.by, got, err, test.many)
		}
	}
	abstained := &outputs.LabelPrediction{Label: "c", Probabilities: probabilities, ID: 2, Abstained: true}
	if got := outputs.Label.Data(abstained, outputs.Input{}); got != "" {
		t.Errorf("data has %q for a label that is no answer, want nothing", got)
	}
	if outputs.Tags.Decides() || outputs.Number.Decides() || !outputs.Labels.Decides() {
		t.Error("tags or numbers are decided by the probabilities of labels, or labels are not")
	}
}

func TestSetsAreWrittenLikeliestFirst(t *testing.T) {
	labels := corpus.NewLabels([]string{"a", "b"})
	for want, set := range map[string][]int{
		`{"label":"a","probability":0.7,"set":["a","b"]}`: {0, 1},
		`{"label":"a","probability":0.7,"set":[]}`:        {},
		`{"label":"a","probability":0.7}`:                 nil,
	} {
		p := &outputs.LabelPrediction{Label: "a", Probabilities: []float32{0.7, 0.3}, Set: set}
		if got, err := json.Marshal(outputs.Label.JSON(p, outputs.Input{Labels: labels})); string(got) != want {
			t.Errorf("set %v: %s, %v, want %s", set, got, err, want)
		}
	}
}

// A word without a token is not read; the others are in a span unless their tag is O.
func TestWhatPredictionsFind(t *testing.T) {
	for name, c := range map[string]struct {
		kind         *outputs.Kind
		p            corpus.Prediction
		found, units int
	}{
		"tags": {outputs.Tags, &outputs.TagsPrediction{IDs: []int{0, 1, -1, 2}, Tags: []string{"O", "B-x", "O", "I-x"}},
			2, 3},
		"two labels": {outputs.Labels, &outputs.LabelsPrediction{IDs: []int{0, 4}}, 2, 1},
		"no label":   {outputs.Labels, &outputs.LabelsPrediction{IDs: []int{}}, 0, 1},
		"an answer":  {outputs.Span, &outputs.SpanPrediction{Tokens: corpus.Span{Start: 3, End: 5}}, 1, 1},
		"no answer":  {outputs.Span, &outputs.SpanPrediction{}, 0, 1},
	} {
		if found, units := c.kind.Finds(c.p); found != c.found || units != c.units {
			t.Errorf("%s: finds %d of %d, want %d of %d", name, found, units, c.found, c.units)
		}
		if rate := c.kind.Rate(0.125); !strings.Contains(rate, "12.5 %") && !strings.Contains(rate, "0.12") {
			t.Errorf("%s: a rate of an eighth is %q", name, rate)
		}
	}
	for _, kind := range []*outputs.Kind{outputs.Label, outputs.Anomaly} {
		if kind.Finds != nil {
			t.Errorf("%s finds nothing in some texts", kind.Name)
		}
	}
}
