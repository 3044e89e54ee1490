package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// Experiments of a tagger of names, one of three words, beside texts of names alone and beside numbers.
const (
	nameTask = "  - {name: names, type: ner, data: {path: words.jsonl, split: {dev: 30, seed: 1}}}\n"
	listTask = "  - {name: lists, type: classification, data: {path: lists.jsonl, split: {dev: 30, seed: 1}}}\n"
	sumTask  = "  - {name: sums, type: regression, data: {path: lists.jsonl, split: {dev: 30, seed: 1}}}\n"
	fewSteps = "training: {learning_rate: 0.02, batch_size: 8, num_epochs: 4}\n"
)

func namesData() map[string]string {
	var words, lists, who, pairs strings.Builder
	names := []string{"anna", "bert", "carla"}
	for i := range 90 {
		name, tags := names[i%3], []string{"O", "O", "O"}
		tags[i%3] = "B-name"
		texts := []string{"so", "it", "is"}
		texts[i%3] = name
		fmt.Fprintf(&words, `{"words": ["%s"], "tags": ["%s"]}`+"\n", strings.Join(texts, `", "`),
			strings.Join(tags, `", "`))
		fmt.Fprintf(&who, `{"question": "who", "context": "it is %s", "answers": [%[1]q]}`+"\n", name)
		fmt.Fprintf(&pairs, `{"text": "who", "pair": "it is %s", "label": "%d"}`+"\n", name, i%2)
		fmt.Fprintf(&lists, `{"text": "%s %s %s", "label": "%d", "value": %[4]d}`+"\n", name, names[i/3%3],
			names[i/9%3], i%2)
	}
	return map[string]string{"words.jsonl": words.String(), "lists.jsonl": lists.String(),
		"who.jsonl": who.String(), "pairs.jsonl": pairs.String()}
}

// otherTextsShown trains tasks into the folder run, and returns the line of its event of other texts, and the warnings
// that follow from that.
func otherTextsShown(t *testing.T, tasks string, sets []string) (shown []string) {
	t.Helper()
	r, err := prepare(t, tasks+fewSteps, namesData(), sets...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(context.Background(), "run", func(event train.Event) error {
		switch e := event.(type) {
		case events.OtherTexts:
			line, err := json.Marshal(events.Line(e))
			shown = append(shown, string(line))
			return err
		case train.Warning:
			if strings.Contains(e.Text, "trains its heads to predict") {
				shown = append(shown, e.Text)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return shown
}

func TestATrainingRecordsWhatHeadsFindInOtherTexts(t *testing.T) {
	for name, test := range map[string]struct {
		tasks string
		sets  []string
		want  bool
	}{
		"a tagger beside a classifier":            {nameTask + listTask, nil, true},
		"without evaluations":                     {nameTask + listTask, []string{"training.eval_strategy=no"}, true},
		"LoRA, which is merged in the checkpoint": {nameTask + listTask, []string{"model.lora.r=2"}, true},
		"a frozen encoder":                        {nameTask + listTask, []string{"model.freeze=all"}, true},
		"heads that always say something":         {listTask + sumTask, nil, false},
		"a tagger alone":                          {nameTask, nil, false},
		"a tagger, and a classifier on its texts": {
			nameTask + "  - {name: t, type: tagging, data: {same_as: names}}\n", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			shown := otherTextsShown(t, test.tasks, test.sets)

			// metrics.jsonl has both before the last line
			lines := strings.Split(strings.TrimSpace(sample.Files(t, "run")[runfolder.MetricsFile]), "\n")
			recorded := 0
			for _, line := range lines {
				if strings.HasPrefix(line, `{"event":"other_texts"`) {
					recorded++
				}
			}
			if !test.want {
				if recorded+len(shown) > 0 {
					t.Errorf("%d lines, events %q, want none", recorded, shown)
				}
				return
			}
			if len(shown) == 0 || recorded != 1 {
				t.Fatalf("%d lines, events %q; want a line", recorded, shown)
			}
			at := len(lines) - 1 - len(shown)
			if lines[at] != shown[0] || !strings.HasPrefix(lines[len(lines)-1], `{"event":"done"`) {
				t.Errorf("last lines %q, want those of the events %q", lines[at:], shown)
			}
		})
	}
}

// The model is not changed, nor what it draws at random: an interrupted training goes on with the same bytes, also one
// that is interrupted while it measures.
func TestAnInterruptedTrainingMeasuresOtherTextsOnce(t *testing.T) {
	sample.Tasks(t, nameTask+listTask+fewSteps, namesData())
	trainSmall(t, "exp.yaml", "whole")
	want := result(t, "whole")
	if n := strings.Count(want[runfolder.MetricsFile], `"event":"other_texts"`); n != 1 {
		t.Fatalf("%d lines of other texts", n)
	}
	for _, after := range []int{0, 1, 2} { // checks of the context, of which measuring has one for each group
		folder := fmt.Sprintf("interrupted%d", after)
		r, err := ready(mustRead(t, "exp.yaml"), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		left := 1 << 20
		_, err = r.Train(countdown{context.Background(), &left}, folder, func(event train.Event) error {
			if step, ok := event.(train.Step); ok && step.Number == step.Of {
				left = 2 + after // those of the evaluation of both groups
			}
			return nil
		})
		if after < 2 && !errors.Is(err, context.Canceled) {
			t.Fatalf("%d checks after the evaluation: %v, want an interruption", after, err)
		}
		if err != nil {
			if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
				t.Fatal(err)
			}
		}
		checkSameResult(t, folder, result(t, folder), want)
	}
}

func TestCheckTellsOfHeadsThatAreNotTaughtOtherTexts(t *testing.T) {
	for _, c := range []struct{ tasks, set, want string }{
		{nameTask + listTask, "", `task "names": no example says what their heads`},
		{nameTask + listTask, "training.teachers=alone", ""},
		{listTask + sumTask, "", ""},
		{`  - {name: who, type: question_answering, data: {path: who.jsonl, split: {dev: 30, seed: 1}}}` + "\n" +
			`  - {name: pairs, type: classification, data: {path: pairs.jsonl, split: {dev: 30, seed: 1}}}` + "\n",
			"", ""},
		{nameTask, "", ""},
	} {
		var sets []string
		if c.set != "" {
			sets = []string{c.set}
		}
		r, err := prepare(t, c.tasks+fewSteps, namesData(), sets...)
		if err != nil {
			t.Fatal(err)
		}
		expected, tooLarge, err := r.Expect(context.Background())
		if err != nil || tooLarge != nil {
			t.Fatal(err, tooLarge)
		}
		var got []string
		for _, w := range expected.Warnings {
			if strings.Contains(w.Text, "texts of other tasks") {
				got = append(got, w.Text)
			}
		}
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], c.want)) {
			t.Errorf("%s%s: warnings %q, want %q", c.tasks, c.set, got, c.want)
		}
	}
}
