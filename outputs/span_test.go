package outputs

import (
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
)

// Tokens of byte pairs have the blank before a word in them, and those of Unigram that after a mark.
func TestAnAnswerHasNoWhiteSpaceAtItsEnds(t *testing.T) {
	const context = "Open  from 9 to 5 . "
	e := &corpus.Example{Pair: context, Windows: []corpus.Encoding{{
		Offsets: []corpus.Span{{Start: 0, End: 4}, {Start: 4, End: 10}, {Start: 10, End: 18}, {Start: 18, End: 20},
			{Start: 4, End: 6}},
	}}}
	for _, c := range []struct {
		first, end int // tokens
		want       string
		start      int
	}{{1, 3, "from 9 to 5", 6}, {0, 2, "Open  from", 0}, {3, 4, ".", 18}, {4, 5, "  ", 4}} {
		p := &SpanPrediction{Tokens: corpus.Span{Start: c.first, End: c.end}}
		extractSpan(p, e, nil)
		if at := p.Answer.Span; p.Answer.Text != c.want || at.Start != c.start || at.End != c.start+len(c.want) {
			t.Errorf("tokens %d to %d: %+v, want %q at %d", c.first, c.end, p.Answer, c.want, c.start)
		}
	}
}
