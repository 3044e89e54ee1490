package run

import (
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

// planFields are fields of a train.Plan by name: of CacheFile the folder of the file, of parts their types.
type planFields map[string]any

// planOf returns the fields of the plan of a run in folder.
func planOf(t *testing.T, e *config.Experiment, folder string) planFields {
	t.Helper()
	r, err := ready(e, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	fields := planFields{}
	plan := reflect.ValueOf(r.planIn(folder))
	for _, field := range fieldsOf(plan.Type()) {
		switch v := plan.FieldByIndex(field.Index).Interface().(type) {
		case func() (multitask.CacheFile, error):
			fields[field.Name] = cacheFolder(t, v)
		case samplers.Sampler:
			fields[field.Name] = v.Type
		case weightings.Weighting:
			fields[field.Name] = v.Type
		case updates.Optimizer:
			fields[field.Name] = v.Part.Type
		case updates.Schedule:
			fields[field.Name] = v.Part.Type
		default:
			fields[field.Name] = v
		}
	}
	return fields
}

// fieldsOf returns the fields of a struct, those of structs that it embeds among them.
func fieldsOf(t reflect.Type) []reflect.StructField {
	return slices.DeleteFunc(reflect.VisibleFields(t), func(f reflect.StructField) bool { return f.Anonymous })
}

// cacheFolder returns the folder of the files that open makes, "" where it is nil.
func cacheFolder(t *testing.T, open func() (multitask.CacheFile, error)) string {
	t.Helper()
	if open == nil {
		return ""
	}
	f, err := open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return filepath.Dir(f.(*states).f.Name())
}

// planKey is keys of an experiment, and the fields of the plan that they change.
type planKey struct {
	field string // of config.Training, "" for a key outside the section
	sets  []string
	want  planFields
}

// notInPlan are the fields of config.Training that leave the plan as it is. TestKeysOutsideThePlan and, for the
// patience, TestEarlyStoppingCountsEvaluationsSinceTheBest check those that have an effect.
var notInPlan = []string{
	"Selection", "Reversed", // of the checkpointer
	"EarlyStoppingPatience",
	"OutputDir", "LoggingSteps", "Rehearse", // of Folder, metrics.jsonl, newSampler (TestRehearsedTasksAreMixedIn)
	"SaveStrategy", "SaveSteps", "SaveMinutes", "SaveTotalLimit", "TaskBests", // of the checkpointer
	"Device",                                                               // of the encoder
	"TeacherWeight", "Anneal", "Temperature", "Teachers", "TeacherAnswers", // TestOptionsOfTeachersChangeTheModel
	"Match",      // TestStatesOfATeacherAreLearned
	"Unlabelled", // TestTextsWithoutLabelsAreTaught
	"Taught",
	"LoadBestModelAtEnd", "Logging", // of Jenga-NLP, without effect
}

// planKeys are the keys of training, and others that change the plan; states is a folder.
func planKeys(states string) []planKey {
	return []planKey{
		{"", []string{"seed=7"}, planFields{"Seed": uint64(7)}},
		{"Rate", []string{"training.learning_rate=0.5"}, planFields{"Rate": 0.5}},
		{"Shards", []string{"training.shards=4"}, planFields{"Shards": 4}},
		{"RoundGradients", []string{"training.gradient_dtype=bf16"}, planFields{"RoundGradients": true}},
		{"NativeSums", []string{"training.all_reduce=native"}, planFields{"NativeSums": true}},
		{"HeadRate", []string{"training.head_learning_rate=0.5"}, planFields{"HeadRate": 0.5}},
		{"LayerDecay", []string{"training.layer_decay=0.5"}, planFields{"LayerDecay": 0.5}},
		{"", []string{"model.freeze={unfreeze: {every: 0.5}}"}, planFields{"UnfreezeEvery": 0.5}},
		{"Average", []string{"training.ema=0.9"}, planFields{"Average": 0.9}},
		{"WeightDecay", []string{"training.weight_decay=0.25"}, planFields{"WeightDecay": 0.25}},
		{"BatchSize", []string{"training.batch_size=3"}, planFields{"BatchSize": 3}},
		{"BatchTokens", []string{"training.batch_tokens=99"}, planFields{"BatchTokens": 99}},
		{"Epochs", []string{"training.num_epochs=4"}, planFields{"Epochs": 4}},
		{"MaxSteps", []string{"training.max_steps=11"}, planFields{"MaxSteps": 11}},
		{"WarmupSteps", []string{"training.warmup_steps=5"}, planFields{"WarmupSteps": 5}},
		{"WarmupRatio", []string{"training.warmup_ratio=0.125"}, planFields{"WarmupRatio": 0.125}},
		{"ClipNorm", []string{"training.max_grad_norm=2"}, planFields{"ClipNorm": 2.0}},
		{"SkipBadSteps", []string{"training.on_bad_loss=skip"}, planFields{"SkipBadSteps": true}},
		{"LossLimit", []string{"training.loss_limit=50"}, planFields{"LossLimit": 50.0}},
		{"Accumulate", []string{"training.gradient_accumulation_steps=6"}, planFields{"Accumulate": 6}},
		{"Recompute", []string{"training.recompute=true"}, planFields{"Recompute": true}},
		{"TF32", []string{"training.tf32=true"}, planFields{"TF32": true}},
		{"Optimizer", []string{"training.optimizer=sgd"}, planFields{"Optimizer": "sgd"}},
		{"Scheduler", []string{"training.lr_scheduler=cosine"}, planFields{"Schedule": "cosine"}},
		{"Sampling", []string{"training.sampling=uniform"}, planFields{"Sampler": "uniform"}},
		{"Weighting", []string{"training.weighting=uncertainty"}, planFields{"Weighting": "uncertainty"}},
		{"EvalStrategy", []string{"training.eval_strategy=no"}, planFields{"NeverEvaluate": true}},
		{"EvalStrategy", []string{"training.eval_strategy=steps"}, planFields{"EvaluateEvery": 500}},
		{"EvalSteps", []string{"training.eval_strategy=steps", "training.eval_steps=9"},
			planFields{"EvaluateEvery": 9}},
		{"CacheMemory", []string{"training.cache_memory=3"}, planFields{"CacheMemory": int64(3 << 20)}},
		{"NoCacheFile", []string{"training.cache_file=false"}, planFields{"CacheFile": ""}},
		{"CacheFolder", []string{"training.cache_file=" + states}, planFields{"CacheFile": states}},
	}
}

// Every key of the training section changes its own fields of the plan, and nothing else.
func TestEachKeyOfTrainingIsInThePlan(t *testing.T) {
	folder, states := t.TempDir(), t.TempDir()
	path := sample.Small(t, "")
	defaults := planOf(t, mustRead(t, path), folder)
	rows, changed := map[string]bool{}, map[string]bool{}
	for _, key := range planKeys(states) {
		checkPlan(t, key.sets, planOf(t, mustRead(t, path, key.sets...), folder), defaults, key.want)
		rows[key.field] = true
		for field := range key.want {
			changed[field] = true
		}
	}

	// bf16, which Read refuses where the processor lacks it
	e := mustRead(t, path)
	e.Training.BFloat16 = true
	checkPlan(t, []string{"training.precision=bf16"}, planOf(t, e, folder), defaults, planFields{"BFloat16": true})
	rows["BFloat16"], changed["BFloat16"] = true, true

	// all fields
	for _, field := range fieldsOf(reflect.TypeFor[config.Training]()) {
		if rows[field.Name] == slices.Contains(notInPlan, field.Name) {
			t.Errorf("%s of config.Training: want a row above, or an entry of notInPlan", field.Name)
		}
	}
	for _, field := range fieldsOf(reflect.TypeFor[train.Plan]()) {
		if !changed[field.Name] && field.Name != "Ranks" && !slices.Contains(notInPlan, field.Name) {
			t.Errorf("no row changes %s of train.Plan", field.Name)
		}
	}
}

// checkPlan requires of a plan the wanted fields, which differ from the defaults, and the defaults of all others.
func checkPlan(t *testing.T, sets []string, got, defaults, want planFields) {
	t.Helper()
	all := maps.Clone(defaults)
	maps.Copy(all, want)
	for name := range all {
		if !reflect.DeepEqual(got[name], all[name]) {
			t.Errorf("with %q the plan's %s is %v, want %v", sets, name, got[name], all[name])
		}
		if _, changes := want[name]; changes && reflect.DeepEqual(want[name], defaults[name]) {
			t.Errorf("%q is the default of %s, which shows nothing", sets, name)
		}
	}
}

func TestKeysOutsideThePlan(t *testing.T) {
	path := sample.Small(t, "")

	// the metric that selects the best model
	for _, test := range []struct {
		sets []string
		want report.Selection
	}{
		{nil, report.Selection{Metric: "eval_overall", Higher: true}},
		{[]string{"training.metric_for_best_model=eval_team_team_f1_macro"},
			report.Selection{Metric: "eval_team_team_f1_macro", Higher: true}},
		{[]string{"training.metric_for_best_model=eval_loss"}, report.Selection{Metric: "eval_loss"}},
		{[]string{"training.metric_for_best_model=eval_loss", "training.greater_is_better=true"},
			report.Selection{Metric: "eval_loss", Higher: true}},
		{[]string{"training.metric_for_best_model={team: 2, things: 1}"}, report.Selection{Metric: "eval_weighted",
			Higher: true, Weights: map[string]float64{"team": 2, "things": 1}}},
	} {
		if got := mustRead(t, path, test.sets...).Training.Selection; !reflect.DeepEqual(got, test.want) {
			t.Errorf("with %q the best is selected by %+v, want %+v", test.sets, got, test.want)
		}
	}

	// the run folder
	out := filepath.Join(t.TempDir(), "out")
	e := mustRead(t, path, "project_name=mine", "training.output_dir="+out)
	if got := Folder(e, ""); got != out {
		t.Errorf("with output_dir %s the run folder is %s", out, got)
	}
	if got := Folder(e, "other"); got != "other" {
		t.Errorf("with --out other the run folder is %s", got)
	}
	if got, want := Folder(mustRead(t, path, "project_name=mine"), ""), filepath.Join("runs", "mine"); got != want {
		t.Errorf("the run folder is %s, want %s", got, want)
	}

	// the steps in metrics.jsonl
	r, err := ready(mustRead(t, path, "training.logging_steps=3"), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	var logged []int
	for n := 1; n <= 8; n++ {
		if r.logs(train.Step{Number: n, Of: 8}) {
			logged = append(logged, n)
		}
	}
	if want := []int{1, 3, 6, 8}; !slices.Equal(logged, want) || !r.logs(train.Evaluation{}) {
		t.Errorf("steps %v have lines in metrics.jsonl, want %v, and evaluations", logged, want)
	}
}
