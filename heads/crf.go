package heads

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("crf", CRFOptions{Constraints: "none", Dropout: ModelDropout}, newCRF, outputs.Tags)
}

// CRFOptions are the keys that may stand beside `type: crf`.
type CRFOptions struct {
	Constraints string  `yaml:"constraints" choice:"none|bio" doc:"bio: no transition that BIO or BIOES forbids"`
	Dropout     float64 `yaml:"dropout" range:"[-1,1)" doc:"dropout rate before the output layer; -1: model.dropout"`
}

// crf is a linear-chain conditional random field over the tags of a text (Lafferty et al. 2001): with logits of each
// word's tags, e_t = W·x_t + b, and learned parameters A for each transition from a tag to the next, and for the first
// and the last tag. The tags y of n words have the probability
//
//	p(y | x) = exp(first[y_1] + Σ_t e_t[y_t] + Σ_t A[y_t, y_t+1] + last[y_n]) / Z
//
// with Z the sum of the same over all tags (forward algorithm, in log space). The loss is -log p of the gold tags,
// summed over texts and divided by the words with a gold tag; words without one may have any. The prediction is the
// likeliest y (Viterbi 1967), and a tag's probability its marginal.
//
// Transitions that constraints forbid are in neither Z nor the prediction. The words of a text are one chain, whatever
// the windows that their logits come from. A word without a token, or beyond the end of a truncated text, is not in it:
// where such words are left out, between two words or before the first or after the last, no transition is forbidden,
// and the learned A, first or last counts all the same. So a tag that needs a successor may be the last of a truncated
// text. Training data whose tags break the constraints is an error; such texts of dev and test have predictions and
// count in metrics, but not in the loss.
type crf struct {
	pooling
	drop   nn.Dropout
	score  *nn.Linear
	chain  *nn.CRF
	labels []string

	warnings []string // of constraints that forbid nothing
}

func newCRF(o CRFOptions, env Env) (Head, error) {
	if len(env.Labels) < 2 {
		return nil, &LabelsError{2, env.Labels}
	}
	var constraints *nn.Transitions
	var warnings []string
	if o.Constraints == "bio" {
		if constraints = bioTransitions(env.Labels); !allowsAnyLength(constraints, len(env.Labels)) {
			return nil, fmt.Errorf("constraints: bio: of the tags %s none can stand alone, "+
				"so some texts have no allowed tags; leave constraints out", strings.Join(env.Labels, ", "))
		}
		if constraints.AllAllowed() {
			warnings = []string{"constraints: bio forbids nothing among the tags " + strings.Join(env.Labels, ", ")}
		}
	}
	rate, err := dropoutRate(o.Dropout, env)
	if err != nil {
		return nil, err
	}
	labels := len(env.Labels)
	score := nn.NewLinear(env.Params.In("score"), env.Width, labels)
	chain := nn.NewCRF(env.Params.In("chain"), labels, constraints)
	return &crf{words, nn.NewDropout(env.Params.In("drop"), rate), score, chain, env.Labels, warnings}, nil
}

func (h *crf) Describe() Description {
	return Description{Output: outputs.Tags, Warnings: h.warnings, CheckTarget: h.checkTarget, Reads: h.reads,
		Soft: softWords(h.marginals, h.softLoss)}
}

func (h *crf) Logits(p *nn.Pass, seen nn.Hidden) Logits {
	return LogitsOf(seen, h.score.Apply(h.drop.Apply(p, h.pool(seen)))) // [W L]
}

// Units counts the words whose tag occurs in training, of examples whose tags the constraints allow.
func (h *crf) Units(gold []corpus.Target) float64 {
	n := 0.0
	for i, t := range outputs.AllAs[outputs.TagsTarget](gold) {
		if t != nil && h.possible(t.IDs) {
			n += TagPerWord{}.Units(gold[i : i+1])
		}
	}
	return n
}

// Loss is the sum of -log p(tags) over the tagged examples, nil if there are none. Words without a known tag may have
// any. Examples whose tags the constraints forbid, which dev may have, are left out: their loss would be infinite.
func (h *crf) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.AllAs[outputs.TagsTarget](gold)
	var chains []nn.Chain
	for e, words := range outputs.WordRows(logits.Rows) {
		c, at := chainOf(words)
		known := false
		for _, w := range at {
			tag := corpus.Unlabelled
			if t := targets[e]; t != nil && w < len(t.IDs) {
				tag = t.IDs[w]
			}
			c.Gold = append(c.Gold, tag)
			known = known || tag >= 0
		}
		if known && h.possible(targets[e].IDs) {
			chains = append(chains, c)
		}
	}
	if len(chains) == 0 {
		return nil
	}
	return h.chain.Loss(logits.Nodes[0], chains)
}

// chainOf returns the chain of an example's words that have a row, and their numbers. Words without a row, which were
// truncated or have no tokens, leave a gap.
func chainOf(words []int) (c nn.Chain, at []int) {
	gap := false
	for w, k := range words {
		if k < 0 {
			gap = true
			continue
		}
		c.Rows, c.Gaps, at = append(c.Rows, k), append(c.Gaps, gap), append(at, w)
		gap = false
	}
	c.Gaps = append(c.Gaps, gap)
	return c, at
}

// possible reports whether some tags agree with the known ones and make no forbidden transition.
func (h *crf) possible(ids []int) bool {
	allowed := h.chain.Constraints
	if allowed == nil {
		return true
	}
	reached := []int{allowed.Start()} // the tags that a word may have, given those of the words before it
	for _, id := range ids {
		var next []int
		for to := range h.labels {
			follows := func(from int) bool { return allowed.Allowed(from, to) }
			if (id < 0 || id == to) && slices.ContainsFunc(reached, follows) {
				next = append(next, to)
			}
		}
		reached = next
	}
	return slices.ContainsFunc(reached, func(from int) bool { return allowed.Allowed(from, allowed.End()) })
}

func (h *crf) Predict(logits Logits) []corpus.Prediction {
	values := nn.Values(logits.Nodes[0])
	predictions := make([]outputs.TagsPrediction, outputs.Examples(logits.Rows))
	for e, words := range outputs.WordRows(logits.Rows) {
		p := &predictions[e]
		p.IDs, p.Probabilities = slices.Repeat([]int{-1}, len(words)), make([]float32, len(words))
		c, at := chainOf(words)
		if len(at) == 0 {
			continue
		}
		tags, probabilities := h.chain.Decode(values, c)
		for i, w := range at {
			p.IDs[w], p.Probabilities[w] = tags[i], probabilities[i]
		}
	}
	return outputs.Erase(predictions)
}

// marginals writes those of each word that has a row.
func (h *crf) marginals(logits *nn.Node, words [][]int, temperature float64, write func(e, w int, p []float32)) {
	chains, at, of := chainsOf(words)
	for i, p := range h.chain.Marginals(nn.Values(logits), chains, temperature) {
		for t, w := range at[i] {
			write(of[i], w, p[t*len(h.labels):(t+1)*len(h.labels)])
		}
	}
}

// softLoss leaves words without an answer out of the chains, as a teacher does whose text was truncated.
func (h *crf) softLoss(logits *nn.Node, words [][]int, q []float32, temperature float64) *nn.Node {
	chains, _, _ := chainsOf(words)
	return h.chain.SoftLoss(logits, chains, q, temperature)
}

// chainsOf returns the chains of the examples that have words with a row, the numbers of these words, and the examples.
func chainsOf(words [][]int) (chains []nn.Chain, at [][]int, of []int) {
	for e := range words {
		if c, w := chainOf(words[e]); len(w) > 0 {
			chains, at, of = append(chains, c), append(at, w), append(of, e)
		}
	}
	return chains, at, of
}

func (h *crf) checkTarget(t corpus.Target) error {
	target := outputs.As[outputs.TagsTarget](t)
	allowed := h.chain.Constraints
	if allowed == nil || target == nil {
		return nil
	}
	from, ids := allowed.Start(), target.IDs
	for w := range len(ids) + 1 {
		to := allowed.End()
		if w < len(ids) {
			to = ids[w]
		}
		if from >= 0 && to >= 0 && !allowed.Allowed(from, to) { // an unknown tag may be any
			return fmt.Errorf("%s, which constraints: bio forbids; the task's broken_tags: repair fixes it",
				h.transition(from, to, w))
		}
		from = to
	}
	if !h.possible(ids) {
		return errors.New("constraints: bio allows no tags for the words without one; tag those words")
	}
	return nil
}

func (h *crf) transition(from, to, w int) string {
	switch {
	case from == h.chain.Constraints.Start():
		return fmt.Sprintf("the first tag is %q", h.labels[to])
	case to == h.chain.Constraints.End():
		return fmt.Sprintf("the last tag is %q", h.labels[from])
	}
	return fmt.Sprintf("tag %d is %q after %q", w+1, h.labels[to], h.labels[from])
}

// allowsAnyLength reports whether texts of any length have allowed tags: one tag may be first, follow itself and be
// last.
func allowsAnyLength(t *nn.Transitions, labels int) bool {
	for i := range labels {
		if t.Allowed(t.Start(), i) && t.Allowed(i, i) && t.Allowed(i, t.End()) {
			return true
		}
	}
	return false
}

// bioTransitions forbids the transitions between tags that mark no spans in BIO, or in BIOES for a label that has a tag
// E-. A label that has no tag B- may begin with I-.
func bioTransitions(labels []string) *nn.Transitions {
	type tag struct {
		position byte
		label    string
	}
	outside := tag{position: 'O'}
	tags, begins, ends := make([]tag, len(labels)), map[string]bool{}, map[string]bool{}
	for i, name := range labels {
		if tags[i] = outside; name == "" || name == "O" {
			continue
		}
		tags[i] = tag{name[0], name[1:]}
		begins[name[1:]] = begins[name[1:]] || name[0] == 'B'
		ends[name[1:]] = ends[name[1:]] || name[0] == 'E'
	}

	t := nn.NewTransitions(len(labels))
	forbid := func(i int, from tag, j int, to tag) {
		open := from.position == 'B' || from.position == 'I' // a span may go on
		inner := to.position == 'I' || to.position == 'E'
		same := open && inner && from.label == to.label
		notBegun := inner && !same && begins[to.label] // goes on with a span that has not begun
		notEnded := open && !same && ends[from.label]  // does not end the span that has begun
		if notBegun || notEnded {
			t.Forbid(i, j)
		}
	}
	for i, from := range tags {
		forbid(t.Start(), outside, i, from) // before the first word and after the last stands no span
		forbid(i, from, t.End(), outside)
		for j, to := range tags {
			forbid(i, from, j, to)
		}
	}
	return t
}
