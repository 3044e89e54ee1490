package predict

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/tasks"
)

// Answer is what the model says about one text, a line of `predict`, or why it says nothing.
type Answer struct {
	Err   error                            `json:"-"`
	Text  string                           `json:"text"`
	Pair  string                           `json:"pair,omitempty"`
	Tasks map[string]map[string]HeadAnswer `json:"tasks"` // task → head → answer; without those about pairs, of a single text
}

// HeadAnswer is one head's answer: a label, labels, a number, what is hidden, or a tag a word and the spans they mark.
type HeadAnswer struct {
	Label       string   `json:"label,omitempty"`
	Probability *Share   `json:"probability,omitempty"`
	Labels      []Held   `json:"labels,omitzero"` // those that hold, the likeliest first
	Value       *float64 `json:"value,omitempty"`
	Alarm       *bool    `json:"alarm,omitempty"`  // Value is above what normal texts have; nil where dev had none to tell
	Hidden      []Hidden `json:"hidden,omitzero"`  // empty where the text hides nothing
	Quote       *Quote   `json:"answer,omitempty"` // empty where the context has none
	Spans       []Found  `json:"spans,omitzero"`   // nil where the task marks none, empty where there is none
	Tags        []string `json:"tags,omitzero"`
}

// Quote is a part of the second text of a pair, in bytes, End exclusive.
type Quote struct {
	Text        string `json:"text"`
	Start       int    `json:"start"`
	End         int    `json:"end"`
	Probability Share  `json:"probability"`
}

// Hidden is what a mask token of a text, or of its pair, is taken for.
type Hidden struct {
	Start   int     `json:"start"` // of the mask token, in bytes
	End     int     `json:"end"`
	InPair  bool    `json:"in_pair,omitempty"`
	Guesses []Guess `json:"guesses"` // the likeliest first
}

// Guess is a token, and how likely it is.
type Guess struct {
	Token       string `json:"token"`
	Probability Share  `json:"probability"`
}

// Held is a label that holds.
type Held struct {
	Label       string `json:"label"`
	Probability Share  `json:"probability"`
}

// Found is a span of a text, in bytes, End exclusive.
type Found struct {
	Label       string `json:"label"`
	Start       int    `json:"start"`
	End         int    `json:"end"`
	Text        string `json:"text"`
	Probability Share  `json:"probability"` // the mean of its words'
}

// Share is a probability, written with four digits.
type Share float64

// MarshalJSON writes a share as 0.9812.
func (s Share) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(s)) {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, math.Round(float64(s)*1e4)/1e4, 'f', -1, 64), nil
}

func headAnswer(tokenizer corpus.Tokenizer, kind tasks.Task, e *corpus.Example, p corpus.Prediction) HeadAnswer {
	switch kind.Answer() {
	case corpus.OneLabel:
		share := Share(p.Probabilities[p.LabelID])
		return HeadAnswer{Label: p.Label, Probability: &share}
	case corpus.ManyLabels:
		a := HeadAnswer{Labels: []Held{}}
		for i, id := range p.LabelIDs {
			a.Labels = append(a.Labels, Held{p.Labels[i], Share(p.Probabilities[id])})
		}
		slices.SortStableFunc(a.Labels, func(x, y Held) int { return cmp.Compare(y.Probability, x.Probability) })
		return a
	case corpus.Number, corpus.Likeness:
		return HeadAnswer{Value: finite(p.Value)}
	case corpus.Anomaly:
		return HeadAnswer{Value: finite(p.Value), Alarm: &p.Alarm}
	case corpus.HiddenTokens:
		return HeadAnswer{Hidden: hidden(tokenizer, e, p)}
	case corpus.Quoted:
		q := p.Quote
		return HeadAnswer{Quote: &Quote{q.Text, q.Span.Start, q.Span.End, Share(p.QuoteShare)}}
	}
	a := HeadAnswer{Tags: p.Tags}
	if finder, ok := kind.(tasks.SpanFinder); ok {
		a.Spans = []Found{}
		for _, span := range finder.Spans(p.Tags) {
			f := Found{Label: span.Label, Start: e.Words[span.Start].Start, End: e.Words[span.End-1].End}
			f.Text = e.Text[f.Start:f.End]
			for _, share := range p.TagShares[span.Start:span.End] {
				f.Probability += Share(share) / Share(span.End-span.Start)
			}
			a.Spans = append(a.Spans, f)
		}
	}
	return a
}

// hidden lists what the mask tokens of an example are taken for, in their order. Of one that several windows have, it is by
// the window that has it farthest from its ends.
func hidden(tokenizer corpus.Tokenizer, e *corpus.Example, p corpus.Prediction) []Hidden {
	type place struct {
		pair  bool
		start int
	}
	all, rooms, at := []Hidden{}, []int{}, map[place]int{}
	for _, guessed := range p.Guesses {
		w := e.Windows[guessed.Window]
		span, room := w.Offsets[guessed.Token], min(guessed.Token, len(w.IDs)-1-guessed.Token)
		h := Hidden{Start: span.Start, End: span.End, InPair: w.Types[guessed.Token] == 1 || w.Second}
		for _, g := range guessed.Best {
			h.Guesses = append(h.Guesses, Guess{tokenizer.Token(g.ID), Share(g.Share)})
		}
		switch i, there := at[place{h.InPair, h.Start}]; {
		case !there:
			at[place{h.InPair, h.Start}] = len(all)
			all, rooms = append(all, h), append(rooms, room)
		case room > rooms[i]:
			all[i], rooms[i] = h, room
		}
	}
	slices.SortFunc(all, func(a, b Hidden) int {
		switch {
		case a.InPair == b.InPair:
			return cmp.Compare(a.Start, b.Start)
		case a.InPair:
			return 1
		}
		return -1
	})
	return all
}

// finite returns v with seven digits, as float32 has them, for JSON, which has no infinite numbers: null.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	v, _ = strconv.ParseFloat(strconv.FormatFloat(v, 'g', 7, 64), 64)
	return &v
}
