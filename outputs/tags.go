package outputs

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Tags is the kind of outputs that are a tag for each word.
var Tags = Register(Spec[*TagsTarget, *TagsPrediction]{
	Name: "tags", Description: "a tag for each word", Field: "tags", Traits: Traits{PerWord: true, HasLabels: true},
	Names: func(t *TagsTarget, visit func(name *string)) {
		for i := range t.Tags {
			if t.Tags[i] != "" {
				visit(&t.Tags[i])
			}
		}
	},
	AssignIDs:      func(t *TagsTarget, labels *corpus.Labels) { t.IDs = labels.IDs(t.Tags) },
	Unknown:        func(t *TagsTarget) []string { return unknown(t.Tags, t.IDs) },
	Locate:         locateTags,
	Count:          countTags,
	Right:          rightTags,
	NamePrediction: nameTags,
	JSON:           tagsJSON,
	Data:           tagsData,
	Gold:           goldTags,
	Finds:          findsTags,
	Rate:           func(rate float64) string { return fmt.Sprintf("%.1f %% of words in spans", 100*rate) },
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["tags"],
		"properties": {
			"words": {"type": "array", "items": {
				"type": "array", "items": {"type": "integer", "minimum": 0}, "minItems": 2, "maxItems": 2
			}},
			"tags": {"type": "array", "items": {"type": ["string", "null"]}},
			"spans": {"type": "array", "items": {
				"type": "object", "additionalProperties": false,
				"required": ["label", "start", "end", "text", "probability"],
				"properties": {
					"label": {"type": "string"}, "text": {"type": "string"},
					"start": {"type": "integer", "minimum": 0}, "end": {"type": "integer", "minimum": 0},
					"probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1}
				}
			}}
		}
	}`,
	Answers: tagAnswers,
})

// TagsTarget is a gold tag for each word of an example.
type TagsTarget struct {
	Tags []string // "" for a word without one
	IDs  []int    // their numbers; corpus.Unlabelled also for a word that is in no window
}

// TagsPrediction is a predicted tag for each word of an example.
type TagsPrediction struct {
	IDs           []int     // -1 for words without a token
	Probabilities []float32 // of each of IDs, 0 if that is -1
	Tags          []string  // "O" for words without a token, as metrics count them; null in JSON
}

// TagSpan is a span of words with a label: words Start to End, End exclusive.
type TagSpan struct {
	Label      string
	Start, End int
}

// TagsAnswer is the JSON of a prediction.
type TagsAnswer struct {
	Spans []TagSpanAnswer `json:"spans,omitzero"` // nil if the task's tags mark no spans, empty if there are none
	// Words has the start and end of each word; nil if the words were given.
	Words [][2]int  `json:"words,omitzero"`
	Tags  []*string `json:"tags,omitzero"` // nil for a word without a token, as in the rest of a truncated text
}

// TagSpanAnswer is a span of a text, End exclusive.
type TagSpanAnswer struct {
	Label       string      `json:"label"`
	Start       int         `json:"start"`
	End         int         `json:"end"`
	Text        string      `json:"text"`
	Probability Probability `json:"probability"` // the mean of its words'
}

func tagsJSON(p *TagsPrediction, in Input) any {
	var words [][2]int
	if in.SplitWords {
		words = make([][2]int, len(in.Example.Words))
		for w, word := range in.Example.Words {
			at := in.Offsets(InText, word)
			words[w] = [2]int{at.Start, at.End}
		}
	}
	return TagsAnswer{spansOfTags(p, in), words, readTags(p)}
}

// tagsData returns the tag of each word. One that was not read has none, but is outside of spans, as metrics count it.
func tagsData(p *TagsPrediction, in Input) any {
	if in.Spans != nil {
		return p.Tags
	}
	return readTags(p)
}

// goldTags returns the gold tag of each word, nil for one that has none.
func goldTags(t *TagsTarget, _ Input) any {
	tags := make([]*string, len(t.Tags))
	for w := range t.Tags {
		if t.Tags[w] != "" {
			tags[w] = &t.Tags[w]
		}
	}
	return tags
}

func readTags(p *TagsPrediction) []*string {
	tags := make([]*string, len(p.Tags))
	for w := range p.Tags {
		if p.IDs[w] >= 0 {
			tags[w] = &p.Tags[w]
		}
	}
	return tags
}

// spansOfTags lists the spans that predicted tags mark; nil if the task's tags mark none.
func spansOfTags(p *TagsPrediction, in Input) []TagSpanAnswer {
	if in.Spans == nil {
		return nil
	}
	all, e := []TagSpanAnswer{}, in.Example
	for _, span := range in.Spans(p.Tags) {
		place := corpus.Span{Start: e.Words[span.Start].Start, End: e.Words[span.End-1].End}
		at := in.Offsets(InText, place)
		found := TagSpanAnswer{Label: span.Label, Start: at.Start, End: at.End, Text: e.Text[place.Start:place.End]}
		for _, probability := range p.Probabilities[span.Start:span.End] {
			found.Probability += Probability(probability) / Probability(span.End-span.Start)
		}
		all = append(all, found)
	}
	return all
}

// tagAnswers returns the tags of words other than "O", with their logits in [W L].
func tagAnswers(p *TagsPrediction, in Input, rows nn.Rows, example int, shape []int) (all []Answer) {
	for w, k := range WordRows(rows)[example] {
		if k < 0 || p.IDs[w] < 0 {
			continue
		}
		if tag := in.Labels.Name(p.IDs[w]); tag != "O" {
			all = append(all, Answer{tag, w, []int{k*shape[1] + p.IDs[w]}, []int{textOf(rows, rows.Words[k])}})
		}
	}
	return all
}

// locateTags unlabels words that are in no window, as in a truncated text: they are not learned.
func locateTags(t *TagsTarget, e *corpus.Example) {
	there := e.WordsInWindows()
	for w := range t.IDs {
		if !there[w] {
			t.IDs[w] = corpus.Unlabelled
		}
	}
}

func countTags(t *TagsTarget) Count {
	c := Count{Labels: t.IDs}
	for _, id := range t.IDs {
		if id >= 0 {
			c.Units++
		}
	}
	return c
}

// rightTags reports whether all words with a gold tag have that tag.
func rightTags(t *TagsTarget, p *TagsPrediction) bool {
	for i, tag := range t.Tags {
		if tag != "" && p.Tags[i] != tag {
			return false
		}
	}
	return true
}

// findsTags counts the words that have a tag of a span, if the task's tags mark spans.
func findsTags(p *TagsPrediction) (found, words int) {
	for w, id := range p.IDs {
		if id >= 0 {
			words++
			if p.Tags[w] != "O" {
				found++
			}
		}
	}
	return found, words
}

func nameTags(p *TagsPrediction, _ *corpus.Example, labels *corpus.Labels) {
	p.Tags = make([]string, len(p.IDs))
	for i, id := range p.IDs {
		p.Tags[i] = "O"
		if id >= 0 {
			p.Tags[i] = labels.Name(id)
		}
	}
}

// Examples returns the number of examples in a batch.
func Examples(rows nn.Rows) int {
	n := 0
	for _, e := range rows.Example {
		n = max(n, e+1)
	}
	return n
}

// WordRows returns, for each word of each example, its index in rows.Words, -1 for none. For a word in several windows
// it is the one with most tokens on its shorter side.
func WordRows(rows nn.Rows) [][]int {
	places := make([][]int, Examples(rows))
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

func textsOf(rows nn.Rows, example int) []int {
	var texts []int
	for b, e := range rows.Example {
		if e == example {
			texts = append(texts, b)
		}
	}
	return texts
}

func textOf(rows nn.Rows, row int) int {
	b := 0
	for row >= rows.Starts[b+1] {
		b++
	}
	return b
}
