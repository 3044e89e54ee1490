package multitask

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Evaluate returns the metrics of group g on examples, whose Windows and ids of Targets are set, by all ranks.
// batchSize and batchTokens are those of training: without gradients, batches twice as large fit. progress, if it is
// not nil, is called after each batch with the number of examples that are done.
func (m Cached) Evaluate(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	progress func(done, of int)) (GroupMetrics, error) {
	prepared, predicted, losses, err := m.PredictAll(ctx, g, examples, batchSize, batchTokens, progress)
	if err != nil {
		return GroupMetrics{}, err
	}
	return g.judge(prepared, predicted, losses), nil
}

// TuneAndEvaluate returns the metrics of group g on dev, after tuning its heads that have a heads.Tuner.
func (m Cached) TuneAndEvaluate(ctx context.Context, g *Group, dev []*corpus.Example, batchSize, batchTokens int,
) (GroupMetrics, error) {
	prepared, predicted, losses, err := m.PredictAll(ctx, g, dev, batchSize, batchTokens, nil)
	if err != nil {
		return GroupMetrics{}, err
	}
	g.tune(prepared, predicted)
	return g.judge(prepared, predicted, losses), nil
}

// PredictAll returns the predictions of group g for examples, [heads][examples], and its losses. prepared are the
// examples as they were read: heads that change batches (heads.Description.Prepare) set their targets there.
func (m Cached) PredictAll(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	progress func(done, of int)) (
	prepared []*corpus.Example, predicted [][]corpus.Prediction, losses []Loss, err error) {
	// batches of this rank
	batches := evaluationBatches(Lengths(examples), batchSize, batchTokens)
	results := make([]*batchResult, len(batches))
	predict := func(pass *nn.Pass, at int, batch *corpus.Batch, a Graph) error {
		nodes := a.LossNodes(pass, batch)
		if err := pass.Forward(); err != nil {
			return err
		}
		result := &batchResult{read: batch.Examples, losses: g.Losses(batch),
			predicted: a.predictions(batch.Examples)}
		for h, node := range nodes {
			if node != nil {
				result.losses[h].Sum = LossValue(node)
			}
		}
		results[at] = result
		return nil
	}
	if err := m.forEachBatch(ctx, g, examples, batches, progress, predict); err != nil {
		return nil, nil, nil, err
	}
	if err := m.gatherResults(g, examples, batches, results); err != nil {
		return nil, nil, nil, err
	}

	// all batches, in their order
	losses = g.Losses()
	prepared, predicted = slices.Clone(examples), make([][]corpus.Prediction, len(losses))
	for h := range predicted {
		predicted[h] = make([]corpus.Prediction, len(examples))
	}
	var bad *BadStep
	for at, result := range results {
		for h, predictions := range result.predicted {
			losses[h].Units += result.losses[h].Units
			losses[h].Sum += result.losses[h].Sum
			if bad == nil && !floats.IsFinite(losses[h].Sum) {
				bad = badBatch(losses[h], h, result.read)
			}
			for i, n := range batches[at] {
				prepared[n], predicted[h][n] = result.read[i], predictions[i]
			}
		}
	}
	if bad != nil {
		return nil, nil, nil, bad
	}
	return prepared, predicted, losses, nil
}

// Judged are the predictions of a head for examples, and the loss of each, a mean over the example's units: NaN for one
// without units, such as one without a target.
type Judged struct {
	Predicted []corpus.Prediction
	Losses    []float64
}

// judgedTogether is how many examples a pass of Judge has: the loss of each of them is computed over the logits of all,
// and each pass has a graph of its own.
const judgedTogether = 8

// Judge returns what the heads of group g predict for examples, as PredictAll, with the loss of each example: [heads],
// empty for heads that are not judged. Heads that change batches (heads.Description.Prepare) cannot be.
//
// The encoder reads batches, the heads a few examples of them at once, so that time and memory are linear in the batch.
func (m *Model) Judge(ctx context.Context, g *Group, judged []bool, examples []*corpus.Example, batchSize,
	batchTokens int, progress func(done, of int)) ([]Judged, error) {
	some, numbers := g.having(judged)
	results := make([]Judged, len(judged))
	for _, h := range numbers {
		results[h] = Judged{make([]corpus.Prediction, len(examples)), make([]float64, len(examples))}
	}
	batches, pass := evaluationBatches(Lengths(examples), batchSize, batchTokens), nn.NewPass(0)
	visit := func(_ *nn.Pass, at int, _ *corpus.Batch, a Graph) error {
		first := 0 // row of the batch
		for together := range slices.Chunk(batches[at], judgedTogether) {
			batch := corpus.Pack(Pick(examples, together))
			next := first + batch.Tokens.Rows.Tokens()
			pass.Reset(0)
			part := m.above(pass, &some, batch.Tokens.Rows, a.rows(first, next))
			predicted, losses, err := part.judge(pass, batch.Examples, numbers)
			if err != nil {
				return err
			}
			for i, h := range numbers {
				for e, n := range together {
					results[h].Predicted[n], results[h].Losses[n] = predicted[i][e], losses[i][e]
				}
			}
			first = next
		}
		return nil
	}
	return results, Cached{Model: m, Finite: true}.forEachBatch(ctx, &some, examples, batches, progress, visit)
}

// judge returns the predictions of all heads for the examples of a graph, and the mean losses of these, [heads]
// [examples]. numbers are those of the heads in the targets.
func (a Graph) judge(pass *nn.Pass, examples []*corpus.Example, numbers []int) (predicted [][]corpus.Prediction,
	losses [][]float64, err error) {
	of, n := a.group.Heads(), len(examples)
	nodes := make([]*nn.Node, 0, len(of)*n)
	for i, head := range of {
		targets := gold(examples, numbers[i])
		for e := range examples {
			nodes = append(nodes, head.Head.Loss(pass, a.logits[i], only(targets, e)))
		}
	}
	if err := pass.Forward(); err != nil {
		return nil, nil, err
	}
	for i, head := range of {
		losses = append(losses, make([]float64, n))
		targets := gold(examples, numbers[i])
		for e, node := range nodes[i*n : (i+1)*n] {
			losses[i][e] = math.NaN()
			if node == nil {
				continue
			}
			sum := LossValue(node)
			if !floats.IsFinite(sum) {
				loss := a.group.Losses()[i]
				loss.Sum = sum
				return nil, nil, badBatch(loss, numbers[i], examples[e:e+1])
			}
			losses[i][e] = sum / head.Head.Units(only(targets, e))
		}
	}
	return a.predictions(examples), losses, nil
}

// only returns targets without all but that of one example.
func only(targets []corpus.Target, example int) []corpus.Target {
	one := make([]corpus.Target, len(targets))
	one[example] = targets[example]
	return one
}

// having returns the group with some of its heads, and their numbers in it.
func (g *Group) having(which []bool) (some Group, numbers []int) {
	some, h := *g, 0
	some.Tasks = nil
	for _, task := range g.Tasks {
		all := task.Heads
		task.Heads = nil
		for _, head := range all {
			if which[h] {
				task.Heads, numbers = append(task.Heads, head), append(numbers, h)
			}
			h++
		}
		if len(task.Heads) > 0 {
			some.Tasks = append(some.Tasks, task)
		}
	}
	return some, numbers
}

// rows returns rows from first to next, exclusive, of the encoder's states, by layer.
func (a Graph) rows(first, next int) [][]float32 {
	layers := make([][]float32, len(a.Border))
	for l, states := range a.Border {
		width := states.Shape()[1]
		layers[l] = nn.Values(states)[first*width : next*width]
	}
	return layers
}

// forEachBatch runs the batches of examples that are this rank's through the model, without learning. It calls visit
// for each, before its pass's Forward, with its number, and then progress, if it is not nil.
func (m Cached) forEachBatch(ctx context.Context, g *Group, examples []*corpus.Example, batches [][]int,
	progress func(done, of int), visit func(pass *nn.Pass, at int, batch *corpus.Batch, a Graph) error) error {
	pass := nn.NewPass(0)
	m.Mode = encoders.Mode{Precision: m.Precision}
	_, bytes := m.Largest(sizesOf(examples, batches), encoders.Workload{})
	pass.Reserve(Reserve(bytes))
	first, ranks := 0, 1
	if m.Ranks != nil {
		first, ranks = m.Ranks.Rank()
	}
	done := 0
	for at := first; at < len(batches); at += ranks {
		if err := ctx.Err(); err != nil {
			return err
		}
		pass.Reset(0)
		batch := g.evaluationBatch(examples, batches[at])
		a, err := m.Build(pass, g, batch)
		if err != nil {
			return err
		}
		if err := visit(pass, at, batch, a); err != nil {
			return err
		}
		if done += len(batches[at]); progress != nil {
			progress(done, len(examples))
		}
	}
	return nil
}

// evaluationBatch returns the examples with some numbers as a batch, changed by the heads that do so. An example's
// random stream is a function of its number, so that the same tokens are hidden in any batch.
func (g *Group) evaluationBatch(examples []*corpus.Example, numbers []int) *corpus.Batch {
	return g.Prepared(corpus.Pack(Pick(examples, numbers)), func(example int) rand.Source {
		return rand.NewPCG(nn.Key(0, 0, HiddenTokens), uint64(numbers[example]))
	})
}

// evaluationBatches divides examples of the given lengths, in tokens, into batches; batchSize and batchTokens are those
// of training.
func evaluationBatches(lengths []int32, batchSize, batchTokens int) [][]int {
	return corpus.Batches(lengths, twice(batchSize), twice(batchTokens), nil)
}

func twice(n int) int { return n + min(n, math.MaxInt-n) }

// Size is the size of a batch.
type Size struct {
	Texts, Tokens int
	Longest       int // tokens of the longest text, or window; 0 where the batch is of training
}

// SizeOf returns the size of a batch of examples, whose Windows are set.
func SizeOf(examples ...*corpus.Example) Size {
	s := Size{Texts: len(examples)}
	for _, e := range examples {
		s.Tokens += e.Tokens()
		for _, w := range e.Windows {
			s.Longest = max(s.Longest, len(w.IDs))
		}
	}
	return s
}

// EvaluationSizes returns the sizes of the batches in which Evaluate reads examples, whose Windows are set.
func EvaluationSizes(examples []*corpus.Example, batchSize, batchTokens int) []Size {
	return sizesOf(examples, evaluationBatches(Lengths(examples), batchSize, batchTokens))
}

func sizesOf(examples []*corpus.Example, batches [][]int) []Size {
	sizes := make([]Size, len(batches))
	for i, batch := range batches {
		sizes[i] = SizeOf(Pick(examples, batch)...)
	}
	return sizes
}

// tune makes the heads of g that have a heads.Tuner choose their thresholds by their predictions on dev, which are then
// decided again.
func (g *Group) tune(dev []*corpus.Example, predicted [][]corpus.Prediction) {
	types := g.types()
	for h, head := range g.Heads() {
		tuner := head.Head.Describe().Tuner
		if tuner == nil {
			continue
		}
		tuner.Tune(gold(dev, h), predicted[h])
		for i := range predicted[h] {
			types[h].Output().NamePrediction(predicted[h][i], dev[i], head.Labels)
		}
	}
}

// Logits returns the logits of the heads of group g that have a heads.Calibrator, for examples whose Windows are set:
// [heads][examples][windows][labels], nil for other heads. A logit that is not finite is an error. batchSize,
// batchTokens and progress are those of Evaluate.
func (m *Model) Logits(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	progress func(done, of int)) ([][][][]float32, error) {
	of := g.Heads()
	all := make([][][][]float32, len(of))
	for h, head := range of {
		if head.Head.Describe().Calibrator != nil {
			all[h] = make([][][]float32, len(examples))
		}
	}
	batches := evaluationBatches(Lengths(examples), batchSize, batchTokens)
	visit := func(pass *nn.Pass, at int, _ *corpus.Batch, a Graph) error {
		if err := pass.Forward(); err != nil {
			return err
		}
		for h, head := range of {
			if all[h] == nil {
				continue
			}
			for i, windows := range heads.WindowLogits(a.logits[h]) {
				e := batches[at][i]
				if c, ok := notFinite(windows); ok {
					return fmt.Errorf("%s: head %q: the logit of label %q is not a finite number", examples[e].Place,
						head.Name, head.Labels.Name(c))
				}
				all[h][e] = windows
			}
		}
		return nil
	}
	return all, Cached{Model: m}.forEachBatch(ctx, g, examples, batches, progress, visit)
}

func notFinite(windows [][]float32) (label int, ok bool) {
	for _, z := range windows {
		if c := floats.NotFinite(z); c >= 0 {
			return c, true
		}
	}
	return 0, false
}

// FitHeads fits the heads of group g that have a heads.Fitter to features of training examples by the current model.
func (m Cached) FitHeads(ctx context.Context, g *Group, train []*corpus.Example, batchSize, batchTokens int) error {
	for h, head := range g.Heads() {
		if fitter := head.Head.Describe().Fitter; fitter != nil {
			if err := m.fit(ctx, g, h, fitter, train, batchSize, batchTokens); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m Cached) fit(
	ctx context.Context, g *Group, h int, fitter heads.Fitter, train []*corpus.Example, batchSize, batchTokens int,
) error {
	var chosen []*corpus.Example
	for _, i := range fitter.Choose(gold(train, h)) {
		chosen = append(chosen, train[i])
	}

	batches := evaluationBatches(Lengths(chosen), batchSize, batchTokens)
	rows := make([][][]float32, len(batches))
	err := m.forEachBatch(ctx, g, chosen, batches, nil, func(pass *nn.Pass, at int, _ *corpus.Batch, a Graph) error {
		if err := pass.Forward(); err != nil {
			return err
		}
		rows[at] = fitter.Features(a.logits[h])
		return nil
	})
	if err != nil || len(chosen) == 0 {
		return err
	}
	if err := m.gatherRows(batches, rows); err != nil {
		return err
	}
	features := make([][]float32, len(chosen)) // by example, so that the result does not depend on batches
	for at, numbers := range batches {
		for i, n := range numbers {
			features[n] = rows[at][i]
		}
	}
	fitter.Fit(features)
	return nil
}

// batchResult is what one batch of an evaluation has come to: the losses of its heads, and the predictions
// [heads][examples].
type batchResult struct {
	read      []*corpus.Example // with the targets of heads that change batches
	losses    []Loss
	predicted [][]corpus.Prediction
}

// Reserve returns the memory to allocate where the largest known batch takes so many bytes in the encoder: later epochs
// have other batches, and heads have values too.
func Reserve(bytes int64) int64 { return bytes + bytes/8 }

// Largest returns the one of sizes that takes the most memory in the encoder, and its bytes; 0 bytes where the encoder
// does not estimate its memory. how has the rest of the workload.
func (m *Model) Largest(sizes []Size, how encoders.Workload) (largest Size, bytes int64) {
	estimate := m.Encoder.Describe().Memory
	if estimate == nil || len(sizes) == 0 {
		return Size{}, 0
	}
	mapped := !how.Training && m.observesMaps()
	memory := func(s Size) int64 {
		how.Tokens, how.Layers = s.Tokens, m.Fusion.Describe().Layers
		if mapped {
			how.Mapped = s.Longest
		}
		return estimate(how)
	}
	largest = slices.MaxFunc(sizes, func(a, b Size) int { return cmp.Compare(memory(a), memory(b)) })
	return largest, memory(largest)
}

// observesMaps reports whether a head may read the attention maps of the encoder.
func (m *Model) observesMaps() bool {
	if (m.Encoder.Describe().Attention == encoders.AttentionMaps{}) {
		return false
	}
	observes := func(h Head) bool { return h.Head.Describe().Observe != nil }
	return slices.ContainsFunc(m.Groups, func(g Group) bool { return slices.ContainsFunc(g.Heads(), observes) })
}
