package train

import (
	"context"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// addTask adds a group of one task and head to a small model, whose fusion, which does not know it, gives way to none.
func addTask(t *testing.T, m *multitask.Model, kind, head string, env heads.Env) *multitask.Group {
	t.Helper()
	none, err := fusion.Registry().FromString("none", "")
	if err != nil {
		t.Fatal(err)
	}
	if m.Fusion, err = none.Build(fusion.Env{}); err != nil {
		t.Fatal(err)
	}
	part, err := tasks.Registry().FromString(kind, "")
	if err != nil {
		t.Fatal(err)
	}
	task, err := part.Build(tasks.Env{Name: kind, Heads: []string{kind}})
	if err != nil {
		t.Fatal(err)
	}
	choice, err := heads.Registry().FromString(head, "")
	if err != nil {
		t.Fatal(err)
	}
	env.Task, env.Name, env.Output, env.Width = kind, kind, task.Output(), m.Encoder.Describe().Width
	env.Params = m.Params.In("heads").In(kind).In(kind)
	built, err := choice.Build(env)
	if err != nil {
		t.Fatal(err)
	}
	m.Groups = append(m.Groups, multitask.Group{Name: kind,
		Tasks: []multitask.Task{{Name: kind, Type: task,
			Heads: []multitask.Head{{Name: kind, Head: built, Labels: corpus.NewLabels(nil), Weight: 1}}}}})
	return &m.Groups[len(m.Groups)-1]
}

// hidingModel is a small model with one group, which guesses hidden tokens, and texts of one token six times each.
func hidingModel(t *testing.T, freeze string) (*multitask.Model, multitask.Data) {
	m := smallModel(t, freeze, 0)
	m.Groups = nil
	addTask(t, m, "mlm", "mlm", heads.Env{Mask: smallVocabulary - 1, Words: m.Encoder.Describe().WordEmbeddings})
	var data multitask.Data
	for i := range 48 {
		w := corpus.Encoding{IDs: []int32{0}, Offsets: []corpus.Span{{}}, Segments: make([]int8, 8)}
		for k := range 6 {
			w.IDs, w.Offsets = append(w.IDs, int32(2+i%16)), append(w.Offsets, corpus.Span{Start: k, End: k + 1})
		}
		w.IDs, w.Offsets = append(w.IDs, 1), append(w.Offsets, corpus.Span{})
		targets := []corpus.Target{&outputs.HiddenTarget{IDs: []int32{}}}
		data.Train = append(data.Train, &corpus.Example{Windows: []corpus.Encoding{w}, Targets: targets})
	}
	data.Dev = data.Train
	return m, data
}

func TestHiddenTokensAreLearnedFromTheOthers(t *testing.T) {
	m, data := hidingModel(t, "none")
	plan := smallPlan()
	plan.Epochs, plan.BatchSize, plan.Rate, plan.NeverEvaluate = 100, 8, 1e-2, true
	steps, _ := train(t, m, []multitask.Data{data}, plan)
	if first, last := steps[0].Loss, steps[len(steps)-1].Loss; !(last < first/2) {
		t.Errorf("the loss went from %v to %v", first, last)
	}
	score, err := multitask.Cached{Model: m}.Evaluate(context.Background(), &m.Groups[0], data.Dev, 8, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	head := score.Tasks[0].Heads[0]
	if head.Metrics[0].Name != "accuracy" || head.Metrics[0].Value < 0.9 || head.Loss.Units != 48 {
		t.Errorf("%+v of %v tokens", head.Metrics, head.Loss.Units)
	}
	again, err := multitask.Cached{Model: m}.Evaluate(context.Background(), &m.Groups[0], data.Dev, 5, 0, nil)
	if err != nil || !reflect.DeepEqual(again.Tasks[0].Heads[0].Metrics, head.Metrics) {
		t.Errorf("in other batches %+v, %v: other tokens were asked for", again.Tasks[0].Heads[0].Metrics, err)
	}
	if len(outputs.As[outputs.HiddenTarget](data.Dev[0].Targets[0]).IDs) != 0 {
		t.Error("an evaluation left its questions in the data")
	}
}

func TestTwoRunsHideTheSame(t *testing.T) {
	var losses [2][]float64
	for i := range losses {
		m, data := hidingModel(t, "none")
		steps, _ := train(t, m, []multitask.Data{data}, smallPlan())
		for _, s := range steps {
			losses[i] = append(losses[i], s.Loss)
		}
	}
	if !reflect.DeepEqual(losses[0], losses[1]) {
		t.Errorf("losses %v and %v", losses[0], losses[1])
	}
}

func TestStatesOfHiddenTokensAreNotKept(t *testing.T) {
	m, data := hidingModel(t, "all")
	plan := smallPlan()
	plan.CacheFile = noCacheFile(t)
	training, err := New(m, []multitask.Data{data}, plan)
	if err != nil {
		t.Fatal(err)
	}
	defer training.Close()
	if err := training.Complete(context.Background(), func(Event) error { return nil }); err != nil {
		t.Fatal(err)
	}
}

func TestMasksInATextAreGuessed(t *testing.T) {
	m, data := hidingModel(t, "none")
	data.Train[0].Windows[0].IDs[3] = smallVocabulary - 1
	answers, err := m.Predict(nn.NewPass(1), &m.Groups[0], data.Train[:2])
	if err != nil {
		t.Fatal(err)
	}
	got := outputs.AllAs[outputs.HiddenPrediction](answers[0])
	if len(got[0].Tokens) != 1 || got[0].Tokens[0].Token != 3 || got[1].Tokens != nil {
		t.Errorf("guesses %+v and %+v", got[0].Tokens, got[1].Tokens)
	}
}

func TestTheSameTokensAreHiddenInOtherBatches(t *testing.T) {
	m, data := hidingModel(t, "none")
	hidden := func(batchSize int) (tokens [][]int) {
		model := multitask.Cached{Model: m}
		_, predicted, _, err := model.PredictAll(context.Background(), &m.Groups[0], data.Dev, batchSize, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range outputs.AllAs[outputs.HiddenPrediction](predicted[0]) {
			var of []int
			for _, token := range p.Tokens {
				of = append(of, token.Token)
			}
			tokens = append(tokens, of)
		}
		return tokens
	}
	want := hidden(8)
	if same := slices.Repeat(want[:1], len(want)); reflect.DeepEqual(want, same) {
		t.Errorf("in all examples the same tokens are hidden: %v", want)
	}
	for _, batchSize := range []int{1, 5} {
		if got := hidden(batchSize); !reflect.DeepEqual(got, want) {
			t.Errorf("in batches of %d the tokens %v are hidden, in batches of 8 %v", batchSize, got, want)
		}
	}
}
