package predict

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func (x *explainer) compute(one encoding) error {
	e := one.example
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if err := x.fits(one); err != nil {
		return err
	}
	reading := Reading{Windows: make([]Window, len(e.Windows))}
	for _, task := range one.group.Tasks {
		reading.Tasks = append(reading.Tasks, task.Name)
	}
	for b, w := range e.Windows {
		reading.Windows[b].Tokens = x.tokensOf(e, w)
	}

	// what the parts of the model emit, and the predictions
	pass := nn.NewPass(0)
	x.observe(pass, one.group, reading.Windows)
	var words []float32 // [T E]
	if x.options.Gradients {
		var err error
		if words, err = x.run.Model.Words(corpus.Pack([]*corpus.Example{e}).Tokens.IDs...); err != nil {
			return err
		}
	}
	c, err := x.run.Model.Compute(pass, &one.group, []*corpus.Example{e}, words)
	if err != nil {
		return err
	}
	predicted := c.Predictions()
	x.answer(x.reading, one.group.Tasks, e, predicted, 0)
	x.dropNotFinite(reading.Windows)

	// the answers
	a := &attributor{explainer: x, encoding: one, computed: c, predicted: predicted, words: words}
	if err := a.attribute(); err != nil {
		return err
	}
	a.place(reading.Windows)
	x.Readings = append(x.Readings, reading)
	return nil
}

func (x *explainer) tokensOf(e *corpus.Example, w corpus.Encoding) []Token {
	text, pair := corpus.NewOffsets(e.Text, x.options.Unit), corpus.NewOffsets(e.Pair, x.options.Unit)
	all := make([]Token, len(w.IDs))
	for t, id := range w.IDs {
		all[t] = Token{Token: x.run.Data.Tokenizer.Token(id), In: "special"}
		at := w.Offsets[t]
		switch {
		case at == corpus.Span{}:
			continue
		case w.Second || w.Segments[t] == 1:
			all[t].In, at = "pair", pair.Span(at)
		default:
			all[t].In, at = "text", text.Span(at)
		}
		all[t].Start, all[t].End = at.Start, at.End
	}
	return all
}

func (o *Opened) lenses() map[multitask.HeadName]string {
	names := map[multitask.HeadName]string{}
	for _, task := range o.Data.Experiment.Tasks {
		for _, head := range task.Heads {
			if lenses := heads.TraitsOf(head.Part.Options).Lenses; lenses.Count > 0 {
				at := multitask.HeadParams(o.Model.Params, task.Name, head.Name).In(lenses.Name)
				names[multitask.HeadName{Task: task.Name, Head: head.Name}] = at.Path()
			}
		}
	}
	return names
}

// observe requests from a pass what windows have of attention, fusion and lenses.
func (x *explainer) observe(p *nn.Pass, g multitask.Group, windows []Window) {
	if x.options.Attention {
		for layer := range x.run.Model.Encoder.Describe().Attention.Layers {
			p.Observe(nn.AttentionMaps(layer), func(text int, shape []int, values []float32) {
				w := &windows[text]
				w.Attention = append(w.Attention, mapsOf(values, shape))
			})
		}
	}
	lenses := x.run.lenses()
	for _, task := range g.Tasks {
		p.Observe(fusion.AttentionOf(task.Name), func(text int, _ []int, values []float32) {
			w := &windows[text]
			if w.Fusion == nil {
				w.Fusion = map[string][]float32{}
			}
			w.Fusion[task.Name] = slices.Clone(values)
		})
		for _, head := range task.Heads {
			if name, ok := lenses[multitask.HeadName{Task: task.Name, Head: head.Name}]; ok {
				x.observeLens(p, windows, name, task.Name, head.Name)
			}
		}
	}
}

// observeLens requests the centres and apertures of a head's lens, which have the name of the head's nn.Focus.
func (x *explainer) observeLens(p *nn.Pass, windows []Window, name, task, head string) {
	set := func(text int, change func(*Lens)) {
		lenses := ofTask(&windows[text].Lenses, task)
		lens := lenses[head]
		change(&lens)
		lenses[head] = lens
	}
	p.Observe(nn.FocusCentre(name), func(text int, shape []int, values []float32) {
		set(text, func(l *Lens) { l.Centre = columnsOf(values, shape) })
	})
	p.Observe(nn.FocusAperture(name), func(text int, shape []int, values []float32) {
		set(text, func(l *Lens) { l.Aperture = columnsOf(values, shape) })
	})
}

// ofTask returns what there is by head for a task.
func ofTask[T any](all *map[string]map[string]T, task string) map[string]T {
	if *all == nil {
		*all = map[string]map[string]T{}
	}
	if (*all)[task] == nil {
		(*all)[task] = map[string]T{}
	}
	return (*all)[task]
}

// mapsOf copies values of a shape [heads T T].
func mapsOf(values []float32, shape []int) [][][]float32 {
	values = slices.Clone(values)
	maps := make([][][]float32, shape[0])
	for h := range maps {
		for range shape[1] {
			maps[h] = append(maps[h], values[:shape[2]:shape[2]])
			values = values[shape[2]:]
		}
	}
	return maps
}

// columnsOf returns the columns of values of a shape [T columns].
func columnsOf(values []float32, shape []int) [][]float32 {
	columns := make([][]float32, shape[1])
	for i, v := range values {
		columns[i%shape[1]] = append(columns[i%shape[1]], v)
	}
	return columns
}

// dropNotFinite drops attention, weights and lenses of windows for which the model computes numbers that are not
// finite, which JSON has not.
func (x *explainer) dropNotFinite(windows []Window) {
	for b := range windows {
		w := &windows[b]
		bad := false
		for _, layer := range w.Attention {
			for _, head := range layer {
				bad = bad || !finite(head...)
			}
		}
		for _, weights := range w.Fusion {
			bad = bad || !finite(weights)
		}
		for _, ofTask := range w.Lenses {
			for _, lens := range ofTask {
				bad = bad || !finite(lens.Centre...) || !finite(lens.Aperture...)
			}
		}
		if bad {
			w.Attention, w.Fusion, w.Lenses = nil, nil, nil
			x.note("numbers of attention, fusion or lenses are not finite, and left out")
		}
	}
}

func finite[F float32 | float64](rows ...[]F) bool {
	return !slices.ContainsFunc(rows, func(row []F) bool { return floats.NotFinite(row) >= 0 })
}

// attributor computes what the tokens of an encoding add to the answers.
type attributor struct {
	*explainer
	encoding
	computed  *multitask.Computed
	predicted [][]corpus.Prediction // [heads][1]
	words     []float32             // [T E]; nil: there are no gradients
	answers   []attributed
}

// attributed is an answer of a head of a task, and what each token of all windows adds to it.
type attributed struct {
	outputs.Answer
	task, head string
	h, number  int         // of the head in the group, and of the answer among the head's
	whole      Attribution // [T] of all windows
}

func (a *attributor) attribute() error {
	h := 0
	for _, task := range a.group.Tasks {
		for _, head := range task.Heads {
			answers := a.answersOf(a.computed, h, 0)
			if len(answers) > maxAnswers {
				a.note("%s, %s: %d answers, of which the first %d are explained", task.Name, head.Name, len(answers),
					maxAnswers)
				answers = answers[:maxAnswers]
			}
			for n, answer := range answers {
				to := attributed{answer, task.Name, head.Name, h, n, Attribution{Label: answer.Label,
					Logit: sumOf(a.computed.Logits(h), answer.Logits)}}
				if answer.Word >= 0 {
					to.whole.Word = &answer.Word
				}
				a.answers = append(a.answers, to)
			}
			h++
		}
	}
	a.answers = slices.DeleteFunc(a.answers, func(to attributed) bool {
		bad := !finite([]float64{to.whole.Logit})
		if bad {
			a.note("%s, %s: the logit of %q is not finite", to.task, to.head, to.Label)
		}
		return bad
	})
	if a.words == nil || len(a.answers) == 0 {
		return nil
	}
	if err := a.differentiate(); err != nil {
		return err
	}
	if a.options.Steps > 0 {
		return a.integrate()
	}
	return nil
}

// answersOf returns the answers in the group's head h for an example of a batch, all of which are copies of the one
// that is explained: what is predicted for that one.
func (a *attributor) answersOf(c *multitask.Computed, h, example int) []outputs.Answer {
	at := 0
	for _, task := range a.group.Tasks {
		if h >= at+len(task.Heads) {
			at += len(task.Heads)
			continue
		}
		kind := task.Type.Output()
		in := a.input(a.reading, task, task.Heads[h-at], a.example)
		return kind.Answers(a.predicted[h][0], in, c.Rows, example, c.Shape(h))
	}
	panic("predict: answers of a head that the group does not have")
}

// differentiate computes gradient × input of the answers.
func (a *attributor) differentiate() error {
	for i := range a.answers {
		to := &a.answers[i]
		if err := a.ctx.Err(); err != nil {
			return err
		}
		gradient, err := a.computed.Gradient(to.h, to.Logits)
		switch {
		case err != nil:
			return err
		case gradient == nil:
			a.note("%s, %s: no gradient reaches the encoder", to.task, to.head)
			continue
		}
		to.whole.GradientInput = make([]float64, a.computed.Rows.Tokens())
		addProducts(to.whole.GradientInput, gradient, a.words, 1)
		if !finite(to.whole.GradientInput) {
			a.note("%s, %s: the gradient of %q is not finite", to.task, to.head, to.Label)
			to.whole.GradientInput = nil
		}
	}
	return nil
}

// integrate computes integrated gradients of the answers that have a gradient (Sundararajan et al. 2017): with word
// embeddings x and those of the baseline x', for token t
//
//	(x_t - x'_t)·∫ ∂f/∂x_t(x' + α(x - x')) dα    over α from 0 to 1
//
// by the rule of pathPoints. In the baseline the embedding of the padding token stands in place of those of all but
// special tokens; positions and token types stay. Passes have several points of the path.
func (a *attributor) integrate() error {
	rows := a.computed.Rows
	width := len(a.words) / rows.Tokens()
	pad := make([]float32, width) // zeros where the vocabulary has no padding token
	if id, ok := padding(a.run.Data.Tokenizer); ok {
		var err error
		if pad, err = a.run.Model.Words(id); err != nil {
			return err
		}
	}
	path := path{words: a.words, to: slices.Clone(a.words)}
	for t, special := range rows.Special {
		x := path.to[t*width:][:width] // x - x'
		for d := range x {
			if x[d] -= pad[d]; special {
				x[d] = 0
			}
		}
	}
	for i := range a.answers {
		if to := &a.answers[i].whole; to.GradientInput != nil {
			to.IntegratedGradients, to.Baseline = make([]float64, rows.Tokens()), new(float64)
		}
	}

	points := append([]point{{0, 0}}, pathPoints(a.options.Steps)...) // after the baseline
	pass, done := nn.NewPass(0), 0
	progress := func() {
		if a.options.Progress != nil {
			a.options.Progress(done, len(points))
		}
	}
	progress()
	for some := range slices.Chunk(points, max(1, explainTokens/rows.Tokens())) {
		if err := a.ctx.Err(); err != nil {
			return err
		}
		pass.Reset(0)
		if err := a.integrateOver(pass, path, some); err != nil {
			return err
		}
		done += len(some)
		progress()
	}
	for i := range a.answers {
		to := &a.answers[i]
		if of := &to.whole; of.Baseline != nil && !finite(of.IntegratedGradients, []float64{*of.Baseline}) {
			a.note("%s, %s: the integrated gradients of %q are not finite", to.task, to.head, to.Label)
			of.IntegratedGradients, of.Baseline = nil, nil
		}
	}
	return nil
}

// path is the straight line from the baseline to words, at words - to, [T E].
type path struct{ words, to []float32 }

func (p path) appendPoint(x []float32, alpha float64) []float32 {
	for i, w := range p.words {
		x = append(x, w-float32(1-alpha)*p.to[i])
	}
	return x
}

// point is a point α of the path, and its weight in the integral over α from 0 to 1.
type point struct{ alpha, weight float64 }

// pathPoints returns n points of the path: those of the midpoint rule for u, with α = u² and dα = 2u du. They are
// closest near the baseline, where the gradient changes most. docs/explain.md has its errors and those for α itself.
func pathPoints(n int) []point {
	points := make([]point, n)
	for k := range points {
		u := (float64(k) + 0.5) / float64(n)
		points[k] = point{u * u, 2 * u / float64(n)}
	}
	return points
}

// integrateOver adds the gradients at some points of the path. Point 0 is the baseline.
func (a *attributor) integrateOver(pass *nn.Pass, path path, points []point) error {
	words := pass.Scratch(len(points) * len(path.words))[:0]
	for _, p := range points {
		words = path.appendPoint(words, p.alpha)
	}
	c, err := a.run.Model.Compute(pass, &a.group, slices.Repeat([]*corpus.Example{a.example}, len(points)), words)
	if err != nil {
		return err
	}
	for i := range a.answers {
		to := &a.answers[i]
		if err := a.ctx.Err(); err != nil {
			return err
		}
		if to.whole.IntegratedGradients == nil {
			continue
		}
		var logits []int // of all points
		for k, p := range points {
			own := a.answersOf(c, to.h, k)[to.number].Logits
			if logits = append(logits, own...); p.alpha == 0 {
				*to.whole.Baseline = sumOf(c.Logits(to.h), own)
			}
		}
		gradient, err := c.Gradient(to.h, logits)
		if err != nil {
			return err
		}
		for k, p := range points {
			if gradient != nil && p.weight > 0 {
				addProducts(to.whole.IntegratedGradients, gradient[k*len(path.to):], path.to, p.weight)
			}
		}
	}
	return nil
}

// addProducts adds the products of the rows of two tensors [T E], times a factor, to sums [T].
func addProducts(sums []float64, x, y []float32, factor float64) {
	width := len(y) / len(sums)
	for t := range sums {
		sum := 0.0
		for d, v := range y[t*width : (t+1)*width] {
			sum += float64(v) * float64(x[t*width+d])
		}
		sums[t] += factor * sum
	}
}

func sumOf(values []float32, indices []int) (sum float64) {
	for _, i := range indices {
		sum += float64(values[i])
	}
	return sum
}

// padding returns the id of the padding token, if the vocabulary has one.
func padding(tokenizer corpus.Tokenizer) (id int32, ok bool) {
	for id := range tokenizer.Size() {
		switch tokenizer.Token(int32(id)) {
		case "[PAD]", "<pad>":
			return int32(id), true
		}
	}
	return 0, false
}

func (a *attributor) place(windows []Window) {
	for _, to := range a.answers {
		for _, b := range to.Texts {
			from, end := a.computed.Rows.Starts[b], a.computed.Rows.Starts[b+1]
			one := to.whole
			if one.GradientInput != nil {
				one.GradientInput = one.GradientInput[from:end]
			}
			if one.IntegratedGradients != nil {
				one.IntegratedGradients = one.IntegratedGradients[from:end]
			}
			answers := ofTask(&windows[b].Answers, to.task)
			answers[to.head] = append(answers[to.head], one)
		}
	}
}
