package parttest

import (
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
)

const (
	width  = 8 // of the hidden states
	layers = 3 // whose states a fusion may ask for
)

// labels are those of a head: tags of words must be such as mark spans, too.
var labels = []string{"O", "B-x", "I-x"}

// text is one text as an encoder would give it, between an opening and a closing special token.
type text struct {
	states    []float32 // [T width]
	words     []int     // row of each word that has one
	wordIndex []int     // that word's number
	wordCount int
	segment   []int8    // [T]; nil for zeros
	second    []float32 // [T' width] states of the pair's second text, encoded apart; nil for none
	gold      corpus.Target
}

// tokens returns T.
func (x text) tokens() int { return len(x.states) / width }

// labelledTexts returns texts of 1 to 7 words whose states tell the label, or the tag of each word. The longest is cut
// off: its last word has no row.
func labelledTexts(answer corpus.Answer) []text {
	r := rand.New(rand.NewPCG(1, 2))
	numbers := corpus.NewLabels(labels)
	var texts []text
	for i, words := range []int{3, 1, 7, 2, 4, 5} {
		if answer == corpus.Quoted {
			texts = append(texts, quotedText(r, words+2, i%words))
			continue
		}
		x := text{wordCount: words, gold: goldOf(answer, i, words)}
		numbers.Number(&x.gold)
		if answer == corpus.Likeness {
			other := text{}
			other.add(r, (i+int(*x.gold.Value))%len(labels)) // the same signal where they are alike
			other.add(r, (i+int(*x.gold.Value))%len(labels))
			x.second = other.states
		}

		x.add(r, signals(x.gold)...)
		for w := range words {
			if words == 7 && w == 6 {
				continue
			}
			x.words, x.wordIndex = append(x.words, x.tokens()), append(x.wordIndex, w)
			for range 1 + w%2 { // pieces
				if x.gold.TagIDs != nil {
					x.add(r, x.gold.TagIDs[w])
				} else if x.gold.HiddenIDs != nil {
					x.add(r, int(x.gold.HiddenIDs[w]))
				} else {
					x.add(r, signals(x.gold)...)
				}
			}
		}
		x.add(r, signals(x.gold)...)
		texts = append(texts, x)
	}
	return texts
}

// quotedText is a question of one token and a context of some, of which one, or two, are the answer.
func quotedText(r *rand.Rand, context, answer int) text {
	const question = 3 // [CLS], the question, [SEP]
	tokens := corpus.Span{Start: question + answer, End: question + answer + 1 + context%2}
	x := text{gold: corpus.Target{Quotes: []corpus.Quote{{Text: "answer"}}, QuoteTokens: []corpus.Span{tokens}}}
	for row := range question + context + 1 {
		segment := int8(0)
		if row >= question {
			segment = 1
		}
		x.segment = append(x.segment, segment)
		switch row {
		case tokens.Start:
			x.add(r, 0)
		case tokens.End - 1:
			x.add(r, 1)
		default:
			x.add(r, 2)
		}
	}
	x.gold.LabelID = corpus.Unlabelled
	return x
}

// goldOf is the answer for text number i, of some words.
func goldOf(answer corpus.Answer, i, words int) corpus.Target {
	switch answer {
	case corpus.OneLabel:
		return corpus.Target{Label: labels[i%len(labels)]}
	case corpus.ManyLabels:
		t := corpus.Target{Labels: []string{}}
		for c, label := range labels {
			if (i+1)>>c&1 == 1 {
				t.Labels = append(t.Labels, label)
			}
		}
		return t
	case corpus.Number, corpus.Likeness:
		v := float64(i % len(labels))
		return corpus.Target{Value: &v}
	case corpus.Anomaly: // the last text of three is one
		v := float64(i % len(labels) / (len(labels) - 1))
		return corpus.Target{Value: &v}
	case corpus.HiddenTokens: // of each word's first piece, those of words that are cut off not
		ids := make([]int32, min(words, 6))
		for w := range ids {
			ids[w] = int32((i + w) % len(labels))
		}
		return corpus.Target{HiddenIDs: ids}
	}
	tags := make([]string, words)
	for w := range tags {
		tags[w] = labels[(i%2+w)%len(labels)] // from O or B-x on
	}
	return corpus.Target{Tags: tags}
}

// signals are the labels that the states of a text's tokens tell.
func signals(gold corpus.Target) []int {
	switch {
	case gold.Labels != nil:
		return gold.LabelIDs
	case gold.Value != nil:
		return []int{int(*gold.Value)}
	case gold.LabelID >= 0:
		return []int{gold.LabelID}
	}
	return nil
}

// add appends a token's state: noise, and 2 in the features of labels.
func (x *text) add(r *rand.Rand, labels ...int) {
	state := make([]float32, width)
	for j := range state {
		state[j] = float32(r.NormFloat64())
	}
	for _, label := range labels {
		state[label] += 2
	}
	x.states = append(x.states, state...)
}

// lone is a text of nothing but its first special token.
func lone(answer corpus.Answer) text {
	x := labelledTexts(answer)[0]
	x.states, x.words, x.wordIndex, x.gold.HiddenIDs = x.states[:width], nil, nil, nil
	if answer == corpus.Quoted {
		x.segment, x.gold.QuoteTokens = x.segment[:1], make([]corpus.Span, 1)
	}
	return x
}

// unlabelled is a text without a gold answer.
func unlabelled(x text) text {
	x.gold = corpus.Target{}
	corpus.NewLabels(labels).Number(&x.gold)
	return x
}

// attention is how many maps an encoder shows of a text.
var attention = heads.Attention{Layers: 2, Heads: 1}

// showAttention shows maps of each text that depend on its states.
func (b batch) showAttention(p *nn.Pass) {
	for text := range b.rows.Texts() {
		lo, hi := b.rows.Starts[text], b.rows.Starts[text+1]
		tokens := hi - lo
		maps := make([]float32, 0, attention.Layers*tokens*tokens)
		for layer := range attention.Layers {
			for i := range tokens {
				row := make([]float32, tokens)
				for j := range row {
					row[j] = b.states[(lo+i)*width+layer] * b.states[(lo+j)*width+layer+1]
				}
				maps = append(maps, nn.Softmax(row)...)
			}
		}
		p.Keep("attention", text, []int{attention.Layers, attention.Heads, tokens, tokens}, maps)
	}
}

// batch is texts packed one after the other.
type batch struct {
	states []float32 // [T width]
	rows   nn.Rows
	gold   []corpus.Target
}

func pack(texts ...text) batch {
	b := batch{rows: nn.Rows{Starts: []int{0}}}
	for i, x := range texts {
		b.add(x, i, false)
		b.gold = append(b.gold, x.gold)
		if x.second != nil {
			b.add(text{states: x.second}, i, true)
		}
	}
	return b
}

// packWindows packs each text as two windows of one example. The states of the second are those of the first times by.
// Second texts of pairs have one window.
func packWindows(by float32, texts ...text) batch {
	b := batch{rows: nn.Rows{Starts: []int{0}}}
	for i, x := range texts {
		b.add(x, i, false)
		again := x
		again.states = slices.Clone(x.states)
		for k := range again.states {
			again.states[k] *= by
		}
		b.add(again, i, false)
		gold := x.gold
		if gold.QuoteTokens != nil {
			gold.QuoteTokens = slices.Repeat(gold.QuoteTokens, 2) // of each window
		}
		b.gold = append(b.gold, gold)
		if x.second != nil {
			b.add(text{states: x.second}, i, true)
		}
	}
	return b
}

// add appends a text of example number i.
func (b *batch) add(x text, i int, second bool) {
	start := b.rows.Tokens()
	for k, row := range x.words {
		if x.gold.HiddenIDs != nil {
			b.rows.Hidden = append(b.rows.Hidden, start+row)
		}
		b.rows.Words = append(b.rows.Words, start+row)
		b.rows.WordIndex = append(b.rows.WordIndex, x.wordIndex[k])
	}
	b.states = append(b.states, x.states...)
	b.rows.Starts = append(b.rows.Starts, start+x.tokens())
	b.rows.WordCount = append(b.rows.WordCount, x.wordCount)
	if x.segment == nil {
		x.segment = make([]int8, x.tokens())
	}
	b.rows.Segment = append(b.rows.Segment, x.segment...)
	b.rows.Example = append(b.rows.Example, i)
	b.rows.Second = append(b.rows.Second, second)
}
