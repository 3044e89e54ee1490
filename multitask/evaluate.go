package multitask

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// GroupMetrics are the metrics of a group's tasks on some examples.
type GroupMetrics struct {
	Tasks []TaskMetrics
	// AllRight is the fraction of examples with all heads right, among those labelled for all heads; nil where fewer
	// than two heads count. Heads whose predictions are not right or wrong, such as numbers, do not count.
	AllRight *float64
}

// Exact returns the names of the tasks that AllRight counts.
func (g GroupMetrics) Exact() []string {
	var names []string
	for _, task := range g.Tasks {
		if task.Exact {
			names = append(names, task.Task)
		}
	}
	return names
}

// TaskMetrics are the metrics of one task's heads.
type TaskMetrics struct {
	Task     string
	Exact    bool // its predictions are right or wrong: AllRight counts them
	Examples int  // labelled for at least one of the heads
	Heads    []HeadMetrics
}

// HeadMetrics are the metrics of one head.
type HeadMetrics struct {
	Head     string
	Examples int // labelled for it
	Loss     Loss
	Metrics  []tasks.Metric // the main one first; none without labelled examples
	Tables   *tasks.Tables  // by label; nil for a task without labels, and without labelled examples
}

// Evaluate returns the metrics of group g on examples, whose Windows and ids of Targets are set. batchSize and
// batchTokens are those of training: without gradients, batches twice as large fit. done, if it is not nil, is called
// after each batch with its number of examples.
func (m *Model) Evaluate(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	done func(n int)) (GroupMetrics, error) {
	prepared, predicted, losses, err := cachedModel{Model: m}.predictAll(ctx, g, examples, batchSize, batchTokens, done)
	if err != nil {
		return GroupMetrics{}, err
	}
	return g.judge(prepared, predicted, losses), nil
}

// predictAll returns the predictions of group g for examples, [heads][examples], and its losses. prepared are the
// examples as they were read: heads that change batches (heads.Preparer) set their targets there.
func (m cachedModel) predictAll(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	done func(n int)) (prepared []*corpus.Example, predicted [][]corpus.Prediction, losses []Loss, err error) {
	losses = g.losses()
	prepared, predicted = slices.Clone(examples), make([][]corpus.Prediction, len(losses))
	for h := range predicted {
		predicted[h] = make([]corpus.Prediction, len(examples))
	}
	err = m.forEachBatch(ctx, g, examples, batchSize, batchTokens,
		func(pass *nn.Pass, numbers []int, batch *corpus.Batch, a forwarded) error {
			nodes := g.lossNodes(pass, a, batch)
			if err := pass.Forward(); err != nil {
				return err
			}
			labelled := g.losses(batch)
			for h, predictions := range a.predictions(g, batch.Examples) {
				losses[h].Units += labelled[h].Units
				if nodes[h] != nil {
					losses[h].Sum += float64(nn.Values(nodes[h])[0])
				}
				for i, n := range numbers {
					prepared[n], predicted[h][n] = batch.Examples[i], predictions[i]
				}
			}
			if done != nil {
				done(len(numbers))
			}
			return nil
		})
	if err != nil {
		return nil, nil, nil, err
	}
	for _, l := range losses {
		if math.IsNaN(l.Sum) || math.IsInf(l.Sum, 0) {
			return nil, nil, nil, fmt.Errorf("task %q: the loss of head %q is not finite", l.Task, l.Head)
		}
	}
	return prepared, predicted, losses, nil
}

// forEachBatch runs examples through the model in batches, without learning. It calls visit for each batch, before its
// pass's Forward, with the indexes of its examples.
func (m cachedModel) forEachBatch(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	visit func(pass *nn.Pass, numbers []int, batch *corpus.Batch, a forwarded) error) error {
	pass := nn.NewPass(0)
	_, bytes := m.Largest(EvaluationSizes(examples, batchSize, batchTokens), encoders.Load{})
	pass.Reserve(Reserve(bytes))
	for _, numbers := range evaluationBatches(lengths(examples), batchSize, batchTokens) {
		if err := ctx.Err(); err != nil {
			return err
		}
		pass.Reset(0)
		// An example's random stream is a function of its index, so that the same tokens are hidden in any batch.
		batch := g.prepared(corpus.Pack(pick(examples, numbers)), func(example int) rand.Source {
			return rand.NewPCG(nn.Key(0, 0, hiding), uint64(numbers[example]))
		})
		a, err := m.forward(pass, g, batch)
		if err != nil {
			return err
		}
		if err := visit(pass, numbers, batch, a); err != nil {
			return err
		}
	}
	return nil
}

// evaluationBatches divides examples of the given lengths, in tokens, into batches; batchSize and batchTokens are those
// of training.
func evaluationBatches(lengths []int, batchSize, batchTokens int) [][]int {
	return corpus.Batches(lengths, twice(batchSize), twice(batchTokens), nil)
}

// twice returns 2n, or math.MaxInt on overflow.
func twice(n int) int { return n + min(n, math.MaxInt-n) }

// judge compares predictions [heads][examples] with the examples' targets.
func (g *Group) judge(examples []*corpus.Example, predicted [][]corpus.Prediction, losses []Loss) GroupMetrics {
	var metrics GroupMetrics
	h := 0
	for _, task := range g.Tasks {
		ts := TaskMetrics{Task: task.Name, Exact: task.Kind.Output().Exact()}
		for i := range examples {
			if slices.ContainsFunc(examples[i].Targets[h:h+len(task.Heads)], labelled) {
				ts.Examples++
			}
		}
		for _, head := range task.Heads {
			var gold []corpus.Target
			var predictions []corpus.Prediction
			for i, e := range examples {
				if labelled(e.Targets[h]) {
					gold = append(gold, e.Targets[h])
					predictions = append(predictions, predicted[h][i])
				}
			}
			judged := HeadMetrics{Head: head.Name, Examples: len(gold), Loss: losses[h]}
			if len(gold) > 0 {
				judged.Metrics = task.Kind.Evaluate(gold, predictions)
				if reporter, ok := task.Kind.(tasks.LabelReporter); ok {
					tables := reporter.Tables(gold, predictions)
					judged.Tables = &tables
				}
			}
			ts.Heads = append(ts.Heads, judged)
			h++
		}
		metrics.Tasks = append(metrics.Tasks, ts)
	}
	if exact := g.Exact(); len(exact) > 1 {
		metrics.AllRight = g.allRight(examples, predicted, exact)
	}
	return metrics
}

// Exact returns the indexes of the heads whose predictions are right or wrong.
func (g *Group) Exact() []int {
	var exact []int
	for h, kind := range g.kinds() {
		if kind.Exact() {
			exact = append(exact, h)
		}
	}
	return exact
}

// kinds returns each head's kind of outputs.
func (g *Group) kinds() []*outputs.Kind {
	var kinds []*outputs.Kind
	for _, task := range g.Tasks {
		for range task.Heads {
			kinds = append(kinds, task.Kind.Output())
		}
	}
	return kinds
}

// labelled reports whether there is a target.
func labelled(t corpus.Target) bool { return t != nil }

// allRight returns the fraction of examples for which all of the given heads are right, among those labelled for all of
// them; nil if there are none.
func (g *Group) allRight(examples []*corpus.Example, predicted [][]corpus.Prediction, heads []int) *float64 {
	right, all, kinds := 0, 0, g.kinds()
	for i, e := range examples {
		if slices.ContainsFunc(heads, func(h int) bool { return !labelled(e.Targets[h]) }) {
			continue
		}
		all++
		if !slices.ContainsFunc(heads, func(h int) bool { return !kinds[h].Right(e.Targets[h], predicted[h][i]) }) {
			right++
		}
	}
	if all == 0 {
		return nil
	}
	fraction := float64(right) / float64(all)
	return &fraction
}

// tune makes the heads of g that are heads.Tuners choose their thresholds by their predictions on dev, which are then
// decided again.
func (g *Group) tune(dev []*corpus.Example, predicted [][]corpus.Prediction) {
	kinds := g.kinds()
	for h, head := range g.Heads() {
		tuner, tunes := head.Head.(heads.Tuner)
		if !tunes {
			continue
		}
		gold := make([]corpus.Target, len(dev))
		for i, e := range dev {
			gold[i] = e.Targets[h]
		}
		tuner.Tune(gold, predicted[h])
		for i := range predicted[h] {
			kinds[h].NamePrediction(predicted[h][i], dev[i], head.Labels)
		}
	}
}

// evaluateAll evaluates all groups on dev, after tuning the heads that are heads.Tuners.
func (m cachedModel) evaluateAll(ctx context.Context, data []Data, plan Plan) ([]GroupMetrics, error) {
	var all []GroupMetrics
	for g := range m.Groups {
		group := &m.Groups[g]
		dev, predicted, losses, err := m.predictAll(ctx, group, data[g].Dev, plan.BatchSize, plan.BatchTokens, nil)
		if err != nil {
			return nil, err
		}
		group.tune(dev, predicted)
		all = append(all, group.judge(dev, predicted, losses))
	}
	return all, nil
}
