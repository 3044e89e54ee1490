package parttest_test

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// mixing is a fusion that shows each text the mean of all.
type mixing struct{}

func (mixing) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden {
	all := nn.Hidden{States: shared.States, Rows: nn.Rows{Starts: []int{0, shared.Rows.Tokens()}}}
	shared.States = nn.AddRow(shared.States, nn.MeanPool(all))
	return shared
}

// denying is the same, and says that it mixes nothing.
type denying struct{ mixing }

func (denying) Describe() fusion.Description { return fusion.Description{PerToken: true} }

// cutting is a fusion that loses the last text.
type cutting struct{}

func (cutting) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden {
	seen := shared
	seen.Rows.Starts = shared.Rows.Starts[:len(shared.Rows.Starts)-1]
	return seen
}

// spoiltTask is a classification with one method replaced.
type spoiltTask struct {
	tasks.Task
	example func(corpus.Record) (corpus.Example, error)
	judge   func([]corpus.Target, []corpus.Prediction) []tasks.Metric
}

func (s spoiltTask) Example(r corpus.Record) (corpus.Example, error) {
	if s.example == nil {
		return s.Task.Example(r)
	}
	return s.example(r)
}

func (s spoiltTask) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
	if s.judge == nil {
		return s.Task.Evaluate(gold, predicted)
	}
	return s.judge(gold, predicted)
}

func accuracy(gold []corpus.Target, predicted []corpus.Prediction) float64 {
	right := 0.0
	labels := outputs.Predictions[outputs.LabelPrediction](predicted)
	for i, g := range outputs.Targets[outputs.LabelTarget](gold) {
		if g.Label == labels[i].Label {
			right++
		}
	}
	return right / float64(len(gold))
}

func init() {
	fusion.Register("mixing", struct{}{}, func(struct{}, fusion.Env) (fusion.Fusion, error) { return mixing{}, nil })
	fusion.Register("denying", struct{}{}, func(struct{}, fusion.Env) (fusion.Fusion, error) { return denying{}, nil })
	fusion.Register("cutting", struct{}{}, func(struct{}, fusion.Env) (fusion.Fusion, error) { return cutting{}, nil })
	for name, spoil := range map[string]func(sound tasks.Task) tasks.Task{
		"trusting": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
				return corpus.Example{Place: r.Place, Targets: make([]corpus.Target, 2),
					Text: r.Fields["text"].(string)}, nil
			}}
		},
		"hollow": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
				var target *outputs.LabelTarget // of no label
				if label, ok, err := r.String("label"); err == nil && ok && label != "" {
					target = &outputs.LabelTarget{Label: label}
				}
				return corpus.Example{Place: r.Place, Targets: []corpus.Target{target, target}}, nil
			}}
		},
		"dividing": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound,
				judge: func(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
					return []tasks.Metric{{Name: "accuracy", Value: accuracy(gold, predicted)}}
				}}
		},
		"lenient": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, judge: func(gold []corpus.Target, _ []corpus.Prediction) []tasks.Metric {
				return []tasks.Metric{{Name: "accuracy", Value: min(1, float64(len(gold)))}}
			}}
		},
		"reversed": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound,
				judge: func(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
					metrics := sound.Evaluate(gold, predicted)
					metrics[0].Lower = true
					return metrics
				}}
		},
	} {
		tasks.Register(name, struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
			return spoil(tasks.NewClassification(env)), nil
		})
	}
}
