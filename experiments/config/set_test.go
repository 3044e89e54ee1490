package config

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestSet(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, test := range []struct {
		rule, set string
		got       func(*Experiment) any
		want      any
	}{
		{"a value of the file is overruled", "training.num_epochs=9",
			func(e *Experiment) any { return e.Training.Epochs }, 9},
		{"one that it lacks is added", "training.warmup_ratio=.5",
			func(e *Experiment) any { return e.Training.WarmupRatio }, 0.5},
		{"lists go by name", "tasks.intent.heads.urgency.weight=3",
			func(e *Experiment) any { return e.Tasks[0].Heads[1].Weight }, 3.0},
		{"a default head is there by its name", "tasks.slots.heads.slots.type=mlp",
			func(e *Experiment) any { return e.Tasks[1].Heads[0].Part.Type }, "mlp"},
		{"the value is YAML", "tasks.intent.heads.urgency.labels=[a, 'b c']",
			func(e *Experiment) any { return e.Tasks[0].Heads[1].Labels[1] }, "b c"},
		{"a value may hold =", "tasks.slots.data.tags=a=b",
			func(e *Experiment) any { return e.Tasks[1].Data.Format.Fields["tags"] }, "a=b"},
		{"a part written as its type has options", "training.sampling.type=round_robin",
			func(e *Experiment) any { return e.Training.Sampling.Type }, "round_robin"},
		{"no value is null", "model.fusion=", func(e *Experiment) any { return e.Model.Fusion.Type }, "none"},
		{"a section that is missing is made", "training.logging.service=none",
			func(e *Experiment) any { return e.Training.Logging.Service }, "none"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			if got := test.got(mustRead(t, file, test.set)); got != test.want {
				t.Errorf("--set %s gives %v, want %v", test.set, got, test.want)
			}
		})
	}
	t.Run("the last of two counts", func(t *testing.T) {
		if got := mustRead(t, file, "seed=1", "seed=2").Seed; got != 2 {
			t.Errorf("seed is %d, want 2", got)
		}
	})
}

func TestSetMistakes(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for set, want := range map[string]string{
		"num_epochs":                       "want KEY=VALUE, as training.num_epochs=1",
		"=1":                               "want KEY=VALUE, as training.num_epochs=1",
		"training.num_epoch=1":             `training has no option "num_epoch"; did you mean "num_epochs"? it takes all_reduce, `,
		"training.num_epochs=0":            "training: num_epochs: want a whole number of at least 1, have 0",
		"training.num_epochs=[":            "not YAML: did not find expected node content",
		"seed=1\n---\n2":                   "a second document begins",
		"seed.of.all=1":                    "seed has no keys: it is 7",
		"tasks.intend.type=ner":            `no task "intend"; did you mean "intent"? available: intent, slots`,
		"tasks.intent=ner":                 `task "intent" is a mapping; name one of its keys`,
		"tasks.slots.heads.slot.type=mlp":  `no head "slot"; did you mean "slots"? available: slots`,
		"tasks.intent.heads.tone.type=mlp": `no head "tone"; available: intent, urgency`,
		"tasks.intent.data.train=no.csv":   `task "intent": no.csv: no such file`,
	} {
		_, err := Read(t.Context(), file, []string{set})
		if err == nil || !strings.HasPrefix(err.Error(), "argument set "+set+": "+want) {
			t.Errorf("--set %s: %v, want %s", set, err, want)
		}
	}
}

// An option that the type of --set lacks is right in the file by itself: the mistake is that of --set.
func TestSetOfATypeBesideOptionsOfAnother(t *testing.T) {
	dir := sample.Folder(t, map[string]string{"exp.yaml": `
model: {encoder: transformer}
tasks: [{name: mood, type: classification, data: {train: train.jsonl}}]
training: {sampling: {type: temperature, temperature: 2.0}}
`}, "train.jsonl")
	_, err := Read(t.Context(), filepath.Join(dir, "exp.yaml"), []string{"training.sampling.type=uniform"})
	const want = `argument set training.sampling.type=uniform: sampling "uniform" has no option "temperature"; `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

// Each part may be written as its type alone, and keeps that type when --set gives it an option.
func TestSetAddsAnOptionToAPartWrittenAsItsType(t *testing.T) {
	want := []string{"encoder", "fusion", "optimizer", "lr_scheduler", "sampling", "weighting"}
	if !slices.Equal(partKeys, want) {
		t.Errorf("keys of parts are %q, want %q", partKeys, want)
	}
	dir := sample.Folder(t, map[string]string{"exp.yaml": `
model: {encoder: transformer, fusion: attention}
tasks: [{name: mood, type: classification, data: {train: train.jsonl}}]
training: {sampling: uniform, weighting: uncertainty}
`}, "train.jsonl")
	e := mustRead(t, filepath.Join(dir, "exp.yaml"), "model.encoder.layers=3", "model.fusion.hidden_size=24",
		"training.sampling.groups=1", "training.weighting.learning_rate=0.5")
	for _, part := range []struct {
		section   *plugin.Section
		kind, key string
		want      string
	}{
		{e.Model.Encoder.Section(), "transformer", "layers", "3"},
		{e.Model.Fusion.Section(), "attention", "hidden_size", "24"},
		{e.Training.Sampling.Section(), "uniform", "groups", "1"},
		{e.Training.Weighting.Section(), "uncertainty", "learning_rate", "0.5"},
	} {
		if kind := part.section.At("type").Text; kind != part.kind {
			t.Errorf("the type is %s, want %s", kind, part.kind)
		}
		if got := part.section.At(part.key).Text; got != part.want {
			t.Errorf("%s: %s is %s, want %s", part.kind, part.key, got, part.want)
		}
	}
}
