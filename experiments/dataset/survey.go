package dataset

import (
	"math"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
)

// survey is what is known of a group's training examples as a whole before they are encoded.
type survey struct {
	kinds      []*outputs.Kind // of the heads
	examples   int
	unlabelled int // without a target for any head
	paired     int // with a pair
	empty      int // with an empty text
	heads      []headSurvey
	sums       textSums
}

// headSurvey is what is known of the targets of a head.
type headSurvey struct {
	labelled int            // examples with a target
	labels   map[string]int // how often each label occurs
}

// newSurvey returns the survey of no examples of a group.
func (d *Dataset) newSurvey(group *Group) *survey {
	s := &survey{kinds: d.kinds(group)}
	for range s.kinds {
		s.heads = append(s.heads, headSurvey{labels: map[string]int{}})
	}
	s.sums.labels = make([][]uint32, len(s.kinds))
	return s
}

// kinds returns the kinds of outputs of a group's heads.
func (d *Dataset) kinds(group *Group) []*outputs.Kind {
	var kinds []*outputs.Kind
	for _, of := range d.Heads(group) {
		kinds = append(kinds, d.Tasks[of.Number].Output())
	}
	return kinds
}

// add adds the next example.
func (s *survey) add(e *corpus.Example) {
	s.examples++
	labelled := false
	for h, target := range e.Targets {
		if target != nil {
			s.heads[h].labelled++
			labelled = true
		}
		s.kinds[h].Names(target, func(name *string) { s.heads[h].labels[*name]++ })
	}
	if !labelled {
		s.unlabelled++
	}
	if e.Paired {
		s.paired++
	}
	if isEmpty(e) {
		s.empty++
	}
	s.sums.add(s.kinds, e)
}

// isEmpty reports whether a text of an example has nothing but white space.
func isEmpty(e *corpus.Example) bool {
	return strings.TrimSpace(e.Text) == "" || e.Paired && strings.TrimSpace(e.Pair) == ""
}

// survey surveys the training examples of a group, if that is not done.
func (d *Dataset) survey(group *Group) error {
	if group.train != nil {
		return nil
	}
	d.begin("labels of " + TrainingFile(d.Experiment.Tasks[group.Tasks[0]].Data).Name)
	s := d.newSurvey(group)
	err := d.eachTraining(group, func(e *corpus.Example) error {
		s.add(e)
		return nil
	})
	group.train = s
	return err
}

// Paired reports whether all training examples of the group are pairs of texts, and whether none is. Without training
// examples both are false.
func (g *Group) Paired() (all, none bool) {
	if g.train == nil || g.train.examples == 0 {
		return false, false
	}
	return g.train.paired == g.train.examples, g.train.paired == 0
}

// find returns the group of a head, and the head's index in the examples' Targets.
func (d *Dataset) find(name multitask.HeadName) (group *Group, h int) {
	for g := range d.Groups {
		for h, of := range d.Heads(&d.Groups[g]) {
			if (multitask.HeadName{Task: of.Task.Name, Head: of.Head.Name}) == name {
				return &d.Groups[g], h
			}
		}
	}
	panic("dataset: no head " + name.Head + " of task " + name.Task)
}

// Labelled returns the number of training examples with a target for a head.
func (d *Dataset) Labelled(name multitask.HeadName) int {
	group, h := d.find(name)
	if group.train == nil {
		return 0
	}
	return group.train.heads[h].labelled
}

// EachTarget calls visit with the place and the target for a head of each training example, in their order.
func (d *Dataset) EachTarget(name multitask.HeadName, visit func(at corpus.Place, t corpus.Target)) error {
	group, h := d.find(name)
	d.begin("targets of " + TrainingFile(d.Experiment.Tasks[group.Tasks[0]].Data).Name)
	return d.eachTraining(group, func(e *corpus.Example) error {
		visit(e.Place, e.Targets[h])
		return nil
	})
}

// eachTraining calls visit with each training example of a group, in their order. The numbers of labels are set if they
// are known; the examples may not be encoded.
func (d *Dataset) eachTraining(group *Group, visit func(e *corpus.Example) error) error {
	if group.Stream != nil {
		return group.Stream.each(visit)
	}
	for _, e := range group.Examples[config.Train] {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// Statistics summarises the training data of a head; without training data it is empty.
func (d *Dataset) Statistics(name multitask.HeadName) heads.Training {
	group, h := d.find(name)
	labels := len(d.Labels[name].Names())
	if group.Stream != nil {
		return group.Stream.encoded.Statistics[h]
	}
	kind, s := d.kinds(group)[h], newStatistics(labels)
	for _, e := range group.Examples[config.Train] {
		s.add(kind.Count(e.Targets[h]))
	}
	return s.training()
}

// statistics adds up the targets of a head.
type statistics struct {
	counts  heads.Training
	numbers []float64
	sum     float64 // of numbers
}

// newStatistics returns the statistics of no target of a head with so many labels.
func newStatistics(labels int) *statistics {
	return &statistics{counts: heads.Training{Counts: make([]int, labels), Deviation: 1}}
}

// add adds a target's contribution.
func (s *statistics) add(c outputs.Count) {
	s.counts.Units += c.Units
	for _, id := range c.Labels {
		if id >= 0 {
			s.counts.Counts[id]++
		}
	}
	if c.Number != nil {
		s.numbers = append(s.numbers, *c.Number)
		s.sum += *c.Number
	}
}

// training returns the statistics with the mean and the deviation of numbers.
func (s *statistics) training() heads.Training {
	t := s.counts
	if t.Units == 0 {
		return t
	}
	t.Mean = s.sum / float64(t.Units)

	squares := 0.0
	for _, v := range s.numbers {
		squares += (v - t.Mean) * (v - t.Mean)
	}
	// rounding may leave squares above 0 for equal numbers
	if len(s.numbers) > 0 && slices.Min(s.numbers) < slices.Max(s.numbers) {
		t.Deviation = math.Sqrt(squares / float64(t.Units))
	}
	return t
}

// isFitted reports whether a head is fitted to training texts.
func isFitted(head config.Head) bool { return heads.TraitsOf(head.Part.Options).Fitted }
