// Package multitask is the model of all parts together, and how it is trained and judged. It knows no files.
package multitask

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/tasks"
)

// Model is one encoder that all tasks share, and what each task makes of its states.
type Model struct {
	Encoder encoders.Encoder
	Fusion  fusion.Fusion
	Groups  []Group
	Params  nn.Params // of all parts

	cache map[*corpus.Example][][]float32 // a frozen encoder's states of each layer asked for, [L D]
}

// Group is the tasks that read the same texts: a batch is one group's and is encoded once.
type Group struct {
	Name  string // of its first task
	Tasks []Task
}

// Task is what is asked about the texts of a group.
type Task struct {
	Name  string
	Kind  tasks.Task
	Heads []Head
}

// Head is one question of a task.
type Head struct {
	Name   string
	Head   heads.Head
	Labels *corpus.Labels
	Weight float64 // of its loss
}

// Frozen tells whether the encoder learns nothing.
func (m *Model) Frozen() bool {
	if _, learns := m.Encoder.(encoders.Trainable); !learns {
		return true
	}
	for _, w := range m.Params.In("encoder").All() {
		if !w.Frozen {
			return false
		}
	}
	return true
}

// answers is what one pass of a batch gives: the nodes at the encoder's border, and the scores of each head of the
// group, task after task, as the targets of its examples are ordered.
type answers struct {
	border []*nn.Node
	scores []heads.Scores
}

// forward takes a batch of group g through the model: encoder, fusion, heads.
func (m *Model) forward(p *nn.Pass, g *Group, batch *corpus.Batch) (answers, error) {
	layers, err := m.encode(p, batch)
	if err != nil {
		return answers{}, err
	}
	var a answers
	for _, states := range layers {
		a.border = append(a.border, p.Input(states, batch.Tokens.Rows.Tokens(), m.Encoder.Width())) // [T D]
	}
	shared := nn.Hidden{States: a.border[len(a.border)-1], Rows: batch.Tokens.Rows}
	if m.wanted() == nn.AllLayers {
		shared.Layers = a.border
	}

	for _, task := range g.Tasks {
		seen := m.Fusion.Fuse(p, shared, task.Name) // [T D]
		for _, head := range task.Heads {
			a.scores = append(a.scores, head.Head.Scores(p, seen))
		}
	}
	return a, nil
}

func (m *Model) wanted() nn.Wanted {
	if f, ok := m.Fusion.(fusion.Layered); ok {
		return f.Wanted()
	}
	return nn.LastLayer
}

// encode gives the batch's states [T D] of the layers that the fusion wants, from the cache where there is one.
func (m *Model) encode(p *nn.Pass, batch *corpus.Batch) ([][]float32, error) {
	if m.cache == nil {
		return m.Encoder.Encode(p, batch.Tokens, m.wanted())
	}

	// encode what is seen for the first time
	var fresh []*corpus.Example
	for _, e := range batch.Examples {
		if m.cache[e] == nil {
			fresh = append(fresh, e)
			m.cache[e] = [][]float32{}
		}
	}
	if len(fresh) > 0 {
		packed := corpus.Pack(fresh)
		layers, err := m.Encoder.Encode(p, packed.Tokens, m.wanted())
		if err != nil {
			return nil, err
		}
		for b, e := range fresh {
			from, to := packed.Tokens.Rows.Starts[b]*m.Encoder.Width(), packed.Tokens.Rows.Starts[b+1]*m.Encoder.Width()
			for _, states := range layers {
				m.cache[e] = append(m.cache[e], append([]float32(nil), states[from:to]...))
			}
		}
	}

	// lay the batch together
	layers := make([][]float32, len(m.cache[batch.Examples[0]]))
	for l := range layers {
		states := p.Floats(batch.Tokens.Rows.Tokens() * m.Encoder.Width())
		for b, e := range batch.Examples {
			copy(states[batch.Tokens.Rows.Starts[b]*m.Encoder.Width():], m.cache[e][l])
		}
		layers[l] = states
	}
	return layers, nil
}

// heads lists the heads of a group in the order of its examples' targets.
func (g *Group) heads() []Head {
	var all []Head
	for _, task := range g.Tasks {
		all = append(all, task.Heads...)
	}
	return all
}

// gold lists the targets of a batch for the group's head number h.
func gold(batch *corpus.Batch, h int) []corpus.Target {
	targets := make([]corpus.Target, len(batch.Examples))
	for b, e := range batch.Examples {
		if e.Targets != nil {
			targets[b] = e.Targets[h]
		}
	}
	return targets
}

// Group returns the group that task belongs to, and the task's place in it.
func (m *Model) Group(task string) (*Group, int, error) {
	for g := range m.Groups {
		for t, have := range m.Groups[g].Tasks {
			if have.Name == task {
				return &m.Groups[g], t, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("no task %q", task)
}
