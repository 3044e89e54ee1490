package parttest

import (
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

const width = 8 // of the hidden states

// labels are those of a head: tags of words must be such as mark spans, too.
var labels = []string{"O", "B-x", "I-x"}

// text is one text as an encoder would give it, between an opening and a closing special token.
type text struct {
	states    []float32 // [T width]
	words     []int     // row of each word that has one
	wordIndex []int     // that word's number
	wordCount int
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
		tags := make([]string, words)
		for w := range tags {
			tags[w] = labels[(i+w)%len(labels)]
		}
		x := text{wordCount: words, gold: corpus.Target{Tags: tags}}
		if answer == corpus.OneLabel {
			x.gold = corpus.Target{Label: labels[i%len(labels)]}
		}
		numbers.Number(&x.gold)

		x.add(r, x.gold.LabelID)
		for w := range words {
			if words == 7 && w == 6 {
				continue
			}
			x.words, x.wordIndex = append(x.words, x.tokens()), append(x.wordIndex, w)
			for range 1 + w%2 { // pieces
				x.add(r, signal(x.gold, w))
			}
		}
		x.add(r, x.gold.LabelID)
		texts = append(texts, x)
	}
	return texts
}

// signal is the label that the states of a word tell.
func signal(gold corpus.Target, word int) int {
	if gold.TagIDs != nil {
		return gold.TagIDs[word]
	}
	return gold.LabelID
}

// add appends a token's state: noise, and 2 in the feature of a label if there is one.
func (x *text) add(r *rand.Rand, label int) {
	state := make([]float32, width)
	for j := range state {
		state[j] = float32(r.NormFloat64())
	}
	if label >= 0 {
		state[label] += 2
	}
	x.states = append(x.states, state...)
}

// lone is a text of nothing but its first special token.
func lone(answer corpus.Answer) text {
	x := labelledTexts(answer)[0]
	x.states, x.words, x.wordIndex = x.states[:width], nil, nil
	return x
}

// unlabelled is a text without a gold answer.
func unlabelled(x text) text {
	x.gold = corpus.Target{}
	corpus.NewLabels(labels).Number(&x.gold)
	return x
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
		start := b.rows.Tokens()
		for k, row := range x.words {
			b.rows.Words = append(b.rows.Words, start+row)
			b.rows.WordIndex = append(b.rows.WordIndex, x.wordIndex[k])
		}
		b.states = append(b.states, x.states...)
		b.rows.Starts = append(b.rows.Starts, start+x.tokens())
		b.rows.WordCount = append(b.rows.WordCount, x.wordCount)
		b.rows.FirstToken = append(b.rows.FirstToken, 0)
		b.rows.Segment = append(b.rows.Segment, make([]int8, x.tokens())...)
		b.rows.Example = append(b.rows.Example, i)
		b.gold = append(b.gold, x.gold)
	}
	return b
}
