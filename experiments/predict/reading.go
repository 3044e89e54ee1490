package predict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
)

// reading is an example as the groups of a predictor read it.
type reading struct {
	*corpus.Example
	form   Form
	err    error          // no task reads it
	by     []groupReading // by group, without err
	tokens int            // that the encoder reads, of all groups
}

// groupReading has copies of an example with their tokens: as it is, and word by word; nil where no task reads it so.
type groupReading struct {
	text, words *corpus.Example
	truncated   int // tokens that are not read, of the copy that lost most
	windows     int // of the copy that has most
}

// read encodes an example for all groups. Several goroutines may call it at once.
func (p *Predictor) read(e *corpus.Example, form Form) reading {
	r := reading{Example: e, form: form, err: p.check(e, form)}
	if r.err != nil {
		return r
	}
	r.by = make([]groupReading, len(p.groups))
	for i, g := range p.groups {
		by := &r.by[i]
		if len(g.text.Tasks) > 0 {
			by.text = p.encode(g, e, false)
		}
		if len(g.words.Tasks) > 0 {
			by.words = p.encode(g, e, true)
		}
		for _, own := range []*corpus.Example{by.text, by.words} {
			if own == nil {
				continue
			}
			truncated := g.windowing.TruncatedTokens(p.tokenizer, own)
			by.truncated, by.windows = max(by.truncated, truncated), max(by.windows, windowsOf(own))
			if truncated > 0 && e.Words == nil && !form.AllWords {
				own.Words = slices.Clone(own.Words[:wordsRead(own)])
			}
		}
		if by.text != nil && (by.words == nil || !sameTokens(by.text, by.words)) {
			r.tokens += by.text.Tokens()
		}
		if by.words != nil {
			r.tokens += by.words.Tokens()
		}
	}
	return r
}

// cloneExample returns a copy of what is read of an example: a queue may read it after the context of its call has
// ended, when the caller may change its own.
func cloneExample(e *corpus.Example) *corpus.Example {
	own := *e
	own.Words = slices.Clone(e.Words)
	return &own
}

// checkTexts returns an error for an example whose text is empty, or one of whose texts is not UTF-8. A text that is
// read from a file has been checked as it was read, and may be empty: no row of the file is lost.
func checkTexts(e *corpus.Example) error {
	if e.Text == "" {
		return placed(e, errors.New("the text is empty"))
	}
	if err := corpus.CheckUTF8(e.Text); err != nil {
		return placed(e, fmt.Errorf("the text is %w", err))
	}
	if err := corpus.CheckUTF8(e.Pair); err != nil {
		return placed(e, fmt.Errorf("the pair is %w", err))
	}
	return nil
}

// placed returns an error with the place of its example, where that has one.
func placed(e *corpus.Example, err error) error {
	if place := e.Place.String(); place != "" {
		return fmt.Errorf("%s: %w", place, err)
	}
	return err
}

// windowsOf returns the number of windows of an example's text; a pair that is encoded separately has its own.
func windowsOf(e *corpus.Example) (n int) {
	for _, w := range e.Windows {
		if !w.Second {
			n++
		}
	}
	return n
}

// wordsRead returns the number of words of an example up to the last that has a token.
func wordsRead(e *corpus.Example) (n int) {
	for _, w := range e.Windows {
		for _, word := range w.Words {
			n = max(n, int(word)+1)
		}
	}
	return n
}

// encode returns a copy of an example with its tokens; if words is true, by words, which are split from the text if
// need be.
func (p *Predictor) encode(g *windowGroup, e *corpus.Example, words bool) *corpus.Example {
	own := *e
	if words && own.Words == nil {
		own.Words = corpus.Splitter(g.splitWords, p.tokenizer)(own.Text)
	}
	own.Windows = g.windowing.Encode(p.tokenizer, &own)
	return &own
}
