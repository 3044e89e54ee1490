package train

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestASnapshotOfAnotherTrainingIsRefused(t *testing.T) {
	start := func(change func(m *multitask.Model, data []multitask.Data, p *Plan)) *Training {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		change(m, data, &plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	same := start(func(*multitask.Model, []multitask.Data, *Plan) {})
	advance(t, same)
	s := mustSnapshot(t, same)
	for _, c := range []struct {
		want   string
		change func(m *multitask.Model, data []multitask.Data, p *Plan)
	}{
		{"snapshot: it was taken with seed 5; the training has 6",
			func(_ *multitask.Model, _ []multitask.Data, p *Plan) { p.Seed = 6 }},
		{"snapshot: it was taken with steps 16; the training has 24",
			func(_ *multitask.Model, _ []multitask.Data, p *Plan) { p.Epochs = 3 }},
		{"snapshot: it was taken with learning_rate 0.003; the training has 0.1",
			func(_ *multitask.Model, _ []multitask.Data, p *Plan) { p.Rate = 0.1 }},
		{"sampling proportional; the training has round_robin",
			func(_ *multitask.Model, _ []multitask.Data, p *Plan) { p.Sampler = inTurns("round_robin", 1) }},
		{"weighting fixed; the training has uncertainty",
			func(m *multitask.Model, _ []multitask.Data, p *Plan) { p.Weighting = uncertainty(m) }},
		{"sampling.groups 1; the training has 2", func(_ *multitask.Model, _ []multitask.Data, p *Plan) {
			p.Sampler, p.MaxSteps = inTurns("proportional", 2), 16
		}},
		{`weight of task "mood" head "mood" 1; the training has 2`, func(m *multitask.Model, _ []multitask.Data, _ *Plan) {
			m.Groups[2].Tasks[0].Heads[0].Weight = 2
		}},
		{`dev examples of task "mood", as number:checksum 10:`,
			func(_ *multitask.Model, data []multitask.Data, _ *Plan) { data[2].Dev = data[2].Dev[1:] }},
		{`training examples of task "topic"`, func(_ *multitask.Model, data []multitask.Data, _ *Plan) {
			data[0].Train[0], data[0].Train[1] = data[0].Train[1], data[0].Train[0]
		}},
		{`training examples of task "mood"`, func(_ *multitask.Model, data []multitask.Data, _ *Plan) {
			target := *data[2].Train[3].Targets[0].(*outputs.LabelTarget)
			target.ID = (target.ID + 1) % 3
			data[2].Train[3].Targets = []corpus.Target{&target}
		}},
		{`dev examples of task "topic"`, func(_ *multitask.Model, data []multitask.Data, _ *Plan) {
			data[0].Dev = slices.Clone(data[0].Dev)
			unlabelled := *data[0].Dev[0]
			unlabelled.Targets = []corpus.Target{nil}
			data[0].Dev[0] = &unlabelled
		}},
		{"a checksum of the encoder's frozen parameters 00000000; the training has",
			func(m *multitask.Model, _ []multitask.Data, _ *Plan) { m.Params.All()[0].Frozen = true }},
		{`snapshot: model: parameter "other" not found`,
			func(m *multitask.Model, _ []multitask.Data, _ *Plan) { m.Params.Zeros("other", 2) }},
	} {
		if err := restoreSame(start(c.change), s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Restore = %v, want %s", err, c.want)
		}
	}
}

func TestASnapshotOfAnotherFrozenLayerIsRefused(t *testing.T) {
	start := func(add float32) *Training {
		m, data := threeGroups(t, "1", 10)
		for _, w := range multitask.EncoderParams(m.Params).All() {
			if w.Frozen {
				w.Data[len(w.Data)-1] += add
				w.Changed()
			}
		}
		training, err := New(m, data, smallPlan())
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	s := mustSnapshot(t, start(0))
	mustRestore(t, start(0), s)
	want := "it was taken with a checksum of the encoder's frozen parameters"
	if err := restoreSame(start(1), s); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Restore = %v, want %s", err, want)
	}
}

// planChange is a change of a plan, and the end of the error of a snapshot that was taken without it.
type planChange struct {
	want   string // "": the field does not change the results
	change func(p *Plan)
}

// planChanges are changes of each field of a plan.
func planChanges(t *testing.T) map[string]planChange {
	return map[string]planChange{
		"Seed":        {"seed 5; the training has 6", func(p *Plan) { p.Seed = 6 }},
		"Epochs":      {"steps 16; the training has 24", func(p *Plan) { p.Epochs = 3 }},
		"MaxSteps":    {"steps 16; the training has 3", func(p *Plan) { p.MaxSteps = 3 }},
		"BatchSize":   {"batch_size 4; the training has 3", func(p *Plan) { p.BatchSize = 3; p.MaxSteps = 16 }},
		"BatchTokens": {"batch_tokens 1000; the training has 900", func(p *Plan) { p.BatchTokens = 900 }},
		"Accumulate": {"gradient_accumulation_steps 1; the training has 2",
			func(p *Plan) { p.Accumulate, p.MaxSteps = 2, 16 }},
		"Recompute":     {"", func(p *Plan) { p.Recompute = true }},
		"Rehearse":      {"", func(p *Plan) { p.Rehearse = 0.5 }}, // NewRehearsal has it
		"BFloat16":      {"precision float32; the training has bf16", func(p *Plan) { p.BFloat16 = true }},
		"TF32":          {"tf32 false; the training has true", func(p *Plan) { p.TF32 = true }},
		"Rate":          {"learning_rate 0.003; the training has 0.1", func(p *Plan) { p.Rate = 0.1 }},
		"WeightDecay":   {"weight_decay 0.01; the training has 0.1", func(p *Plan) { p.WeightDecay = 0.1 }},
		"WarmupRatio":   {"warmup_ratio 0.0; the training has 0.5", func(p *Plan) { p.WarmupRatio = 0.5 }},
		"WarmupSteps":   {"warmup_steps 1; the training has 2", func(p *Plan) { p.WarmupSteps = 2 }},
		"ClipNorm":      {"max_grad_norm 1.0; the training has 0.0", func(p *Plan) { p.ClipNorm = 0 }},
		"LossLimit":     {"loss_limit 0.0; the training has 100.0", func(p *Plan) { p.LossLimit = 100 }},
		"TeacherWeight": {"teacher_weight 0.0; the training has 0.5", func(p *Plan) { p.TeacherWeight = 0.5 }},
		"Anneal":        {"anneal false; the training has true", func(p *Plan) { p.Anneal = true }},
		"Temperature":   {"temperature 0.0; the training has 2.0", func(p *Plan) { p.Temperature = 2 }},
		"Taught": {"answers of teachers not found; want a sum", func(p *Plan) {
			m, data := threeGroups(t, "none", 10)
			p.Taught = &multitask.Taught{Groups: m.Groups, Data: data, Lesson: &heads.Lesson{}, Sum: "a sum"}
		}},
		"SkipBadSteps": {"on_bad_loss stop; the training has skip",
			func(p *Plan) { p.SkipBadSteps = true }},
		"LayerDecay": {"layer_decay 1.0; the training has 0.5", func(p *Plan) { p.LayerDecay = 0.5 }},
		"HeadRate":   {"head_learning_rate 0.003; the training has 0.1", func(p *Plan) { p.HeadRate = 0.1 }},
		"UnfreezeEvery": {"unfreeze 0; the training has 0.5",
			func(p *Plan) { p.UnfreezeEvery = 0.5 }},
		"Average": {"ema 0.0; the training has 0.9", func(p *Plan) { p.Average = 0.9 }},
		"Optimizer": {"adamw {beta1: 0.9, beta2: 0.999, eps: 1.0e-08}; the training has sgd {momentum: 0.5, dampening: 0.0, " +
			"nesterov: false}", func(p *Plan) { p.Optimizer = updates.Of("sgd", updates.SGD{Momentum: 0.5}) }},
		"Schedule": {"lr_scheduler linear; the training has cosine {num_cycles: 0.5}",
			func(p *Plan) { p.Schedule = cosine() }},
		"Sampler": {"sampling proportional; the training has uniform",
			func(p *Plan) { p.Sampler = inTurns("uniform", 1) }},
		"Weighting": {"weighting fixed; the training has pcgrad",
			func(p *Plan) { p.Weighting = pcgrad() }},
		"Ranks":  {"", func(p *Plan) { p.Ranks, _ = collective.New(collectivetest.Local(1)[0]) }},
		"Shards": {"shards 1; the training has 2", func(p *Plan) { p.Shards = 2 }},
		"RoundGradients": {"gradient_dtype float32; the training has bf16",
			func(p *Plan) { p.RoundGradients = true }},
		"NativeSums":    {"all_reduce tree; the training has native", func(p *Plan) { p.NativeSums = true }},
		"EvaluateEvery": {"eval_steps 0; the training has 5", func(p *Plan) { p.EvaluateEvery = 5 }},
		"NeverEvaluate": {"evaluations true; the training has false", func(p *Plan) { p.NeverEvaluate = true }},
		"CacheMemory":   {"", func(p *Plan) { p.CacheMemory = 1 << 20 }},
		"CacheFile":     {"", func(p *Plan) { p.CacheFile = func() (multitask.CacheFile, error) { return nil, nil } }},
	}
}

// TestASnapshotOfAnotherPlanIsRefused changes each field of the plan: the snapshot either names it, or its field is
// listed as one that does not change the results.
func TestASnapshotOfAnotherPlanIsRefused(t *testing.T) {
	start := func(change func(p *Plan)) *Training {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		plan.WarmupSteps, plan.BatchTokens = 1, 1000
		change(&plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	tested := map[string]bool{}
	for field, c := range planChanges(t) {
		s := mustSnapshot(t, start(func(*Plan) {}))
		if _, found := reflect.TypeFor[Plan]().FieldByName(field); !found {
			t.Errorf("Plan has no field %s", field)
		}
		switch err := restoreSame(start(c.change), s); {
		case c.want == "" && err != nil:
			t.Errorf("%s: Restore = %v", field, err)
		case c.want != "" && (err == nil || !strings.HasSuffix(err.Error(), c.want)):
			t.Errorf("%s: Restore = %v, want %s", field, err, c.want)
		}
		tested[field] = true
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[Plan]()) {
		if !field.Anonymous && !tested[field.Name] {
			t.Errorf("no case for the plan's field %s", field.Name)
		}
	}
}

func TestAProgressThatCannotBeIsRefused(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	training, err := New(m, data, smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	advance(t, training)
	for _, c := range []struct {
		want   string
		change func(p *progress)
	}{
		{"step 17 of 16", func(p *progress) { p.Step = 17 }},
		{"step -1 of 16", func(p *progress) { p.Step = -1 }},
		{"an evaluation after step 2, at step 1", func(p *progress) { p.Evaluated = 2 }},
		{"an evaluation after step -1, at step 1", func(p *progress) { p.Evaluated = -1 }},
		{"a batch of group 3; there are 3", func(p *progress) { p.Last = 3 }},
		{"a batch of group -2; there are 3", func(p *progress) { p.Last = -2 }},
		{"batches of 2 groups; the training has 3", func(p *progress) { p.Batches = p.Batches[:2] }},
		{"inconsistent counts of batches", func(p *progress) { p.Used = 16 }},
		{"inconsistent counts of batches", func(p *progress) { p.Used = -1 }},
		{"inconsistent counts of batches", func(p *progress) { p.Epoch = -1 }},
		{"inconsistent counts of batches", func(p *progress) { p.Left = p.Left[:2] }},
		{"4 batches left of 3", func(p *progress) { p.Left[0] = 4 }},
		{"-17 batches left of 3", func(p *progress) { p.Left[0] = -17 }},
		{"4 of 3 batches are used", func(p *progress) { p.Batches[0].Used = 4 }},
		{"-1 of 3 batches are used", func(p *progress) { p.Batches[0].Used = -1 }},
		{"a random stream: ", func(p *progress) { p.Sampling = nil }},
		{"a random stream: ", func(p *progress) { p.Weighing = p.Weighing[1:] }},
		{"a random stream: ", func(p *progress) { p.Batches[2].Stream = nil }},
	} {
		s := mustSnapshot(t, training)
		p := progressOf(t, s)
		c.change(&p)
		if s.Progress, err = json.Marshal(p); err != nil {
			t.Fatal(err)
		}
		if err := restoreSame(training, s); err == nil || !strings.HasPrefix(err.Error(), "snapshot: "+c.want) {
			t.Errorf("Restore = %v, want %s", err, c.want)
		}
	}
	s := mustSnapshot(t, training)
	s.Settings = append(s.Settings, snapshots.Setting{Key: "more", Value: "1"})
	if err := restoreSame(training, s); err == nil || err.Error() != "snapshot: unexpected more" {
		t.Errorf("Restore = %v", err)
	}
}
