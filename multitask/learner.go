package multitask

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
)

// Learner trains a model on batches that its caller chooses, where Train has a plan's sampler choose them: for
// measuring what a step costs.
type Learner struct {
	learner *learner
	state   State
}

// NewLearner returns a learner of m that takes at most so many steps, the rate going down to 0 as in Train. Of the plan
// it heeds what updates the parameters: seed, rate, decay, warm-up, clipping and weighting; and how the
// encoder computes.
func NewLearner(m *Model, plan Plan, steps int) *Learner {
	return &Learner{newLearner(m, plan, steps), State{Last: -1}}
}

// Step updates the model once, by one batch of a group: examples that are encoded and whose targets are numbered.
func (l *Learner) Step(group int, examples []*corpus.Example) (Step, error) {
	if l.state.Step == l.learner.steps {
		panic(fmt.Sprintf("multitask: step %d of %d", l.state.Step+1, l.learner.steps))
	}
	report, err := l.learner.step(l.state, []draw{{group, corpus.Pack(examples)}})
	if err != nil {
		return report, fmt.Errorf("step %d: %w", l.state.Step+1, err)
	}
	l.state.Step++
	l.state.Last = group
	return report, nil
}
