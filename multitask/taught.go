package multitask

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
)

// Taught is what a training reads of a model whose tasks have teachers: groups whose texts teachers label for each
// other are one, so that a batch has texts of all of them and each text trains the heads of all. Nothing else changes:
// evaluations and predictions are those of the model's own groups.
type Taught struct {
	Groups []Group // in place of the model's; a head that has a teacher is a heads.NewStudent
	Data   []Data  // of Groups
	Lesson *heads.Lesson
	// Start is the weight of a teacher's answer beside a gold label, which falls to 0 over the training with Anneal.
	Start  float64
	Anneal bool
	// States is a heads.NewStates that each group made by Together has, as the head of a last task called StatesTask;
	// nil: none.
	States heads.Head
	// Sum describes the answers, for a snapshot.
	Sum string
}

// Model returns a model as steps read it, m where nothing is taught: t is nil.
func (t *Taught) Model(m *Model) *Model {
	if t == nil {
		return m
	}
	taught := *m
	taught.Groups = t.Groups
	return &taught
}

// Answers has what teachers say of the training examples of a group.
type Answers interface {
	// Answer sets what the teacher of the group's head h says of example e, which has a number among the group's
	// training examples, in its target. It is located in e.
	Answer(h, number int, e *corpus.Example, t *heads.Taught) error
}

// Progress sets how heads learn after a fraction of the training.
func (t *Taught) Progress(done float64) {
	t.Lesson.Weight = t.Start
	if t.Anneal {
		t.Lesson.Weight = t.Start * (1 - done)
	}
}

// Together adds a group made of some of the model's, which are read together, and its data, after which come examples
// without targets. Heads that hasTeacher reports are students. adapt, which may be nil, changes the copies of the
// examples that the group reads.
func (t *Taught) Together(m *Model, data []Data, parts []int, unlabelled []*corpus.Example,
	hasTeacher func(HeadName) bool, adapt func(e *corpus.Example)) {
	group := Group{Name: m.Groups[parts[0]].Name, Adapter: m.Groups[parts[0]].Adapter}
	var students []bool
	for _, part := range parts {
		for _, task := range m.Groups[part].Tasks {
			own := task
			own.Heads = make([]Head, len(task.Heads))
			for h, head := range task.Heads {
				students = append(students, hasTeacher(HeadName{task.Name, head.Name}))
				if students[len(students)-1] {
					head.Head = heads.NewStudent(head.Head, t.Lesson)
				}
				own.Heads[h] = head
			}
			group.Tasks = append(group.Tasks, own)
		}
	}

	if t.States != nil {
		head := Head{Name: StatesTask, Head: heads.NewStudent(t.States, t.Lesson), Weight: 1}
		group.Tasks = append(group.Tasks, Task{Name: StatesTask, Heads: []Head{head}})
		students = append(students, true)
	}

	joined := &joined{students: students, adapt: adapt}
	first := 0
	for _, part := range parts {
		joined.add(data[part], first)
		first += len(m.Groups[part].Heads())
	}
	joined.add(Data{Train: unlabelled}, 0)
	t.Groups, t.Data = append(t.Groups, group), append(t.Data, joined.data())
}

// StatesTask is the name, which no task can have, of what learns the states of a teacher's encoder.
const StatesTask = "(states)"

// StatesParams returns the subtree of what learns them in a model's parameters. It is in no saved model.
func StatesParams(root nn.Params) nn.Params { return root.In(StatesTask) }

// joined is the training examples of several groups as those of one.
type joined struct {
	parts    []joinedPart
	students []bool // by head of the joined group
	adapt    func(e *corpus.Example)
}

type joinedPart struct {
	kept   []*corpus.Example
	stream Stream // in place of kept; nil: kept has all
	length int    // number of examples
	first  int    // number of its first head in the joined group
}

func (j *joined) add(data Data, first int) {
	part := joinedPart{stream: data.Stream, first: first}
	for _, e := range data.Train {
		part.kept = append(part.kept, j.example(e, first))
	}
	part.length = len(data.Lengths())
	j.parts = append(j.parts, part)
}

func (j *joined) data() Data {
	var d Data
	for _, part := range j.parts {
		if part.stream != nil {
			return Data{Stream: j}
		}
		d.Train = append(d.Train, part.kept...)
	}
	return d
}

// example returns a copy of an example of a part whose first head has a number in the joined group, with a target for
// each head of that.
func (j *joined) example(e *corpus.Example, first int) *corpus.Example {
	own := *e
	own.Targets = make([]corpus.Target, len(j.students))
	copy(own.Targets[first:], e.Targets)
	for h, student := range j.students {
		if student {
			own.Targets[h] = &heads.Taught{Gold: own.Targets[h]}
		}
	}
	if j.adapt != nil {
		j.adapt(&own)
	}
	return &own
}

// Lengths implements Stream.
func (j *joined) Lengths() (all []int32) {
	for _, part := range j.parts {
		all = append(all, Data{Train: part.kept, Stream: part.stream}.Lengths()...)
	}
	return all
}

// At implements Stream.
func (j *joined) At(number int) (*corpus.Example, error) {
	for _, part := range j.parts {
		if number >= part.length {
			number -= part.length
			continue
		}
		if part.stream == nil {
			return part.kept[number], nil
		}
		e, err := part.stream.At(number)
		if err != nil {
			return nil, err
		}
		return j.example(e, part.first), nil
	}
	panic(fmt.Sprintf("multitask: example %d is in no part", number))
}

// Sum implements Stream. Those of the parts say more: see Taught.Sum.
func (j *joined) Sum() string { return "" }
