// Package multitask has the model, made of all parts, its training and its evaluation. It reads no files of
// experiments.
package multitask

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

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

// cachedModel is a model with a cache of its frozen encoder's states; a nil cache for none.
type cachedModel struct {
	*Model
	cache *cache
	ranks *collective.Group // that evaluate together; nil: one process
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

// Frozen reports whether the encoder has no parameter that learns.
func (m *Model) Frozen() bool {
	encoder := m.Encoder.Describe()
	if encoder.Backward == nil {
		return true
	}
	if encoder.Resident != nil {
		return !encoder.Resident.Learns
	}
	for _, w := range EncoderParams(m.Params).All() {
		if !w.Frozen {
			return false
		}
	}
	return true
}

// forwarded is the result of a forward pass of a batch: the nodes of the encoder's states, and the logits of each head
// of the group, task after task, in the order of the examples' targets.
type forwarded struct {
	border []*nn.Node
	logits []heads.Logits
}

// forward runs a batch of group g through the model: encoder, fusion, heads.
func (m cachedModel) forward(p *nn.Pass, g *Group, batch *corpus.Batch) (forwarded, error) {
	layers, err := m.encode(p, g, batch)
	if err != nil {
		return forwarded{}, err
	}
	return m.above(p, g, batch.Tokens.Rows, layers), nil
}

// above runs the encoder's states through fusion and heads.
func (m *Model) above(p *nn.Pass, g *Group, rows nn.Rows, layers [][]float32) (a forwarded) {
	for _, states := range layers {
		a.border = append(a.border, p.Input(states, rows.Tokens(), m.Encoder.Describe().Width)) // [T D]
	}
	shared := nn.Hidden{States: a.border[len(a.border)-1], Rows: rows}
	if m.wanted() == nn.AllLayers {
		shared.Layers = a.border
	}

	for _, task := range g.Tasks {
		hidden := m.Fusion.Fuse(p, shared, task.Name) // [T D]
		for _, head := range task.Heads {
			a.logits = append(a.logits, head.Head.Logits(p, hidden))
		}
	}
	return a
}

func (m *Model) wanted() nn.LayerSet {
	return fusion.DescriptionOf(m.Fusion).Layers
}

// FusionFigures returns the fusion's figures by task, nil if it has none.
func (m *Model) FusionFigures() map[string][]float32 {
	if figures := fusion.DescriptionOf(m.Fusion).Figures; figures != nil {
		return figures()
	}
	return nil
}

// encode returns the batch's states [T D] of the layers that the fusion requires. They come from the cache where there
// is one, unless a head watches the encoder's internal values, or hides tokens. It sets p.Read.
func (m cachedModel) encode(p *nn.Pass, g *Group, batch *corpus.Batch) ([][]float32, error) {
	p.Adapter, p.Read = g.Adapter, nil
	observed, hides := !p.Training && g.observe(p, batch.Tokens.Rows), false
	for _, head := range g.Heads() {
		if head.Head.Describe().Prepare != nil {
			hides = true
		}
	}
	if m.cache == nil || observed || hides {
		if !p.Training {
			p.Read = m.rowsRead(g, batch.Tokens.Rows)
		}
		return m.Encoder.Encode(p, batch.Tokens, m.wanted())
	}
	return m.cache.encode(p, batch)
}

// rowsRead returns the rows of the encoder's last states that the heads of g read, ascending; nil: all.
func (m *Model) rowsRead(g *Group, rows nn.Rows) []int {
	if d := fusion.DescriptionOf(m.Fusion); !d.PerToken || d.Layers != nn.LastLayer {
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

// observe requests what the group's heads watch of the encoder, before rows are encoded for evaluation. It reports
// whether there is such a head.
func (g *Group) observe(p *nn.Pass, rows nn.Rows) (observed bool) {
	for _, head := range g.Heads() {
		if watch := head.Head.Describe().Observe; watch != nil {
			watch(p, rows)
			observed = true
		}
	}
	return observed
}

// prepared returns the batch as the group's heads that prepare batches change it. source returns the random source
// of an example by its index in the batch; nil: nothing is random.
func (g *Group) prepared(batch *corpus.Batch, source func(example int) rand.Source) *corpus.Batch {
	for _, head := range g.Heads() {
		if prepare := head.Head.Describe().Prepare; prepare != nil {
			batch = prepare(batch, source)
		}
	}
	return batch
}

// hiding is the place of the random stream of heads that change batches.
const hiding = "hidden tokens"

// Heads returns the heads of a group in the order of its examples' targets.
func (g *Group) Heads() []Head {
	var all []Head
	for _, task := range g.Tasks {
		all = append(all, task.Heads...)
	}
	return all
}

// tasks returns the names of all tasks, group after group.
func (m *Model) tasks() []string {
	var all []string
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			all = append(all, task.Name)
		}
	}
	return all
}

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

// fitted are parameters that have no gradients: those that are set before evaluations, and those that follow from
// options, such as the weights of labels.
type fitted []*nn.Param

// fitted returns the frozen parameters outside the encoder: some are fitted to training texts or tuned on dev.
func (m *Model) fitted() fitted {
	encoder := EncoderParams(m.Params)
	return slices.DeleteFunc(m.Params.All(), func(w *nn.Param) bool { return !w.Frozen || isIn(encoder, w) })
}

// sums returns checksums of the parameters by their names.
func (f fitted) sums() (map[string]string, error) {
	all := map[string]string{}
	for _, w := range f {
		sum, err := sumParams([]*nn.Param{w})
		if err != nil {
			return nil, fmt.Errorf("%s can no longer be read: %w", w.Name, err)
		}
		all[w.Name] = sum
	}
	return all, nil
}

// keep returns a state in which the parameters whose checksums before training were others have their values of now:
// they follow from what has changed since.
func (f fitted) keep(state []nn.ParamState, were, are map[string]string) []nn.ParamState {
	state = slices.Clone(state)
	for i := range state {
		name := state[i].Name
		at := slices.IndexFunc(f, func(w *nn.Param) bool { return w.Name == name })
		if was, known := were[name]; known && at >= 0 && was != are[name] && len(f[at].Data) == len(state[i].Values) {
			state[i].Values = f[at].Data
		}
	}
	return state
}

// State implements nn.SnapshotStore.
func (f fitted) State() ([]nn.ParamState, error) {
	var all []nn.ParamState
	for _, w := range f {
		all = append(all, nn.ParamState{Name: w.Name, Values: slices.Clone(w.Data)})
	}
	return all, nil
}

// SetState implements nn.SnapshotStore.
func (f fitted) SetState(state []nn.ParamState) error {
	if err := nn.CheckState(f, state); err != nil {
		return err
	}
	for i, w := range f {
		if !slices.Equal(w.Data, state[i].Values) { // unchanged values may be in read-only memory
			copy(w.Data, state[i].Values)
			w.Changed()
		}
	}
	return nil
}
