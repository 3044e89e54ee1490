package heads

import (
	"errors"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() {
	Register("span", SpanOptions{MaxAnswerTokens: 30, Dropout: ModelDropout}, NewSpan, outputs.Span)
	DefaultFor("span", outputs.Span)
}

// SpanOptions are the keys that may stand beside `type: span`.
type SpanOptions struct {
	MaxAnswerTokens int     `yaml:"max_answer_tokens" range:"[1,4096]" doc:"tokens of the longest answer"`
	NoAnswer        bool    `yaml:"no_answer" doc:"whether a context may hold no answer, as in SQuAD 2.0; the score of the first token is that of none"`
	Margin          float64 `yaml:"margin" doc:"by how much the score of no answer must be above the best answer's, with no_answer; in scores, which are logarithms of probabilities but for a constant"`
	Dropout         float64 `yaml:"dropout" range:"[-1,1)" doc:"share of features hidden from the scorer in training; -1: model.dropout"`
}

// span scores each token h_i as the first and as the last of an answer (Devlin et al. 2019, section 4.2):
//
//	s_i = S·h_i    e_i = E·h_i    p(start=i) = softmax(s)_i    p(end=j) = softmax(e)_j
//
// over the tokens of the context and the text's first, which stands for no answer (section 4.3). The answer is the span
// i ≤ j < i + max_answer_tokens with the highest s_i + e_j, of all windows; its probability p(start=i)·p(end=j). The
// loss of a window is -(log p(start) + log p(end))/2 of the gold span, that of the first token where the window has it
// not. With no_answer there is none where s + e of the first token is above the answer's by more than margin.
type span struct {
	SpanOptions
	drop  nn.Dropout
	score *nn.Linear
}

var (
	_ Accepter = (*span)(nil)
)

// NewSpan makes a span head.
func NewSpan(o SpanOptions, env Env) (Head, error) {
	if err := plugin.Check(o); err != nil {
		return nil, err
	}
	switch {
	case o.Margin != 0 && !o.NoAnswer:
		return nil, errors.New("margin has no effect without no_answer: true")
	}
	drop, err := newDropout(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	return &span{o, drop, nn.NewLinear(env.Params.In("score"), env.Width, 2)}, nil
}

func (h *span) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	return LogitsOf(seen, h.score.Apply(h.drop.Apply(p, seen.States))) // [T 2]
}

// Units counts the windows of questions that have a target, be it that there is no answer.
func (h *span) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.Targets[outputs.SpanTarget](gold) {
		if t != nil {
			n += float64(len(t.Tokens))
		}
	}
	return n
}

// Loss is the mean of the cross entropies of start and end, summed over windows; nil if there are none. In a window
// that has not the answer, the first token is the right one.
func (h *span) Loss(_ *nn.Pass, scores Logits, gold []corpus.Target) *nn.Node {
	rows := scores.Rows
	targets := outputs.Targets[outputs.SpanTarget](gold)
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
	return nn.SpanLoss(scores.Nodes[0], contextTokens(rows), spans, rows)
}

// contextTokens are the tokens that an answer may begin or end with, [T]: each text's first, which stands for none, and
// those of its second segment that are not special.
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

// Predict gives each example its best answer over all windows, with its probability there: that of its start times that
// of its end.
func (h *span) Predict(scores Logits) []corpus.Prediction {
	rows, values := scores.Rows, nn.Values(scores.Nodes[0])
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
		starts, ends := shares(values, may, lo, hi, 0), shares(values, may, lo, hi, 1)
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

// dropUnlikely takes back answers whose score is below that of none.
func (h *span) dropUnlikely(predictions []outputs.SpanPrediction, best, none []float32) {
	for e := range predictions {
		if margin := none[e] - best[e]; float64(margin) > h.Margin {
			p := &predictions[e]
			p.Window, p.Tokens = 0, corpus.Span{}
			p.Probability = float32(1 / (1 + math.Exp(float64(-margin)))) // of none against the best answer
		}
	}
}

// shares are the probabilities of the tokens lo:hi as one side of a span, 0 where they cannot be it.
func shares(values []float32, may []bool, lo, hi, side int) []float32 {
	shares := make([]float32, hi-lo)
	for t := lo; t < hi; t++ {
		shares[t-lo] = float32(math.Inf(-1))
		if may[t] {
			shares[t-lo] = values[2*t+side]
		}
	}
	return nn.Softmax(shares)
}

// Accepts refuses a question without an answer, unless the head may say so.
func (h *span) Accepts(t corpus.Target) error {
	if target := outputs.As[outputs.SpanTarget](t); target != nil && len(target.Answers) == 0 && !h.NoAnswer {
		return errors.New("the question has no answer in its context; no_answer: true lets the head say so")
	}
	return nil
}
