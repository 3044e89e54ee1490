package heads

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("crf", CRFOptions{Constraints: "none", Dropout: ModelDropout}, NewCRF) }

// CRFOptions are the keys that may stand beside `type: crf`.
type CRFOptions struct {
	Constraints string  `yaml:"constraints" choice:"none|bio" doc:"bio: tags that cannot follow each other in BIO or BIOES, as I-x after O, never do"`
	Dropout     float64 `yaml:"dropout" range:"[-1,1)" doc:"share of features hidden from the scorer in training; -1: model.dropout"`
}

// crf tags words by scores for each word and each move from a tag to the next: a linear-chain conditional random field.
type crf struct {
	drop   nn.Dropout
	score  *nn.Linear
	chain  *nn.CRF
	labels []string
}

var (
	_ Answerer = (*crf)(nil)
	_ Accepter = (*crf)(nil)
)

// NewCRF makes a crf head for the tags of site.
func NewCRF(o CRFOptions, site Site) (Head, error) {
	if site.Answer != corpus.TagPerWord {
		return nil, site.Refuse(corpus.TagPerWord)
	}
	if len(site.Labels) < 2 {
		return nil, fmt.Errorf("want at least 2 labels, have %q", site.Labels)
	}
	var forbidden []bool
	switch o.Constraints {
	case "none":
	case "bio":
		forbidden = impossibleMoves(site.Labels)
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

// Answers says that a word gets one tag.
func (h *crf) Answers() corpus.Answer { return corpus.TagPerWord }

func (h *crf) Scores(p *nn.Pass, seen nn.Hidden) Scores {
	return ScoresOf(seen, h.score.Apply(h.drop.Apply(p, words(seen)))) // [W L]
}

// Units counts the words that have a tag which training knows, of examples whose tags can be.
func (h *crf) Units(gold []corpus.Target) float64 {
	n := 0.0
	for i, t := range gold {
		if h.Accepts(t) == nil {
			n += TagPerWord{}.Units(gold[i : i+1])
		}
	}
	return n
}

// Loss is the sum of -log p(tags) over the examples that have some, nil if none has. Words whose tag is not known may
// have any. Tags that constraints forbid, which dev may have, have no loss: it would be infinite.
func (h *crf) Loss(_ *nn.Pass, scores Scores, gold []corpus.Target) *nn.Node {
	var chains []nn.Chain
	for e, words := range wordRows(scores.Rows) {
		var c nn.Chain
		known := false
		for w, k := range words {
			if k < 0 {
				continue
			}
			tag := corpus.Unlabelled
			if w < len(gold[e].TagIDs) {
				tag = gold[e].TagIDs[w]
			}
			c.Rows, c.Gold = append(c.Rows, k), append(c.Gold, tag)
			known = known || tag >= 0
		}
		if known && h.Accepts(gold[e]) == nil {
			chains = append(chains, c)
		}
	}
	if len(chains) == 0 {
		return nil
	}
	return h.chain.Loss(scores.Nodes[0], chains)
}

// Predict gives each example its likeliest tags together, and each tag's probability at its word.
func (h *crf) Predict(scores Scores) []corpus.Prediction {
	values := nn.Values(scores.Nodes[0])
	predictions := make([]corpus.Prediction, examples(scores.Rows))
	for e, words := range wordRows(scores.Rows) {
		p := &predictions[e]
		p.TagIDs, p.TagShares = make([]int, len(words)), make([]float32, len(words))
		var rows, at []int
		for w, k := range words {
			p.TagIDs[w] = -1
			if k >= 0 {
				rows, at = append(rows, k), append(at, w)
			}
		}
		if len(rows) == 0 {
			continue
		}
		tags, shares := h.chain.Decode(values, rows)
		for i, w := range at {
			p.TagIDs[w], p.TagShares[w] = tags[i], shares[i]
		}
	}
	return predictions
}

// Accepts refuses gold tags of which one cannot follow another.
func (h *crf) Accepts(t corpus.Target) error {
	if h.chain.Forbidden == nil {
		return nil
	}
	n := len(h.labels)
	from := n
	for w := range len(t.TagIDs) + 1 {
		to := n
		if w < len(t.TagIDs) {
			if to = t.TagIDs[w]; to < 0 {
				return nil // what is not known may be anything
			}
		}
		if h.chain.Forbidden[from*(n+1)+to] {
			return fmt.Errorf("%s, which constraints: bio forbids; the task's broken_tags: repair mends it", h.move(from, to, w))
		}
		from = to
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

// impossibleMoves lists the moves between tags that mark no spans in BIO, or in BIOES where there are tags E- or S-:
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
