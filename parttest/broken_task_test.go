package parttest_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
	"github.com/jenga-nlp/jenga/tasks"
)

// brokenKinds lists kinds of outputs likewise.
var brokenKinds = map[string]struct {
	rule  string
	spoil func(*outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction])
}{
	"copying": {"labels_can_be_listed", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.Names = func(t *outputs.LabelTarget, visit func(name *string)) { name := t.Label; visit(&name) }
	}},
	"all-knowing": {"labels_can_be_listed", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.Unknown = nil
	}},
	"unlabelled": {"labels_can_be_listed", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.HasLabels = false
	}},
	"wordless": {"labels_can_be_listed", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.PerWord = true
		s.Count = func(*outputs.LabelTarget) outputs.Count { return outputs.Count{Units: 1} }
	}},
	"generous": {"Right_tells_right", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.Right = func(*outputs.LabelTarget, *outputs.LabelPrediction) bool { return true }
	}},
	"strict": {"Right_tells_right", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.Right = func(*outputs.LabelTarget, *outputs.LabelPrediction) bool { return false }
	}},
	"listing": {"predictions_are_written", func(s *outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]) {
		s.JSON = func(p *outputs.LabelPrediction, _ outputs.Input) any { return []string{p.Label} }
	}},
}

var soundKind = outputs.Spec[*outputs.LabelTarget, *outputs.LabelPrediction]{
	Name: "another label", Description: "one more label", Field: "label", Traits: outputs.Traits{HasLabels: true},
	Names:     func(t *outputs.LabelTarget, visit func(name *string)) { visit(&t.Label) },
	AssignIDs: func(t *outputs.LabelTarget, labels *corpus.Labels) { t.ID = labels.ID(t.Label) },
	Unknown: func(t *outputs.LabelTarget) []string {
		if t.ID == corpus.Unknown {
			return []string{t.Label}
		}
		return nil
	},
	Right: func(t *outputs.LabelTarget, p *outputs.LabelPrediction) bool { return t.Label == p.Label },
}

var soundSample = parttest.Sample{
	Text: func(i, words int, labels *corpus.Labels) (corpus.Target, parttest.SampleText) {
		id := i % len(labels.Names())
		return &outputs.LabelTarget{Label: labels.Name(id), ID: id},
			parttest.SampleWords(words, nil, func(int) []int { return []int{id} })
	},
	Right: func(t corpus.Target, _ *corpus.Labels) corpus.Prediction {
		return &outputs.LabelPrediction{Label: outputs.As[outputs.LabelTarget](t).Label}
	},
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

// judging is a classification with another accuracy.
func judging(sound tasks.Task, accuracy func([]corpus.Target, []corpus.Prediction) float64) tasks.Task {
	return spoiltTask{Task: sound, judge: func(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
		if len(gold) == 0 {
			return []tasks.Metric{{Name: "accuracy"}}
		}
		return []tasks.Metric{{Name: "accuracy", Value: accuracy(gold, predicted)}}
	}}
}

// errorOf returns an error without its place.
func errorOf(err error) error {
	if err == nil {
		return nil
	}
	_, what, _ := strings.Cut(err.Error(), ": ")
	return errors.New(what)
}

func accuracy(gold []corpus.Target, predicted []corpus.Prediction) float64 {
	right := 0.0
	labels := outputs.AllAs[outputs.LabelPrediction](predicted)
	for i, g := range outputs.AllAs[outputs.LabelTarget](gold) {
		if g.Label == labels[i].Label {
			right++
		}
	}
	return right / float64(len(gold))
}

// brokenTasks are classifications that break one rule each.
var brokenTasks = map[string]func(sound tasks.Task) tasks.Task{
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
	"sleepy": func(sound tasks.Task) tasks.Task {
		return judging(sound, func(gold []corpus.Target, predicted []corpus.Prediction) float64 {
			return accuracy(gold[1:], predicted[1:])
		})
	},
	"blind": func(sound tasks.Task) tasks.Task {
		return judging(sound, func(gold []corpus.Target, predicted []corpus.Prediction) float64 {
			gold, predicted = slices.Clone(gold), slices.Clone(predicted)
			for i, g := range outputs.AllAs[outputs.LabelTarget](gold) {
				if g.ID < 0 {
					gold[i], predicted[i] = gold[1], predicted[1]
				}
			}
			return accuracy(gold, predicted)
		})
	},
	"biased": func(sound tasks.Task) tasks.Task {
		return judging(sound, func(gold []corpus.Target, predicted []corpus.Prediction) float64 {
			return (accuracy(gold, predicted) + accuracy(gold[:2], predicted[:2])) / 2
		})
	},
	"grudging": func(sound tasks.Task) tasks.Task {
		return judging(sound, func(gold []corpus.Target, predicted []corpus.Prediction) float64 {
			return accuracy(gold, predicted) / 2
		})
	},
	"shifting": func(sound tasks.Task) tasks.Task {
		return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
			e, err := sound.Example(r)
			e.Place.Line++
			return e, err
		}}
	},
	"reticent": func(sound tasks.Task) tasks.Task {
		return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
			e, err := sound.Example(r)
			e.Targets = make([]corpus.Target, len(e.Targets))
			return e, err
		}}
	},
	"placeless": func(sound tasks.Task) tasks.Task {
		return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
			e, err := sound.Example(r)
			return e, errorOf(err)
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
}

// terse embeds a task, and has a description of its own.
type terse struct{ tasks.Task }

func (terse) Describe() tasks.Description {
	return tasks.Description{Warnings: func() []string { return nil }}
}

// private has a task in a field that no other package can read.
type private struct{ inner tasks.Task }

func (p private) Example(r corpus.Record) (corpus.Example, error) { return p.inner.Example(r) }
func (p private) Output() *outputs.Kind                           { return p.inner.Output() }
func (p private) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
	return p.inner.Evaluate(gold, predicted)
}

// forwarding embeds a task, and returns its description.
type forwarding struct{ tasks.Task }

func (f forwarding) Describe() tasks.Description { return tasks.DescriptionOf(f.Task) }

func TestATaskThatReturnsTheDescriptionOfTheOneThatItEmbeds(t *testing.T) {
	parttest.Task(t, "forwarding", "")
	parttest.Task(t, "rated", "")
}

// traited are options of a part with traits; traitless have them among their own.
type (
	traited struct {
		Width int `yaml:"width"`
	}
	traitless struct {
		Inner traited `yaml:",inline"`
	}
)

func (traited) Traits() heads.Traits { return heads.Traits{Compares: true} }

func init() {
	tasks.Register("mute", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		return &spoiltTask{Task: tasks.NewClassification(env)}, nil
	})
	tasks.Register("terse", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		return terse{tasks.NewClassification(env)}, nil
	})
	tasks.Register("private", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		return private{tasks.NewClassification(env)}, nil
	})
	tasks.Register("forwarding", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		return forwarding{tasks.NewClassification(env)}, nil
	})
	tasks.Register("traitless", traitless{}, func(_ traitless, env tasks.Env) (tasks.Task, error) {
		return tasks.NewClassification(env), nil
	})
	for name, spoil := range brokenTasks {
		tasks.Register(name, struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
			return spoil(tasks.NewClassification(env)), nil
		})
	}
	tasks.Register("wordy", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		sound := tasks.NewTagging(env)
		return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
			e, err := sound.Example(r)
			for _, t := range outputs.AllAs[outputs.TagsTarget](e.Targets) {
				if t != nil {
					t.Tags = append(t.Tags, "O")
				}
			}
			return e, err
		}}, nil
	})
}
