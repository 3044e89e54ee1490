package heads

import (
	"errors"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("span", SpanOptions{MaxAnswerTokens: 30, Dropout: ModelDropout}, newSpan, outputs.Span)
	DefaultFor("span", outputs.Span)
}

// SpanOptions are the keys that may stand beside `type: span`.
type SpanOptions struct {
	MaxAnswerTokens int     `yaml:"max_answer_tokens" range:"[1,4096]" doc:"largest number of tokens of an answer"`
	NoAnswer        bool    `yaml:"no_answer" doc:"whether a context may hold no answer, as in SQuAD 2.0"`
	Margin          float64 `yaml:"margin" doc:"by how much no answer's logits must exceed the best answer's"`

	Dropout float64 `yaml:"dropout" range:"[-1,1)" doc:"dropout rate before the output layer; -1: model.dropout"`
}

// span has two logits for each token h_i, as the first and as the last of an answer (Devlin et al. 2019, section 4.2):
//
//	s_i = S·h_i + b_s    e_i = E·h_i + b_e    p(start=i) = softmax(s)_i    p(end=j) = softmax(e)_j
//
// over the tokens of the context and the text's first token, which stands for no answer (section 4.3). The answer is
// the span i ≤ j < i + max_answer_tokens of tokens of the context with the highest s_i + e_j, over all windows, the
// first of equals; its probability is p(start=i)·p(end=j) in its window. The loss is the mean over windows of
// -(log p(start) + log p(end))/2 of the first gold answer, or of the first token if the window does not contain the
// whole answer. With no_answer the prediction is no answer if none - best exceeds margin: best is the answer's s_i +
// e_j, none the least s + e of a first token over the windows. The probability of no answer is sigmoid(none - best).
type span struct {
	SpanOptions
	drop  nn.Dropout
	score *nn.Linear
}

func newSpan(o SpanOptions, env Env) (Head, error) {
	if o.Margin != 0 && !o.NoAnswer {
		return nil, errors.New("margin has no effect without no_answer: true")
	}
	rate, err := dropoutRate(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	return &span{o, nn.NewDropout(env.Params.In("drop"), rate), nn.NewLinear(env.Params.In("score"), env.Width, 2)}, nil
}

func (h *span) Describe() Description {
	soft := &Soft{Answers: spanAnswers, Locate: locatePlaces, Units: answeredWindows, Loss: softSpanLoss}
	return Description{Output: outputs.Span, CheckTarget: h.checkTarget, Soft: soft}
}

func (h *span) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	return LogitsOf(seen, h.score.Apply(h.drop.Apply(p, seen.States))) // [T 2]
}

// Units counts the windows of questions that have a target, including those without an answer.
func (h *span) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.AllAs[outputs.SpanTarget](gold) {
		if t != nil {
			n += float64(len(t.Tokens))
		}
	}
	return n
}

// Loss is the mean of the cross entropies of start and end, summed over windows; nil if there are none. In a window
// that does not contain the answer, the target is the first token.
func (h *span) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	rows := logits.Rows
	targets := outputs.AllAs[outputs.SpanTarget](gold)
	spans, labelled := make([][2]int, rows.Texts()), false
	window := make([]int, outputs.Examples(rows))
	for b, e := range rows.Example {
		w := window[e]
		window[e]++
		if targets[e] == nil || targets[e].Tokens == nil {
			spans[b] = [2]int{-1, -1}
			continue
		}
		labelled = true
		spans[b] = [2]int{rows.Starts[b], rows.Starts[b]}
		if tokens := targets[e].Tokens[w]; tokens != (corpus.Span{}) {
			spans[b] = [2]int{rows.Starts[b] + tokens.Start, rows.Starts[b] + tokens.End - 1}
		}
	}
	if !labelled {
		return nil
	}
	return nn.SpanLoss(logits.Nodes[0], contextTokens(rows), spans, rows)
}

// contextTokens reports for each token, [T], whether an answer may begin or end with it: each text's first, which
// stands for no answer, and those of its second segment that are not special.
func contextTokens(rows nn.Rows) []bool {
	may := make([]bool, rows.Tokens())
	for b := range rows.Texts() {
		lo, hi := rows.Starts[b], rows.Starts[b+1]
		for t := lo; t < hi; t++ {
			special := t == hi-1
			if rows.Special != nil {
				special = rows.Special[t]
			}
			may[t] = rows.Segment[t] == 1 && !special
		}
		may[lo] = true
	}
	return may
}

func (h *span) Predict(logits Logits) []corpus.Prediction {
	rows, values := logits.Rows, nn.Values(logits.Nodes[0])
	may := contextTokens(rows)
	predictions := make([]outputs.SpanPrediction, outputs.Examples(rows))
	best, none := make([]float32, len(predictions)), make([]float32, len(predictions))
	window := make([]int, len(predictions))
	for e := range best {
		best[e], none[e] = float32(math.Inf(-1)), float32(math.Inf(1))
	}
	for b, e := range rows.Example {
		lo, hi := rows.Starts[b], rows.Starts[b+1]
		w := window[e]
		window[e]++
		p := &predictions[e]
		starts, ends := sideProbabilities(values, may, lo, hi, 0), sideProbabilities(values, may, lo, hi, 1)
		if null := values[2*lo] + values[2*lo+1]; null < none[e] {
			if none[e] = null; p.Tokens == (corpus.Span{}) {
				p.Probability = starts[0] * ends[0]
			}
		}
		for s := lo + 1; s < hi; s++ {
			if !may[s] {
				continue
			}
			for t := s; t < min(hi, s+h.MaxAnswerTokens); t++ {
				if score := values[2*s] + values[2*t+1]; may[t] && score > best[e] {
					best[e] = score
					p.Window, p.Tokens = w, corpus.Span{Start: s - lo, End: t - lo + 1}
					p.Probability = starts[s-lo] * ends[t-lo]
				}
			}
		}
	}
	if h.NoAnswer {
		h.dropUnlikely(predictions, best, none)
	}
	return outputs.Erase(predictions)
}

// dropUnlikely replaces answers by no answer where that exceeds them by more than the margin.
func (h *span) dropUnlikely(predictions []outputs.SpanPrediction, best, none []float32) {
	for e := range predictions {
		if margin := none[e] - best[e]; float64(margin) > h.Margin {
			p := &predictions[e]
			p.Window, p.Tokens = 0, corpus.Span{}
			p.Probability = float32(1 / (1 + math.Exp(float64(-margin)))) // of none against the best answer
		}
	}
}

// sideProbabilities are the probabilities of the tokens lo:hi as one side of a span, 0 for tokens that cannot be it.
func sideProbabilities(values []float32, may []bool, lo, hi, side int) []float32 {
	logits := make([]float32, hi-lo)
	for t := lo; t < hi; t++ {
		logits[t-lo] = float32(math.Inf(-1))
		if may[t] {
			logits[t-lo] = values[2*t+side]
		}
	}
	return nn.Softmax(logits)
}

func (h *span) checkTarget(t corpus.Target) error {
	if target := outputs.As[outputs.SpanTarget](t); target != nil && len(target.Answers) == 0 && !h.NoAnswer {
		return errors.New("the question has no answer in its context; no_answer: true allows that")
	}
	return nil
}

// spanAnswers returns the probabilities of the tokens of all windows of each context. As in Predict, the windows'
// logits are compared with each other: a token in several has its highest, no answer those of the window where they are
// least.
func spanAnswers(logits Logits, examples []*corpus.Example, temperature float64) []Answer {
	rows, values := logits.Rows, nn.Values(logits.Nodes[0])
	may := contextTokens(rows)
	all, at := make([]Answer, len(examples)), make([]map[corpus.Span]int, len(examples))
	window := make([]int, len(examples))
	for b, e := range rows.Example {
		lo, hi := rows.Starts[b], rows.Starts[b+1]
		offsets := examples[e].Windows[window[e]].Offsets
		window[e]++
		a, none := &all[e], values[2*lo:2*lo+2]
		switch {
		case a.Places == nil:
			a.Places, a.Values, at[e] = []corpus.Span{{}}, slices.Clone(none), map[corpus.Span]int{}
		case none[0]+none[1] < a.Values[0]+a.Values[1]:
			copy(a.Values, none)
		}
		for t := lo + 1; t < hi; t++ {
			if !may[t] {
				continue
			}
			z, place := values[2*t:2*t+2], offsets[t-lo]
			if k, found := at[e][place]; found {
				a.Values[2*k], a.Values[2*k+1] = max(a.Values[2*k], z[0]), max(a.Values[2*k+1], z[1])
				continue
			}
			at[e][place] = len(a.Places)
			a.Places, a.Values = append(a.Places, place), append(a.Values, z...)
		}
	}
	for _, a := range all {
		for side := range 2 {
			z := make([]float32, len(a.Places))
			for k := range z {
				z[k] = a.Values[2*k+side]
			}
			for k, p := range nn.Softmax(nn.Tempered(z, temperature)) {
				a.Values[2*k+side] = p
			}
		}
	}
	return all
}

// locatePlaces is Soft.Locate of spans.
func locatePlaces(a Answer, e *corpus.Example) Answer {
	located := Answer{Values: make([]float32, 2*e.Tokens())}
	first := 0
	for _, window := range e.Windows {
		values := located.Values[2*first:]
		for i, place := range a.Places {
			tokens := corpus.Span{Start: 0, End: 1}
			if found := window.TokensOf(place, e.Pair); found != (corpus.Span{}) {
				tokens = found
			}
			values[2*tokens.Start] += a.Values[2*i]
			values[2*(tokens.End-1)+1] += a.Values[2*i+1]
		}
		located.Places = append(located.Places, corpus.Span{Start: first, End: first + len(window.IDs)})
		first += len(window.IDs)
	}
	return located
}

// answeredWindows counts the windows of located answers.
func answeredWindows(answers []*Answer) float64 {
	n := 0.0
	for _, a := range answers {
		if a != nil {
			n += float64(len(a.Places))
		}
	}
	return n
}

func softSpanLoss(_ *nn.Pass, logits Logits, answers []*Answer, temperature float64) *nn.Node {
	rows := logits.Rows
	q, window := make([]float32, 2*rows.Tokens()), make([]int, len(answers))
	for b, e := range rows.Example {
		if a := answers[e]; a != nil {
			tokens := a.Places[window[e]]
			window[e]++
			copy(q[2*rows.Starts[b]:2*rows.Starts[b+1]], a.Values[2*tokens.Start:2*tokens.End])
		}
	}
	if answered(answers) == 0 {
		return nil
	}
	return nn.SoftSpanLoss(logits.Nodes[0], contextTokens(rows), q, temperature, rows)
}
