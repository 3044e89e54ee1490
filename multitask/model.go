// Package multitask has the model, made of all parts: its forward pass, its predictions and its evaluation. What trains
// it is in package train. It reads no files of experiments.
package multitask

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Model is one encoder that all tasks share, the fusion, and the heads of each task.
type Model struct {
	Encoder encoders.Encoder
	Fusion  fusion.Fusion
	Groups  []Group
	Params  nn.Params // of all parts
	// Precision is that in which the encoder multiplies in predictions and evaluations.
	Precision nn.Precision
}

// Cached is a model with a cache of its frozen encoder's states; a nil cache for none.
type Cached struct {
	*Model
	Cache *Cache
	Ranks *collective.Group // that evaluate together; nil: one process
	Mode  encoders.Mode     // of the encoder, but for what Encode sets: the layers, the rows and the adapter
	// Finite makes states that are not finite an error, a *StatesError, where they are computed, not read of the cache.
	Finite bool
}

// Group is the tasks that read the same texts. A batch belongs to one group and is encoded once.
type Group struct {
	Name  string // of its first task
	Tasks []Task
	// Adapter names the changes of the encoder for the group's texts, where it has several; "": none.
	Adapter string
}

// Task is one task on the texts of a group.
type Task struct {
	Name  string
	Type  tasks.Task
	Heads []Head
	// Pairs and Single report that it was trained on pairs of texts only, on single texts only; neither if it is not
	// known, or on both.
	Pairs, Single bool
}

// Head is one head of a task.
type Head struct {
	Name   string
	Head   heads.Head
	Labels *corpus.Labels
	Weight float64 // of its loss
}

// Graph is a batch's graph in its pass, whose Forward computes it: from the nodes of the encoder's states to the logits
// of each head of the group, task after task, in the order of the examples' targets.
type Graph struct {
	Border []*nn.Node // of each layer, [T D]
	group  *Group
	logits []heads.Logits
}

// Build encodes a batch of group g, and builds the graph of fusion and heads over its states.
func (m Cached) Build(p *nn.Pass, g *Group, batch *corpus.Batch) (Graph, error) {
	layers, err := m.Encode(p, g, batch)
	if err != nil {
		return Graph{}, err
	}
	return m.above(p, g, batch.Tokens.Rows, layers), nil
}

// above builds the graph over the encoder's states.
func (m *Model) above(p *nn.Pass, g *Group, rows nn.Rows, layers [][]float32) Graph {
	a := Graph{group: g}
	for _, states := range layers {
		a.Border = append(a.Border, p.Input(states, rows.Tokens(), m.Encoder.Describe().Width)) // [T D]
	}
	shared := nn.Hidden{States: a.Border[len(a.Border)-1], Rows: rows}
	if m.Fusion.Describe().Layers == nn.AllLayers {
		shared.Layers = a.Border
	}

	for _, task := range g.Tasks {
		hidden := m.Fusion.Fuse(p, shared, task.Name) // [T D]
		for _, head := range task.Heads {
			a.logits = append(a.logits, head.Head.Logits(p, hidden))
		}
	}
	return a
}

// Encode returns the batch's states [T D] of the layers that the fusion requires. They come from the cache where there
// is one, unless a head observes the encoder's internal values, or hides tokens.
func (m Cached) Encode(p *nn.Pass, g *Group, batch *corpus.Batch) ([][]float32, error) {
	mode := m.Mode
	mode.Layers, mode.Adapter = m.Fusion.Describe().Layers, g.Adapter
	observed := !p.Training && g.observe(p, batch.Tokens.Rows)
	hides := slices.ContainsFunc(g.Heads(), func(h Head) bool { return h.Head.Describe().Prepare != nil })
	if m.Cache == nil || observed || hides {
		if !p.Training || m.Encoder.Describe().Resident != nil {
			mode.Read = m.rowsRead(g, batch.Tokens.Rows)
		}
		layers, err := m.Encoder.Encode(p, batch.Tokens, mode)
		if err == nil && m.Finite {
			err = m.checkStates(batch, layers, mode.Read)
		}
		return layers, err
	}
	return m.Cache.encode(p, batch, mode)
}

// rowsRead returns the rows of the encoder's last states that the heads of g read, ascending; nil: all.
func (m *Model) rowsRead(g *Group, rows nn.Rows) []int {
	if d := m.Fusion.Describe(); !d.PerToken || d.Layers != nn.LastLayer {
		return nil
	}
	read, count := make([]bool, rows.Tokens()), 0
	for _, head := range g.Heads() {
		reads := head.Head.Describe().Reads
		if reads == nil {
			return nil
		}
		own := reads(rows)
		if own == nil {
			return nil
		}
		for _, row := range own {
			if !read[row] {
				read[row], count = true, count+1
			}
		}
	}
	union := make([]int, 0, count)
	for row, is := range read {
		if is {
			union = append(union, row)
		}
	}
	return union
}

// observe requests what the group's heads observe of the encoder, before rows are encoded for evaluation. It reports
// whether there is such a head.
func (g *Group) observe(p *nn.Pass, rows nn.Rows) (observed bool) {
	for _, head := range g.Heads() {
		if observe := head.Head.Describe().Observe; observe != nil {
			observe(p, rows)
			observed = true
		}
	}
	return observed
}

// Prepared returns the batch as the group's heads that prepare batches change it. source returns the random source
// of an example by its index in the batch; nil: nothing is random.
func (g *Group) Prepared(batch *corpus.Batch, source func(example int) rand.Source) *corpus.Batch {
	for _, head := range g.Heads() {
		if prepare := head.Head.Describe().Prepare; prepare != nil {
			batch = prepare(batch, source)
		}
	}
	return batch
}

// HiddenTokens is the place of the random stream of heads that change batches.
const HiddenTokens = "hidden tokens"

// HeadName names a head of a task.
type HeadName struct{ Task, Head string }

// Loss is the loss of one head.
type Loss struct {
	Task, Head string
	Weight     float64 // of the head, from the experiment
	Factor     float64 // of its mean in the loss that a step minimised; 0 in evaluations
	Sum        float64 // over the labelled units
	Units      float64 // number of labelled units
}

// Mean returns the mean loss of a labelled unit, 0 without labelled units.
func (l Loss) Mean() float64 {
	if l.Units == 0 {
		return 0
	}
	return l.Sum / l.Units
}

// HeadName returns the name of the loss's head.
func (l Loss) HeadName() HeadName { return HeadName{l.Task, l.Head} }

// Losses returns a Loss for each head of a group, with the number of labelled units in batches.
func (g *Group) Losses(batches ...*corpus.Batch) []Loss {
	var all []Loss
	for _, task := range g.Tasks {
		for _, head := range task.Heads {
			l := Loss{Task: task.Name, Head: head.Name, Weight: head.Weight}
			for _, batch := range batches {
				l.Units += head.Head.Units(gold(batch.Examples, len(all)))
			}
			all = append(all, l)
		}
	}
	return all
}

// LossNodes adds the node of each head's loss over the batch to the graph, nil without labelled units.
func (a Graph) LossNodes(p *nn.Pass, batch *corpus.Batch) []*nn.Node {
	var nodes []*nn.Node
	for h, head := range a.group.Heads() {
		nodes = append(nodes, head.Head.Loss(p, a.logits[h], gold(batch.Examples, h)))
	}
	return nodes
}

// LossValue returns the value of a loss after a forward pass.
func LossValue(loss *nn.Node) float64 { return float64(nn.Values(loss)[0]) }

// gold returns the targets of examples for the group's head h, nil where there is none.
func gold(examples []*corpus.Example, h int) []corpus.Target {
	targets := make([]corpus.Target, len(examples))
	for i, e := range examples {
		if e.Targets != nil {
			targets[i] = e.Targets[h]
		}
	}
	return targets
}

// HeadNumbers returns the index of each head.
func HeadNumbers(heads []HeadName) map[HeadName]int {
	numbers := map[HeadName]int{}
	for i, head := range heads {
		numbers[head] = i
	}
	return numbers
}

// Heads returns the heads of a group in the order of its examples' targets.
func (g *Group) Heads() []Head {
	var all []Head
	for _, task := range g.Tasks {
		all = append(all, task.Heads...)
	}
	return all
}

// types returns the task that each head belongs to.
func (g *Group) types() []tasks.Task {
	var types []tasks.Task
	for _, task := range g.Tasks {
		for range task.Heads {
			types = append(types, task.Type)
		}
	}
	return types
}

// FusionFigures returns the fusion's figures by task, nil if it has none.
func (m *Model) FusionFigures() map[string][]float32 {
	if figures := m.Fusion.Describe().Figures; figures != nil {
		return figures()
	}
	return nil
}

// Frozen reports whether the encoder has no parameter that learns.
func (m *Model) Frozen() bool {
	encoder := m.Encoder.Describe()
	if encoder.Backward == nil {
		return true
	}
	if encoder.Resident != nil {
		return !encoder.Resident.Learns
	}
	return !slices.ContainsFunc(EncoderParams(m.Params).All(), func(w *nn.Param) bool { return !w.Frozen })
}

// TaskNames returns the names of all tasks, group after group.
func (m *Model) TaskNames() []string {
	var all []string
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			all = append(all, task.Name)
		}
	}
	return all
}

// Group returns the group that a task belongs to, and the task's index in it.
func (m *Model) Group(task string) (*Group, int, error) {
	var names []string
	for g := range m.Groups {
		for t, have := range m.Groups[g].Tasks {
			if have.Name == task {
				return &m.Groups[g], t, nil
			}
			names = append(names, have.Name)
		}
	}
	return nil, 0, errors.New(plugin.Unknown("task", task, names))
}

// HeadNames returns the names of all heads, group after group.
func (m *Model) HeadNames() []HeadName {
	var names []HeadName
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				names = append(names, HeadName{task.Name, head.Name})
			}
		}
	}
	return names
}

// EncoderParams returns the encoder's subtree of a model's parameters.
func EncoderParams(root nn.Params) nn.Params { return root.In("encoder") }

// FusionParams returns the fusion's subtree of a model's parameters.
func FusionParams(root nn.Params) nn.Params { return root.In("fusion") }

// HeadParams returns the subtree of a task's head in a model's parameters.
func HeadParams(root nn.Params, task, head string) nn.Params {
	return root.In("heads").In(task).In(head)
}

// AdapterParams returns the subtree of an adapter of the encoder in a model's parameters.
func AdapterParams(root nn.Params, adapter string) nn.Params {
	return encoders.AdapterParams(EncoderParams(root), adapter)
}

// AllParams returns all parameters, also those of an encoder with a memory of its own.
func (m *Model) AllParams() []*nn.Param {
	return append(m.Params.All(), m.ResidentParams()...)
}

// ResidentParams returns the parameters of an encoder with a memory of its own, none of another.
func (m *Model) ResidentParams() []*nn.Param {
	if resident := m.Encoder.Describe().Resident; resident != nil {
		return resident.Params
	}
	return nil
}

// SharedParams returns the parameters in the tree that all tasks share.
func (m *Model) SharedParams() []*nn.Param {
	return append(EncoderParams(m.Params).All(), m.Fusion.Describe().Shared...)
}

// IsIn reports whether a parameter is in a subtree.
func IsIn(at nn.Params, w *nn.Param) bool { return strings.HasPrefix(w.Name, at.Path()+".") }

// Levels returns the encoder's, or an error if it does not learn or does not list its layers.
func (m *Model) Levels() ([][]*nn.Param, error) {
	levels := m.Encoder.Describe().Levels
	switch {
	case m.Frozen():
		return nil, errors.New("the encoder learns nothing; want a model.freeze that leaves layers to learn")
	case levels == nil:
		return nil, errors.New("the encoder does not list its layers")
	}
	return levels, nil
}
