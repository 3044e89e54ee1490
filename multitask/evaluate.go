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

// GroupScore is how a group's tasks do on some examples.
type GroupMetrics struct {
	Tasks []TaskMetrics
	// AllRight is the share of the examples with every head right, of those labelled for every head; it is there where
	// the group has several heads. Heads whose answers are near or far, as numbers, do not count.
	AllRight *float64
}

// Exact names the tasks that AllRight is of.
func (g GroupMetrics) Exact() []string {
	var names []string
	for _, task := range g.Tasks {
		if task.Exact {
			names = append(names, task.Task)
		}
	}
	return names
}

// TaskScore is how one task's heads do.
type TaskMetrics struct {
	Task     string
	Exact    bool // its answers are right or wrong: AllRight counts them
	Examples int  // labelled for one of the heads at least
	Heads    []HeadMetrics
}

// HeadScore is how one head does.
type HeadMetrics struct {
	Head     string
	Examples int // labelled for it
	Loss     Loss
	Metrics  []tasks.Metric // the main one first; none where nothing is labelled
	Tables   *tasks.Tables  // of each label; nil where the task's answers have none, or nothing is labelled
}

// Evaluate judges group g on examples, whose Windows and numbers of Targets are set. batchSize and batchTokens are
// those of training: without gradients to keep, twice the texts fit. done, if it is not nil, is told how many examples
// have been answered.
func (m *Model) Evaluate(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	done func(n int)) (GroupMetrics, error) {
	asked, predicted, losses, err := cachedModel{Model: m}.predictAll(ctx, g, examples, batchSize, batchTokens, done)
	if err != nil {
		return GroupMetrics{}, err
	}
	return g.judge(asked, predicted, losses), nil
}

// answer gives what group g predicts about examples, [heads][examples], and its losses. asked are the examples with the
// gold answers to what was asked: of heads that change batches, those are known only then.
func (m cachedModel) predictAll(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	done func(n int)) (asked []*corpus.Example, predicted [][]corpus.Prediction, losses []Loss, err error) {
	losses = g.losses()
	asked, predicted = slices.Clone(examples), make([][]corpus.Prediction, len(losses))
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
			for h, answers := range a.predictions(g, batch.Examples) {
				losses[h].Units += labelled[h].Units
				if nodes[h] != nil {
					losses[h].Sum += float64(nn.Values(nodes[h])[0])
				}
				for i, n := range numbers {
					asked[n], predicted[h][n] = batch.Examples[i], answers[i]
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
	return asked, predicted, losses, nil
}

// sweep takes examples through the model in batches, without learning: see is given each, by the examples' numbers,
// before its pass's Forward.
func (m cachedModel) forEachBatch(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	see func(pass *nn.Pass, numbers []int, batch *corpus.Batch, a forwarded) error) error {
	pass := nn.NewPass(0)
	_, bytes := m.Largest(EvaluationSizes(examples, batchSize, batchTokens), encoders.Load{})
	pass.Reserve(Reserve(bytes))
	for _, numbers := range evaluationBatches(lengths(examples), batchSize, batchTokens) {
		if err := ctx.Err(); err != nil {
			return err
		}
		pass.Reset(0)
		// An example's randomness goes by its number: it is asked the same in any batch.
		batch := g.prepared(corpus.Pack(pick(examples, numbers)), func(example int) rand.Source {
			return rand.NewPCG(nn.Key(0, 0, hiding), uint64(numbers[example]))
		})
		a, err := m.forward(pass, g, batch)
		if err != nil {
			return err
		}
		if err := see(pass, numbers, batch, a); err != nil {
			return err
		}
	}
	return nil
}

// evaluationBatches cuts examples of the given lengths in tokens into batches, given the sizes of those of training.
func evaluationBatches(lengths []int, batchSize, batchTokens int) [][]int {
	return corpus.Batches(lengths, twice(batchSize), twice(batchTokens), nil)
}

// twice is 2n, or the largest number there is.
func twice(n int) int { return n + min(n, math.MaxInt-n) }

// judge holds predictions [heads][examples] against the examples' targets.
func (g *Group) judge(examples []*corpus.Example, predicted [][]corpus.Prediction, losses []Loss) GroupMetrics {
	var score GroupMetrics
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
			var answers []corpus.Prediction
			for i, e := range examples {
				if labelled(e.Targets[h]) {
					gold = append(gold, e.Targets[h])
					answers = append(answers, predicted[h][i])
				}
			}
			judged := HeadMetrics{Head: head.Name, Examples: len(gold), Loss: losses[h]}
			if len(gold) > 0 {
				judged.Metrics = task.Kind.Judge(gold, answers)
				if tabler, has := task.Kind.(tasks.LabelReporter); has {
					tables := tabler.Tables(gold, answers)
					judged.Tables = &tables
				}
			}
			ts.Heads = append(ts.Heads, judged)
			h++
		}
		score.Tasks = append(score.Tasks, ts)
	}
	if exact := g.Exact(); len(exact) > 1 {
		score.AllRight = g.allRight(examples, predicted, exact)
	}
	return score
}

// Exact lists the numbers of the heads whose predictions are right or wrong.
func (g *Group) Exact() []int {
	var exact []int
	for h, kind := range g.kinds() {
		if kind.Exact() {
			exact = append(exact, h)
		}
	}
	return exact
}

// kinds lists each head's kind of outputs.
func (g *Group) kinds() []*outputs.Kind {
	var kinds []*outputs.Kind
	for _, task := range g.Tasks {
		for range task.Heads {
			kinds = append(kinds, task.Kind.Output())
		}
	}
	return kinds
}

// labelled tells whether there is a target.
func labelled(t corpus.Target) bool { return t != nil }

// allRight is the share of examples with every head of those numbers right, among those labelled for all of them; nil
// if there are none.
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
	share := float64(right) / float64(all)
	return &share
}

// tune lets the heads of g that do so choose what they decide by from their predictions about dev, which are decided
// anew.
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

// evaluateAll judges all groups on dev, by which heads that do so are tuned first.
func (m cachedModel) evaluateAll(ctx context.Context, data []Data, plan Plan) ([]GroupMetrics, error) {
	var scores []GroupMetrics
	for g := range m.Groups {
		group := &m.Groups[g]
		dev, predicted, losses, err := m.predictAll(ctx, group, data[g].Dev, plan.BatchSize, plan.BatchTokens, nil)
		if err != nil {
			return nil, err
		}
		group.tune(dev, predicted)
		scores = append(scores, group.judge(dev, predicted, losses))
	}
	return scores, nil
}
