package predict

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// read explains an encoding of the example.
func (x *explainer) read(one encoding) error {
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
		if words, err = x.model.Words(corpus.Pack([]*corpus.Example{e}).Tokens.IDs...); err != nil {
			return err
		}
	}
	c, err := x.model.Compute(pass, &one.group, []*corpus.Example{e}, words)
	if err != nil {
		return err
	}
	predicted, h := c.Predictions(), 0
	for _, task := range one.group.Tasks {
		x.add(&x.Prediction, task, e, func(head int) corpus.Prediction { return predicted[h+head][0] })
		h += len(task.Heads)
	}
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

// tokensOf returns the tokens of a window.
func (x *explainer) tokensOf(e *corpus.Example, w corpus.Encoding) []Token {
	text, pair := corpus.NewOffsets(e.Text, x.options.Unit), corpus.NewOffsets(e.Pair, x.options.Unit)
	all := make([]Token, len(w.IDs))
	for t, id := range w.IDs {
		all[t] = Token{Token: x.tokenizer.Token(id), In: "special"}
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

// lenses returns the names under which heads emit their lenses.
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
		for layer := range x.model.Encoder.Describe().Attention.Layers {
			p.Observe(nn.AttentionMaps(layer), func(text int, shape []int, values []float32) {
				w := &windows[text]
				w.Attention = append(w.Attention, mapsOf(values, shape))
			})
		}
	}
	for _, task := range g.Tasks {
		p.Observe(fusion.AttentionOf(task.Name), func(text int, _ []int, values []float32) {
			w := &windows[text]
			if w.Fusion == nil {
				w.Fusion = map[string][]float32{}
			}
			w.Fusion[task.Name] = slices.Clone(values)
		})
		for _, head := range task.Heads {
			if name, ok := x.lenses[multitask.HeadName{Task: task.Name, Head: head.Name}]; ok {
				x.observeLens(p, windows, name, task.Name, head.Name)
			}
		}
	}
}

// observeLens requests the centres and apertures of a head's lens, which have the name of the head's nn.Focus.
func (x *explainer) observeLens(p *nn.Pass, windows []Window, name, task, head string) {
	set := func(text int, change func(*Lens)) {
		w := &windows[text]
		if w.Lenses == nil {
			w.Lenses = map[string]map[string]Lens{}
		}
		if w.Lenses[task] == nil {
			w.Lenses[task] = map[string]Lens{}
		}
		lens := w.Lenses[task][head]
		change(&lens)
		w.Lenses[task][head] = lens
	}
	p.Observe(nn.FocusCentre(name), func(text int, shape []int, values []float32) {
		set(text, func(l *Lens) { l.Centre = columnsOf(values, shape) })
	})
	p.Observe(nn.FocusAperture(name), func(text int, shape []int, values []float32) {
		set(text, func(l *Lens) { l.Aperture = columnsOf(values, shape) })
	})
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

// finite reports whether all numbers are.
func finite[F float32 | float64](rows ...[]F) bool {
	return !slices.ContainsFunc(rows, func(row []F) bool { return floats.NotFinite(row) >= 0 })
}
