package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// TagPerWord is the objective of a head that gives each word one tag: cross entropy over scores [W L], a row for each
// of seen.Rows.Words. Its zero value is ready to be embedded.
type TagPerWord struct{ loss labelLoss }

// Answers says that a word gets one tag.
func (TagPerWord) Answers() corpus.Answer { return corpus.TagPerWord }

// Units counts the words that have a tag which training knows, each as often as its tag weighs. Words that no window
// holds have none: see corpus.Example.Locate.
func (w TagPerWord) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range gold {
		for _, id := range t.TagIDs {
			if id >= 0 {
				n += w.loss.weight(id)
			}
		}
	}
	return n
}

// Loss is the cross entropy summed over tagged words that have a row, nil if there are none.
func (w TagPerWord) Loss(_ *nn.Pass, scores Scores, gold []corpus.Target) *nn.Node {
	tags, any := make([]int, len(scores.Rows.Words)), false
	for k := range tags {
		tags[k] = corpus.Unlabelled
	}
	for e, words := range wordRows(scores.Rows) {
		for i, k := range words {
			if k >= 0 && i < len(gold[e].TagIDs) {
				tags[k] = gold[e].TagIDs[i]
				any = any || tags[k] >= 0
			}
		}
	}
	if !any {
		return nil
	}
	return w.loss.over(nil).CrossEntropy(scores.Nodes[0], tags)
}

// Predict gives each word its likeliest tag and that tag's probability.
func (TagPerWord) Predict(scores Scores) []corpus.Prediction {
	predictions := make([]corpus.Prediction, examples(scores.Rows))
	values := nn.Values(scores.Nodes[0])
	tags := len(values) / max(1, len(scores.Rows.Words))
	for e, words := range wordRows(scores.Rows) {
		p := &predictions[e]
		p.TagIDs, p.TagShares = make([]int, len(words)), make([]float32, len(words))
		for w, k := range words {
			if k < 0 {
				p.TagIDs[w] = -1
				continue
			}
			shares := nn.Softmax(values[k*tags : (k+1)*tags])
			p.TagIDs[w] = largest(shares)
			p.TagShares[w] = shares[p.TagIDs[w]]
		}
	}
	return predictions
}

// wordRows returns, for each word of each example, its place in rows.Words, -1 for none. Of a word that stands in
// several texts it is the one with most tokens on its shorter side.
func wordRows(rows nn.Rows) [][]int {
	places := make([][]int, examples(rows))
	for b, e := range rows.Example {
		for len(places[e]) < rows.WordCount[b] {
			places[e] = append(places[e], -1)
		}
	}
	sides := make([]int, len(rows.Words)) // tokens on the shorter side
	b := 0
	for k, row := range rows.Words {
		for row >= rows.Starts[b+1] {
			b++
		}
		sides[k] = min(row-rows.Starts[b], rows.Starts[b+1]-1-row)
		word := &places[rows.Example[b]][rows.WordIndex[k]]
		if *word < 0 || sides[k] > sides[*word] {
			*word = k
		}
	}
	return places
}
