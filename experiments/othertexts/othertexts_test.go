package othertexts_test

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/othertexts"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
)

var fruits = []string{"apple", "pear", "plum", "fig"}

// files are sentences in which one of six words is a fruit, with its tags and labels; texts of fruits alone, and of no
// fruit; and pairs.
func files() map[string]string {
	var tagged, many, listed, others, pairs strings.Builder
	for i := range 80 {
		fruit := fruits[i%4]
		words, tags := []string{"she", "took", "a", "to", "school"}, strings.Split("O O O O O", " ")
		words, tags = slices.Insert(words, i%6, fruit), slices.Insert(tags, i%6, "B-fruit")
		fmt.Fprintf(&tagged, `{"words": ["%s"], "tags": ["%s"]}`+"\n", strings.Join(words, `", "`),
			strings.Join(tags, `", "`))
		fmt.Fprintf(&many, `{"text": "she took a %s to school", "labels": [%q]}`+"\n", fruit, fruit)
		fmt.Fprintf(&listed, `{"text": "%s %s %s.", "label": "%d"}`+"\n", fruit, fruits[i/4%4], fruits[i/16%4], i%2)
		fmt.Fprintf(&others, `{"text": "she took a school", "label": "%d"}`+"\n", i%2)
		fmt.Fprintf(&pairs, `{"text": "%s", "pair": "a school", "label": "%d"}`+"\n", fruit, i%2)
	}
	return map[string]string{"tagged.jsonl": tagged.String(), "many.jsonl": many.String(),
		"listed.jsonl": listed.String(), "others.jsonl": others.String(), "pairs.jsonl": pairs.String()}
}

const (
	fruitTask  = "  - {name: fruit, type: ner, data: {train: tagged.jsonl, dev: tagged.jsonl}}\n"
	manyTask   = "  - {name: many, type: multi_label, data: {train: many.jsonl, dev: many.jsonl}}\n"
	listedTask = "  - {name: listed, type: classification, data: {train: listed.jsonl, dev: listed.jsonl}}\n"
	othersTask = "  - {name: others, type: classification, data: {train: others.jsonl, dev: others.jsonl}}\n"
	pairsTask  = "  - {name: pairs, type: classification, data: {train: pairs.jsonl, dev: pairs.jsonl}}\n"
	training   = "training: {learning_rate: 0.02, batch_size: 8, num_epochs: 6}\n"
)

// opened trains tasks, and opens the run with its dev texts read.
func opened(t *testing.T, tasks string) *predict.Opened {
	t.Helper()
	sample.Tasks(t, tasks+training, files())
	o, err := predict.OpenRun(t.Context(), trained.Run(t, "exp.yaml", filepath.Join(t.TempDir(), "run")))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	if err := o.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	return o
}

func modelOf(o *predict.Opened) othertexts.Model {
	return othertexts.Model{Data: o.Data, Model: o.Model, Machine: memory.This()}
}

func measure(t *testing.T, o *predict.Opened, reference func(string) (*othertexts.Reference, error),
) []report.HeadRates {
	t.Helper()
	texts := othertexts.TextsOf(o.Data, config.Dev)
	heads, err := othertexts.Measure(context.Background(), modelOf(o), texts, reference)
	if err != nil {
		t.Fatal(err)
	}
	return heads
}

// predicted returns how often the predictions of a run for the dev texts of a task find something.
func predicted(t *testing.T, o *predict.Opened, task string, count func(predict.Prediction) (found, units float64),
) float64 {
	t.Helper()
	m, err := predict.Open(t.Context(), o.Folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	found, units := 0.0, 0.0
	for _, texts := range othertexts.TextsOf(o.Data, config.Dev) {
		if !slices.Contains(texts.Tasks, task) {
			continue
		}
		for _, e := range texts.Examples {
			all, err := m.Predict(context.Background(), e.Text)
			if err != nil {
				t.Fatal(err)
			}
			n, of := count(all[0])
			found, units = found+n, units+of
		}
	}
	return found / units
}

// The tagger learns that fruits are spans, one of six words, and finds them where most words are.
func TestATaggerOnTextsOfOtherTasks(t *testing.T) {
	o := opened(t, fruitTask+listedTask+othersTask+pairsTask)
	heads := measure(t, o, nil)
	if len(heads) != 1 || heads[0].Task != "fruit" {
		t.Fatalf("%+v, want the head fruit alone", heads)
	}
	tags := func(p predict.Prediction) (found, units float64) {
		answer := p.Tasks["fruit"]["fruit"].(outputs.TagsAnswer)
		for _, tag := range answer.Tags {
			if *tag != "O" {
				found++
			}
		}
		return found, float64(len(answer.Tags))
	}
	listed := predicted(t, o, "listed", tags)
	want := []report.OtherRate{{Tasks: []string{"listed"}, Texts: 80, Rate: listed, High: true},
		{Tasks: []string{"others"}, Texts: 80, Rate: predicted(t, o, "others", tags)}}
	// and no pairs: the tagger was not trained on any
	if got := heads[0].Others; !reflect.DeepEqual(got, want) {
		t.Errorf("rates %+v, want those of predictions, %+v", got, want)
	}
	own := report.Rate{Texts: 80, Rate: predicted(t, o, "fruit", tags)}
	if heads[0].Own != own {
		t.Errorf("rate of its own texts %+v, want that of predictions, %+v", heads[0].Own, own)
	}

	warnings := othertexts.Warnings(o.Data, config.Dev, heads)
	if len(warnings) != 1 {
		t.Fatalf("warnings %q", warnings)
	}
	for _, part := range []string{
		fmt.Sprintf(`task "fruit": head "fruit" predicts %.1f %% of words in spans on dev of task "listed", and `+
			"%.1f %% of words in spans on its own", 100*listed, 100*own.Rate),
		othertexts.Remedy(o.Data.Experiment)} {
		if !strings.Contains(warnings[0], part) {
			t.Errorf("warning %q without %q", warnings[0], part)
		}
	}
	if strings.Contains(warnings[0], "others") {
		t.Errorf("warning %q of texts without fruits", warnings[0])
	}
}

// A reference that finds as much takes the place of the head's own rate.
func TestAReferenceTakesThePlaceOfTheOwnRate(t *testing.T) {
	o := opened(t, fruitTask+listedTask)
	asked := map[string]int{}
	same := func(task string) (*othertexts.Reference, error) {
		asked[task]++
		return &othertexts.Reference{Model: modelOf(o), Task: "fruit"}, nil
	}
	heads := measure(t, o, same)
	other := heads[0].Others[0]
	if other.High || other.Reference == nil || *other.Reference != other.Rate {
		t.Errorf("beside itself: %+v", other)
	}
	if len(asked) != 1 || asked["fruit"] == 0 {
		t.Errorf("references of %v, want fruit alone", asked)
	}

	// a task that the reference lacks, and none
	none := measure(t, o, func(string) (*othertexts.Reference, error) { return nil, nil })[0].Others[0]
	lacks := measure(t, o, func(string) (*othertexts.Reference, error) {
		return &othertexts.Reference{Model: modelOf(o), Task: "listed"}, nil // which always says something
	})[0].Others[0]
	for _, other := range []report.OtherRate{none, lacks} {
		if !other.High || other.Reference != nil {
			t.Errorf("without a reference: %+v", other)
		}
	}
}

func TestLabelsOnTextsOfOtherTasks(t *testing.T) {
	o := opened(t, manyTask+othersTask)
	heads := measure(t, o, nil)
	if len(heads) != 1 || heads[0].Task != "many" || len(heads[0].Others) != 1 {
		t.Fatalf("%+v, want the head many alone", heads)
	}
	labels := func(p predict.Prediction) (found, units float64) {
		return float64(len(p.Tasks["many"]["many"].(outputs.LabelsAnswer).Labels)), 1
	}
	for task, got := range map[string]float64{"many": heads[0].Own.Rate, "others": heads[0].Others[0].Rate} {
		if want := predicted(t, o, task, labels); got != want {
			t.Errorf("on texts of %s: %v labels for each, but predictions have %v", task, got, want)
		}
	}
}

func TestHeadsThatAlwaysSaySomethingAreNotMeasured(t *testing.T) {
	o := opened(t, listedTask+othersTask)
	texts := othertexts.TextsOf(o.Data, config.Dev)
	if heads := othertexts.Heads(o.Model, texts); len(heads) > 0 {
		t.Errorf("heads %v, want none: they predict one label of each text", heads)
	}
	if heads := measure(t, o, nil); len(heads) > 0 {
		t.Errorf("measured %v", heads)
	}
}

func TestHeadsWithoutOtherTextsAreNotMeasured(t *testing.T) {
	o := opened(t, fruitTask+"  - {name: same, type: tagging, data: {same_as: fruit}}\n"+pairsTask)
	if heads := othertexts.Heads(o.Model, othertexts.TextsOf(o.Data, config.Dev)); len(heads) > 0 {
		t.Errorf("heads %v, want none: the others read pairs, or the same texts", heads)
	}
}

// Of a large group some texts are read, evenly spread.
func TestAtMostSoManyTextsAreRead(t *testing.T) {
	o := opened(t, fruitTask+listedTask)
	texts := othertexts.TextsOf(o.Data, config.Dev)
	for i := range texts {
		first := texts[i].Examples
		for len(texts[i].Examples) <= othertexts.Most {
			texts[i].Examples = append(texts[i].Examples, first...)
		}
	}
	heads, err := othertexts.Measure(context.Background(), modelOf(o), texts, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := heads[0]; got.Own.Texts != othertexts.Most || got.Others[0].Texts != othertexts.Most {
		t.Errorf("%+v, want %d texts", got, othertexts.Most)
	}
	if name := (multitask.HeadName{Task: "fruit", Head: "fruit"}); othertexts.Heads(o.Model, texts)[0] != name {
		t.Errorf("heads %v, want %v", othertexts.Heads(o.Model, texts), name)
	}
}

func TestRemediesAreNotRefused(t *testing.T) {
	e := &config.Experiment{}
	if text := othertexts.Remedy(e); !strings.Contains(text, "{teachers: alone}") {
		t.Errorf("remedy %q", text)
	}
	e.Training.Rehearse = 0.5 // which teachers: alone is refused beside
	if text := othertexts.Remedy(e); !strings.Contains(text, "{rehearse: 0}") || strings.Contains(text, "alone") {
		t.Errorf("with rehearse: %q", text)
	}
	e.Model.LoRA.PerTask = true
	if text := othertexts.Remedy(e); text != "" {
		t.Errorf("with an encoder for each task: %q", text)
	}
}
