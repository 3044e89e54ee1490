package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Taught is the target of a head that has a teacher, in training.
type Taught struct {
	Gold   corpus.Target // nil: the example has no label
	Answer *Answer       // of the teacher, located; nil: none
	// Predicted is the teacher's prediction as a target, where that or the head has no Soft; nil: none.
	Predicted corpus.Target
}

// Lesson is how the heads of a training learn from their teachers.
type Lesson struct {
	Temperature float64 // that divides the logits of both
	Weight      float64 // of the teacher's answer for an example that has a gold label, in [0,1]
}

// NewStudent returns a head whose targets are *Taught, nil for none. Its loss of an example is, with the weight w of
// the lesson, the loss l against the gold label and s against the teacher's answer,
//
//	(1-w)·l + w·s    of an example with both (Hinton et al. 2015, section 2; Clark et al. 2019, "BAM!", equation 2)
//	l, or s          of one that has a gold label alone, or an answer alone
//
// and the units are those of gold labels and, where there is none, of answers. A gold label without a unit, such as the
// tags of no word, is none. Without a Soft of both heads that of the student learns what the teacher predicts for an
// example without a gold label, as if it were one.
func NewStudent(h Head, lesson *Lesson) Head { return student{h, lesson} }

type student struct {
	Head
	lesson *Lesson
}

// Units implements Objective.
func (s student) Units(gold []corpus.Target) float64 {
	t := s.divided(gold)
	soft := s.Describe().Soft
	if soft == nil {
		return s.Head.Units(t.known)
	}
	return s.Head.Units(t.gold) + s.Head.Units(t.both) + soft.Units(t.alone)
}

// Loss implements Objective.
func (s student) Loss(p *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	t := s.divided(gold)
	soft := s.Describe().Soft
	if soft == nil {
		return s.Head.Loss(p, logits, t.known)
	}
	factors, nodes := []float64{1, 1}, []*nn.Node{
		s.Head.Loss(p, logits, t.gold), soft.Loss(p, logits, t.alone, s.lesson.Temperature),
	}
	if w := s.lesson.Weight; w < 1 {
		factors, nodes = append(factors, 1-w), append(nodes, s.Head.Loss(p, logits, t.both))
	}
	if w := s.lesson.Weight; w > 0 {
		factors = append(factors, w)
		nodes = append(nodes, soft.Loss(p, logits, t.beside, s.lesson.Temperature))
	}
	return nn.LinearCombination(factors, nodes)
}

// division is the targets of a batch by what there is of each example; each list has an element for each.
type division struct {
	gold   []corpus.Target // of examples without an answer, or what the teacher predicts
	both   []corpus.Target // gold ones of examples that have an answer too
	beside []*Answer       // those
	alone  []*Answer       // of examples without a gold label
	known  []corpus.Target // gold ones, or what the teacher predicts
}

func (s student) divided(targets []corpus.Target) division {
	n := len(targets)
	d := division{make([]corpus.Target, n), make([]corpus.Target, n), make([]*Answer, n), make([]*Answer, n),
		make([]corpus.Target, n)}
	for i, target := range targets {
		t, _ := target.(*Taught)
		switch {
		case t == nil:
		case t.Gold == nil || s.Head.Units([]corpus.Target{t.Gold}) == 0:
			d.alone[i], d.gold[i], d.known[i] = t.Answer, t.Predicted, t.Predicted
		case t.Answer == nil:
			d.gold[i], d.known[i] = t.Gold, t.Gold
		default:
			d.both[i], d.beside[i], d.known[i] = t.Gold, t.Answer, t.Gold
		}
	}
	return d
}
