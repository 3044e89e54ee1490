package heads

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// scored is what a head of one scorer scores for its site's answer: each text pooled into one row, or each word.
type scored struct {
	Objective
	rows func(seen nn.Hidden) *nn.Node // [B D] or [W D]
}

// newScored reads the option pool: cls, mean, max or attention.
func newScored(pool string, site Site) (scored, error) {
	if len(site.Labels) < 2 {
		return scored{}, fmt.Errorf("want at least 2 labels, have %q", site.Labels)
	}
	pools := map[string]func(nn.Hidden) *nn.Node{"cls": nn.ClsPool, "mean": nn.MeanPool, "max": nn.MaxPool}
	if pool == "attention" {
		pools[pool] = nn.NewAttentionPool(site.Params.In("pool"), site.Width).Apply
	}
	if pools[pool] == nil {
		return scored{}, fmt.Errorf("no pool %q; there is attention, cls, max, mean", pool)
	}

	switch site.Answer {
	case corpus.OneLabel:
		return scored{OneClass{}, pools[pool]}, nil
	case corpus.TagPerWord:
		if pool != "cls" {
			return scored{}, fmt.Errorf("pool %q: a head that tags words pools nothing", pool)
		}
		return scored{TagPerWord{}, words}, nil
	}
	return scored{}, fmt.Errorf("it answers one label or a tag for each word, but task %q asks for %s", site.Task, site.Answer)
}

// words returns the state of each word's first piece, [W D].
func words(seen nn.Hidden) *nn.Node { return nn.GatherRows(seen.States, seen.Rows.Words) }
