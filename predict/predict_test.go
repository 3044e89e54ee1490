package predict

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestATextWithoutWordsHasNoTags(t *testing.T) {
	predictions, err := openSmall(t).answer(t, Form{Rows: true}, []*corpus.Example{{Text: ""}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := jsonOf(t, predictions[0]),
		`"things":{"things":{"spans":[],"words":[],"tags":[]}}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestTagsHaveTheWordsOfATextThatCameWithout(t *testing.T) {
	given := &corpus.Example{Text: "so good!", Words: []corpus.Span{{Start: 0, End: 2}, {Start: 3, End: 8}}}
	predictions, err := openSmall(t).answer(t, Form{}, []*corpus.Example{{Text: "so good!"}, given})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := jsonOf(t, predictions[0]), `"words":[[0,2],[3,7],[7,8]],"tags":[`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := jsonOf(t, predictions[1]); strings.Contains(got, `"words":`) {
		t.Errorf("the words are written though they were given: %s", got)
	}
}

// byWord is a tokenizer that encodes words differently from the same text as a string.
type byWord struct{ corpus.Tokenizer }

func (t byWord) Encode(e *corpus.Example, maxLength int) corpus.Encoding {
	encoding := t.Tokenizer.Encode(e, maxLength)
	for i, word := range encoding.Words {
		if word >= 0 {
			encoding.IDs[i] = encoding.IDs[0]
		}
	}
	return encoding
}

// counted counts the batches that an encoder encodes.
type counted struct {
	encoders.Encoder
	batches int
}

func (c *counted) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	c.batches++
	return c.Encoder.Encode(p, tokens, mode)
}

func TestOnlyTasksOnWordsEncodeTextsAsWords(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl}, heads: [{name: mood, "+
		"pool: mean}]}\n  - {name: names, type: ner, data: {train: b.jsonl}}\n", map[string]string{
		"a.jsonl": `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n",
		"b.jsonl": `{"words": ["so", "good"], "tags": ["O", "B-name"]}` + "\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range run.Model.Params.In("heads").All() {
		for i := range w.Data { // predictions that differ between texts
			w.Data[i] *= 100
		}
	}
	encoder := &counted{Encoder: run.Model.Encoder}
	run.Model.Encoder = encoder
	predict := func(e corpus.Example) Prediction {
		t.Helper()
		encoder.batches = 0
		predictions, err := run.answer(t, Form{}, []*corpus.Example{&e})
		if err != nil {
			t.Fatal(err)
		}
		return predictions[0]
	}
	text := corpus.Example{Text: "so good, so bad"}
	want := predict(text)
	if encoder.batches != 1 {
		t.Errorf("a text with the same tokens for all tasks is encoded %d times, want once", encoder.batches)
	}
	words := text
	words.Words = run.Data.Tokenizer.Split(text.Text)
	run.Data.Tokenizer = byWord{run.Data.Tokenizer}
	got := predict(text)
	if encoder.batches != 2 {
		t.Errorf("a text with two readings is encoded %d times, want 2", encoder.batches)
	}
	if got, want := jsonOf(t, got.Tasks["mood"]), jsonOf(t, want.Tasks["mood"]); got != want {
		t.Errorf("mood is %s, want %s as of the text without words", got, want)
	}
	byWords := predict(words)
	names := func(p Prediction) outputs.TagsAnswer { return p.Tasks["names"]["names"].(outputs.TagsAnswer) }
	if got, want := names(got), names(byWords); !reflect.DeepEqual(got.Tags, want.Tags) ||
		!reflect.DeepEqual(got.Spans, want.Spans) {
		t.Errorf("names are %+v, want %+v as of the text in words", got, want)
	}
	if got, not := jsonOf(t, byWords.Tasks["mood"]), jsonOf(t, want.Tasks["mood"]); got == not {
		t.Errorf("mood is %s of both the text and its words, which have other tokens", got)
	}
}

func TestPredictionsOfHiddenTokensAndAnomalies(t *testing.T) {
	texts := strings.Repeat(`{"text": "so good", "label": "normal"}`+"\n"+
		`{"text": "so bad", "pair": "so", "label": "odd"}`+"\n", 4)
	_, opened := trainedRun(t, "  - {name: words, type: mlm, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: a.jsonl}, heads: [{name: rebuilt}, {name: "+
		"pattern, type: attention_pattern}]}\n",
		map[string]string{"a.jsonl": texts})
	predictions, err := opened.answer(t, Form{}, []*corpus.Example{{Text: "so [MASK]!", Pair: "[MASK]", Paired: true},
		{Text: "so good"}})
	if err != nil {
		t.Fatal(err)
	}
	hidden := predictions[0].Tasks["words"]["words"].(outputs.HiddenAnswer).Hidden
	if len(hidden) != 2 || hidden[0].Start != 3 || hidden[0].End != 9 || hidden[0].InPair || !hidden[1].InPair ||
		len(hidden[0].Guesses) != 5 {
		t.Errorf("hidden %+v", hidden)
	}
	if got, want := jsonOf(t, predictions[1].Tasks["words"]), `{"words":{"hidden":[]}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, head := range []string{"rebuilt", "pattern"} {
		if a := predictions[0].Tasks["odd"][head].(outputs.AnomalyAnswer); a.Value == nil || a.Alarm == nil {
			t.Errorf("%s predicts %+v", head, a)
		}
	}
	text, err := os.ReadFile(filepath.Join("run", "best", runfolder.ModelFile))
	if err != nil || !strings.Contains(string(text), `"thresholds"`) {
		t.Errorf("the model's file has no thresholds: %v", err)
	}
}

func TestPredictReadsTheSameFieldsAsTraining(t *testing.T) {
	const line = `{"text": "no", "body": "so good", "reply": "so bad", "question": "who", "note": "a long day", "value": 0.5, "label": "x", "answers": ["day"]}`
	run, err := prepare(t, "  - {name: alike, type: similarity, data: {train: a.jsonl, text: body, pair: reply}}\n"+
		"  - {name: who, type: question_answering, data: {train: a.jsonl, question: question, context: note}}\n",
		map[string]string{"a.jsonl": line + "\n" + line + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	trained := run.Data.Groups[0].Examples[config.Train][0]
	read, err := inputs.Parse(line, 1, inputs.ColumnsOf(run.Data))
	e := read.Example
	if err != nil || e.Text != trained.Text || e.Pair != trained.Pair || e.Text != "so good" {
		t.Errorf("predict reads %+v, %v; training read %q, %q", e, err, trained.Text, trained.Pair)
	}
	// the field named text is not the question if another field is
	if e := run.Data.Groups[1].Examples[config.Train][0]; e.Text != "who" || e.Pair != "a long day" {
		t.Errorf("the question is %q of %q", e.Text, e.Pair)
	}
}

func TestAQuestionAndItsContextTakePrecedenceIfATaskRequiresThem(t *testing.T) {
	const data = `{"question": "who", "context": "a long day", "answers": ["day"], "label": "x"}` + "\n" +
		`{"question": "who", "context": "so bad", "answers": ["bad"], "label": "y"}` + "\n"
	for kind, want := range map[string]string{"question_answering": "who / a long day",
		"classification": "a title / so bad"} {
		run, err := prepare(t, "  - {name: who, type: "+kind+", data: {train: a.jsonl}}\n",
			map[string]string{"a.jsonl": data})
		if err != nil {
			t.Fatal(err)
		}
		line, err := inputs.Parse(`{"text": "a title", "question": "who", "context": "a long day", "pair": "so bad"}`, 1,
			inputs.ColumnsOf(run.Data))
		e := line.Example
		if err != nil || e.Text+" / "+e.Pair != want {
			t.Errorf("%s reads %+v, %v, want %s", kind, e, err, want)
		}
		if kind == "question_answering" {
			continue
		}
		line, err = inputs.Parse(`{"text": "a title", "question": "who", "context": "a long day"}`, 1, inputs.ColumnsOf(run.Data))
		if err != nil {
			t.Fatal(err)
		}
		predictions, err := run.answer(t, Form{}, []*corpus.Example{line.Example})
		const no = "line 1: no pair: the model needs two texts; want a JSON object with text and pair, or " +
			"with question and context, and no text or words beside those"
		if err != nil || predictions[0].Err == nil || predictions[0].Err.Error() != no {
			t.Errorf("a text before a question: %+v, %v, want %s", predictions, err, no)
		}
	}
}

func TestASingleTextHasNoPredictionsOfTasksOnPairs(t *testing.T) {
	const pairs = `{"text": "so good", "pair": "so bad", "label": "x", "value": 0.5}` + "\n" +
		`{"text": "so bad", "pair": "so bad", "label": "y", "value": 1}` + "\n"
	run, opened := trainedRun(t, "  - {name: follows, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: alike, type: similarity, data: {train: a.jsonl, dev: a.jsonl}}\n  - {name: mood, type: "+
		"classification, data: {train: b.jsonl, dev: b.jsonl}}\n",
		map[string]string{"a.jsonl": pairs, "b.jsonl": pairs + `{"text": "so fair", "label": "x"}` + "\n"})
	for name, run := range map[string]*Opened{"trained": run.Opened, "opened": opened} {
		predictions, err := run.answer(t, Form{}, []*corpus.Example{{Text: "so good"},
			{Text: "so good", Pair: "so bad", Paired: true}, {Text: "so good", Paired: true}})
		if err != nil {
			t.Fatal(err)
		}
		if got := jsonOf(t, predictions[2]); !strings.HasPrefix(got, `{"text":"so good","pair":"",`) {
			t.Errorf("%s: of an empty second text: %s", name, got)
		}
		for b, want := range [][]string{{"mood"}, {"alike", "follows", "mood"}, {"alike", "follows", "mood"}} {
			if got := slices.Sorted(maps.Keys(predictions[b].Tasks)); !slices.Equal(got, want) {
				t.Errorf("%s: text %d has predictions of %q, want %q", name, b+1, got, want)
			}
		}
	}
}

func TestATextThatDoesNotFitIntoMemoryIsAnErrorOfItsOwn(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, long: windows, data: {train: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "x"}` + "\n" + `{"text": "so bad", "label": "y"}` +
			"\n"})
	if err != nil {
		t.Fatal(err)
	}
	place := corpus.Place{File: "line 2"}
	texts := []*corpus.Example{{Text: "so good"}, {Text: strings.Repeat("so bad ", maxBatchTokens), Place: place},
		{Text: "so bad"}}
	m := run.asked(t)
	whole, err := m.PredictExamples(t.Context(), Form{}, texts...)
	if err != nil || whole[1].Err != nil || whole[1].Tasks["mood"]["mood"].(outputs.LabelAnswer).Label == "" {
		t.Fatalf("predictions %+v, %v", whole[1], err)
	}

	m.run.machine = machine(map[string]string{"proc/meminfo": "MemAvailable: 1024 kB\n"})
	predictions, err := m.PredictExamples(t.Context(), Form{}, texts...)
	if err != nil {
		t.Fatal(err)
	}
	if err := predictions[1].Err; err == nil || !strings.HasPrefix(err.Error(), "line 2: a text of ") ||
		!strings.HasSuffix(err.Error(), "the machine has 960 KiB; divide it") {
		t.Errorf("of the long text: %v", err)
	}
	for _, b := range []int{0, 2} {
		if got, want := jsonOf(t, predictions[b]), jsonOf(t, whole[b]); got != want {
			t.Errorf("text %d: %s, want %s", b+1, got, want)
		}
	}
}

func TestATextWhoseStatesDoNotFitIntoMemoryIsAnErrorOfItsOwn(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "x"}` + "\n" + `{"text": "so bad", "label": "y"}` +
			"\n"}, "model.encoder={type: bilstm, hidden: 4}")
	if err != nil {
		t.Fatal(err)
	}
	m := run.asked(t)
	m.run.machine = machine(map[string]string{"proc/meminfo": "MemAvailable: 1024 kB\n"})
	long := &corpus.Example{Text: strings.Repeat("so bad ", maxBatchTokens), Place: corpus.Place{File: "line 1"}}
	got, err := m.Embed(t.Context(), MeanPool, long, &corpus.Example{Text: "so good"})
	if err != nil {
		t.Fatal(err)
	}
	if err := got[0].Err; err == nil || !strings.HasSuffix(err.Error(), "the machine has 960 KiB; divide it") {
		t.Errorf("of the long text: %v", err)
	}
	if got[1].Err != nil || got[1].Vector == nil {
		t.Errorf("of the short text: %+v", got[1])
	}
}

func TestATextKeepsTheErrorOfATaskWhoseWindowsDoNotFitIntoMemory(t *testing.T) {
	const task = "type: classification, long: windows, data: {train: a.jsonl}, stride: "
	run, err := prepare(t, "  - {name: wide, "+task+"6}\n  - {name: narrow, "+task+"0}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "x"}` + "\n" + `{"text": "so bad", "label": "y"}` +
			"\n"})
	if err != nil {
		t.Fatal(err)
	}
	m := run.asked(t)
	text := &corpus.Example{Text: strings.Repeat("so bad ", maxBatchTokens)}

	// The overlapping windows of the first task take more memory than there is, those of the second task do not.
	var need [2]int64
	for i, by := range readAll(t, m, text).by {
		size := multitask.SizeOf(by.encoded[asText])
		_, bytes := run.Model.Largest([]multitask.Size{size}, encoders.Workload{})
		need[i] = 2 * bytes
	}
	if need[0] <= need[1] || need[1] == 0 {
		t.Fatalf("the tasks need %d bytes, want more for the first", need)
	}
	free := (need[0] + need[1]) / 2 * 16 / 15 // a sixteenth is reserved
	m.run.machine = machine(map[string]string{"proc/meminfo": fmt.Sprintf("MemAvailable: %d kB\n", free>>10)})
	predictions, err := m.PredictExamples(t.Context(), Form{}, text)
	if err != nil {
		t.Fatal(err)
	}
	var unread *ExampleError
	if p := predictions[0]; p.Err == nil {
		t.Errorf("no error, and answers of %q", slices.Sorted(maps.Keys(p.Tasks)))
	} else if !strings.HasPrefix(p.Err.Error(), "a text of ") || !errors.As(p.Err, &unread) {
		t.Errorf("of a text without a place: %v, a %T", p.Err, p.Err)
	}
}

func TestTruncatedTextsGiveAWarning(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "x"}` + "\n" + `{"text": "so bad", "label": "y"}` +
			"\n"}, "tokenizer.max_length=8")
	if err != nil {
		t.Fatal(err)
	}
	m := run.asked(t)
	for range 2 {
		if _, err := m.PredictExamples(t.Context(), Form{}, &corpus.Example{Text: "so good"},
			&corpus.Example{Text: strings.Repeat("so bad ", 8)}); err != nil {
			t.Fatal(err)
		}
	}
	const want = "warning: 2 of 4 texts have more than 8 tokens and are truncated: a larger tokenizer.max_length, or " +
		"long: windows, avoids it"
	if got := m.TextWarnings(); len(got) != 1 || got[0].String() != want {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

func TestThereIsNoAlarmBeforeDevHasChosenItsThreshold(t *testing.T) {
	run, err := prepare(t, "  - {name: odd, type: anomaly, data: {train: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "normal"}` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	predictions, err := run.answer(t, Form{}, []*corpus.Example{{Text: "so good"}})
	if err != nil {
		t.Fatal(err)
	}
	if a := predictions[0].Tasks["odd"]["odd"].(outputs.AnomalyAnswer); a.Value == nil || a.Alarm != nil {
		t.Errorf("prediction %+v, want a value and no alarm", a)
	}
}

func TestAnomaliesNeedNormalTexts(t *testing.T) {
	_, err := prepare(t, "  - {name: odd, type: anomaly, normal: fine, data: {train: a.jsonl, dev: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "normal"}` + "\n"})
	if want := `exp.yaml:5:5: head "reconstruction": no training text is normal; the task's option normal names the label of normal texts`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
