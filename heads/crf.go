package heads

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() {
	Register("crf", CRFOptions{Constraints: "none", Dropout: ModelDropout}, NewCRF, outputs.Tags)
}

// CRFOptions are the keys that may stand beside `type: crf`.
type CRFOptions struct {
	Constraints string  `yaml:"constraints" choice:"none|bio" doc:"bio: tags that cannot follow each other in BIO or BIOES, as I-x after O, never do"`
	Dropout     float64 `yaml:"dropout" range:"[-1,1)" doc:"share of features hidden from the scorer in training; -1: model.dropout"`
}

// crf tags the words of a text together, a linear-chain conditional random field (Lafferty et al. 2001): by scores of
// each word's tags, e_t = W·x_t + b, and learned ones of each move A from a tag to the next, of the first tag and of the
// last. The tags y of n words have the probability
//
//	p(y | x) = exp(first[y_1] + Σ_t e_t[y_t] + Σ_t A[y_t, y_t+1] + last[y_n]) / Z
//
// with Z the sum of the same over all tags (forward algorithm, in log space). The loss is -log p of the gold tags,
// divided by the words; the answer is the likeliest y (Viterbi 1967). Moves that constraints forbid are in neither Z nor
// the answer.
type crf struct {
	drop   nn.Dropout
	score  *nn.Linear
	chain  *nn.CRF
	labels []string
}

var (
	_ Outputter       = (*crf)(nil)
	_ Accepter        = (*crf)(nil)
	_ plugin.Remarker = (*crf)(nil)
)

// NewCRF makes a crf head for the tags of site.
func NewCRF(o CRFOptions, site Site) (Head, error) {
	if site.Output != outputs.Tags {
		return nil, site.Refuse(outputs.Tags)
	}
	if len(site.Labels) < 2 {
		return nil, fmt.Errorf("want at least 2 labels, have %q", site.Labels)
	}
	var forbidden []bool
	switch o.Constraints {
	case "none":
	case "bio":
		if forbidden = impossibleMoves(site.Labels); !anyLength(forbidden, len(site.Labels)) {
			return nil, fmt.Errorf("constraints: bio: of the tags %s none can stand alone, so that some texts have none that fit; leave constraints out", strings.Join(site.Labels, ", "))
		}
	default:
		return nil, fmt.Errorf("no constraints %q; there is bio, none", o.Constraints)
	}
	drop, err := newDropout(o.Dropout, site)
	if err != nil {
		return nil, err
	}
	labels := len(site.Labels)
	return &crf{drop, nn.NewLinear(site.Params.In("score"), site.Width, labels), nn.NewCRF(site.Params.In("chain"), labels, forbidden), site.Labels}, nil
}

// Output says that a word gets one tag.
func (h *crf) Output() *outputs.Kind { return outputs.Tags }

func (h *crf) Scores(p *nn.Pass, seen nn.Hidden) Scores {
	return ScoresOf(seen, h.score.Apply(h.drop.Apply(p, words(seen)))) // [W L]
}

// Remarks tells of constraints that forbid nothing.
func (h *crf) Remarks() []string {
	if h.chain.Forbidden == nil || slices.Contains(h.chain.Forbidden, true) {
		return nil
	}
	return []string{"constraints: bio forbids nothing among the tags " + strings.Join(h.labels, ", ")}
}

// Units counts the words that have a tag which training knows, of examples whose tags can be.
func (h *crf) Units(gold []corpus.Target) float64 {
	n := 0.0
	for i, t := range outputs.Targets[outputs.TagsTarget](gold) {
		if t != nil && h.possible(t.IDs) {
			n += TagPerWord{}.Units(gold[i : i+1])
		}
	}
	return n
}

// Loss is the sum of -log p(tags) over the examples that have some, nil if none has. Words whose tag is not known may
// have any. Tags that constraints forbid, which dev may have, have no loss: it would be infinite.
func (h *crf) Loss(_ *nn.Pass, scores Scores, gold []corpus.Target) *nn.Node {
	targets := outputs.Targets[outputs.TagsTarget](gold)
	var chains []nn.Chain
	for e, words := range outputs.WordRows(scores.Rows) {
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
	return h.chain.Loss(scores.Nodes[0], chains)
}

// chainOf is the chain of those of an example's words that have a row, and their numbers: moves over words that have
// none, which were cut off or are no text, are free.
func chainOf(words []int) (c nn.Chain, at []int) {
	cut := false
	for w, k := range words {
		if k < 0 {
			cut = true
			continue
		}
		c.Rows, c.Free, at = append(c.Rows, k), append(c.Free, cut), append(at, w)
		cut = false
	}
	c.Free = append(c.Free, cut)
	return c, at
}

// possible tells whether there are tags that agree with the known ones and make no forbidden move.
func (h *crf) possible(ids []int) bool {
	if h.chain.Forbidden == nil {
		return true
	}
	n := len(h.labels)
	before, now := make([]bool, n+1), make([]bool, n+1) // tags that a word may have, n for the ends
	before[n] = true
	for w := range len(ids) + 1 {
		for to := range now {
			now[to] = false
			fits := to == n
			if w < len(ids) {
				fits = to < n && (ids[w] < 0 || ids[w] == to)
			}
			for from, reached := range before {
				now[to] = now[to] || fits && reached && !h.chain.Forbidden[from*(n+1)+to]
			}
		}
		before, now = now, before
	}
	return before[n]
}

// Predict gives each example its likeliest tags together, and each tag's probability at its word.
func (h *crf) Predict(scores Scores) []corpus.Prediction {
	values := nn.Values(scores.Nodes[0])
	predictions := make([]outputs.TagsPrediction, outputs.Examples(scores.Rows))
	for e, words := range outputs.WordRows(scores.Rows) {
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

// Accepts refuses gold tags of which one cannot follow another.
func (h *crf) Accepts(t corpus.Target) error {
	target := outputs.As[outputs.TagsTarget](t)
	if h.chain.Forbidden == nil || target == nil {
		return nil
	}
	n := len(h.labels)
	from, ids := n, target.IDs
	for w := range len(ids) + 1 {
		to := n
		if w < len(ids) {
			to = ids[w]
		}
		if from >= 0 && to >= 0 && h.chain.Forbidden[from*(n+1)+to] { // what is not known may be anything
			return fmt.Errorf("%s, which constraints: bio forbids; the task's broken_tags: repair mends it", h.move(from, to, w))
		}
		from = to
	}
	if !h.possible(ids) {
		return errors.New("no tags of the words without one fit between the others, as constraints: bio would have them; tag those words")
	}
	return nil
}

// move is what an error calls a move to the tag of word w.
func (h *crf) move(from, to, w int) string {
	switch n := len(h.labels); {
	case from == n:
		return fmt.Sprintf("the first tag is %q", h.labels[to])
	case to == n:
		return fmt.Sprintf("the last tag is %q", h.labels[from])
	}
	return fmt.Sprintf("tag %d is %q behind %q", w+1, h.labels[to], h.labels[from])
}

// anyLength tells whether there are tags for a text of any length: one of them may be first, last, and follow itself.
func anyLength(forbidden []bool, labels int) bool {
	for i := range labels {
		if !forbidden[labels*(labels+1)+i] && !forbidden[i*(labels+1)+i] && !forbidden[i*(labels+1)+labels] {
			return true
		}
	}
	return false
}

// impossibleMoves lists the moves between tags that mark no spans in BIO, or in BIOES for a label that has a tag E-:
// [L+1 L+1], L before the first word and behind the last. A label that has no tag B- may begin with I-.
func impossibleMoves(labels []string) []bool {
	n := len(labels)
	type tag struct {
		position byte
		label    string
	}
	tags, begins, ends := make([]tag, n+1), map[string]bool{}, map[string]bool{}
	tags[n] = tag{position: 'O'}
	for i, name := range labels {
		tags[i] = tag{position: 'O'}
		if name == "" || name == "O" {
			continue
		}
		tags[i] = tag{name[0], name[1:]}
		begins[name[1:]] = begins[name[1:]] || name[0] == 'B'
		ends[name[1:]] = ends[name[1:]] || name[0] == 'E'
	}
	forbidden := make([]bool, (n+1)*(n+1))
	for i, from := range tags {
		for j, to := range tags {
			open := from.position == 'B' || from.position == 'I' // a span may go on
			inner := to.position == 'I' || to.position == 'E'
			same := open && inner && from.label == to.label
			begun := inner && !same && begins[to.label] // goes on with what has not begun
			cut := open && !same && ends[from.label]    // does not end what has begun
			forbidden[i*(n+1)+j] = begun || cut
		}
	}
	return forbidden
}
