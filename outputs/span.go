package outputs

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// Span is the kind of outputs that are a span extracted from a context, the answer to a question.
var Span = Register(Spec[*SpanTarget, *SpanPrediction]{
	Name: "span", Description: "a span of a context", Field: "answers",
	Traits: Traits{WholeText: true, FromContext: true},
	Locate: locateSpan,
	Truncated: func(t *SpanTarget) bool {
		for _, s := range t.Tokens {
			if s != (corpus.Span{}) {
				return false
			}
		}
		return len(t.Answers) > 0
	},
	Unlabelled: func(n, all int) string {
		return fmt.Sprintf("%d of %d training questions have no answers and are not used for training; "+
			"write an empty list, [], for a context without an answer", n, all)
	},
	Right: func(t *SpanTarget, p *SpanPrediction) bool {
		exact, _ := MatchAnswers(t.Answers, p.Answer.Text)
		return exact == 1
	},
	NamePrediction: extractSpan,
	JSON: func(p *SpanPrediction, in Input) any {
		at := in.Offsets(InPair, p.Answer.Span)
		return SpanAnswer{ExtractedSpan{p.Answer.Text, at.Start, at.End, Probability(p.Probability)}}
	},
	Data: func(p *SpanPrediction, in Input) any {
		if p.Answer == (corpus.TextSpan{}) {
			return []any{}
		}
		return []any{dataSpan(p.Answer, in)}
	},
	Gold: func(t *SpanTarget, in Input) any {
		answers := []any{}
		for _, answer := range t.Answers {
			answers = append(answers, dataSpan(answer, in))
		}
		return answers
	},
	Finds: func(p *SpanPrediction) (found, contexts int) {
		if p.Tokens != (corpus.Span{}) {
			found = 1
		}
		return found, 1
	},
	Rate: func(rate float64) string { return fmt.Sprintf("answers for %.1f %% of questions", 100*rate) },
	Schema: `{
		"type": "object", "additionalProperties": false, "required": ["answer"],
		"properties": {"answer": {
			"type": "object", "additionalProperties": false, "required": ["text", "start", "end", "probability"],
			"properties": {
				"text": {"type": "string"},
				"start": {"type": "integer", "minimum": 0}, "end": {"type": "integer", "minimum": 0},
				"probability": {"type": ["number", "null"], "minimum": 0, "maximum": 1}
			}
		}}
	}`,
	Answers: spanAnswers,
})

// SpanTarget is the gold answers to a question.
type SpanTarget struct {
	Answers []corpus.TextSpan // parts of the context, each a right answer; empty if it has no answer
	// Tokens are those of the first of Answers in each of the example's windows; {0 0} if the window lacks them.
	Tokens []corpus.Span
}

// SpanPrediction is a predicted answer.
type SpanPrediction struct {
	Window      int             // index of the example's window that Tokens are in
	Tokens      corpus.Span     // of the window, End exclusive; {0 0} for no answer
	Probability float32         // of the answer, or of no answer
	Answer      corpus.TextSpan // the text of Tokens in the context
}

// SpanAnswer is the JSON of a prediction.
type SpanAnswer struct {
	Answer ExtractedSpan `json:"answer"`
}

// ExtractedSpan is a part of the second text of a pair, End exclusive; empty if the context has no answer.
type ExtractedSpan struct {
	Text        string      `json:"text"`
	Start       int         `json:"start"`
	End         int         `json:"end"`
	Probability Probability `json:"probability"`
}

// dataSpan returns an answer as a data file has it.
func dataSpan(answer corpus.TextSpan, in Input) map[string]any {
	start := in.Offsets(InPair, answer.Span).Start
	return map[string]any{"text": answer.Text, "answer_start": json.Number(strconv.Itoa(start))}
}

// locateSpan finds the tokens of the first gold answer, the target of training, in each window that has all of them.
func locateSpan(t *SpanTarget, e *corpus.Example) {
	t.Tokens = make([]corpus.Span, len(e.Windows))
	for w, window := range e.Windows {
		if len(t.Answers) > 0 {
			t.Tokens[w] = window.TokensOf(t.Answers[0].Span, e.Pair)
		}
	}
}

// extractSpan sets the text of the predicted tokens in the example's context, empty for no answer. Combining marks at
// its end belong to it: tokenizers that drop accents leave them out of the last token. White space at its ends does
// not: some tokenizers have it in their tokens.
func extractSpan(p *SpanPrediction, e *corpus.Example, _ *corpus.Labels) {
	p.Answer = corpus.TextSpan{}
	if p.Tokens == (corpus.Span{}) {
		return
	}
	offsets := e.Windows[p.Window].Offsets
	span := corpus.Span{Start: offsets[p.Tokens.Start].Start, End: offsets[p.Tokens.End-1].End}
	rest := e.Pair[span.End:]
	span.End += len(rest) - len(strings.TrimLeftFunc(rest, func(r rune) bool { return unicode.Is(unicode.Mn, r) }))
	text := e.Pair[span.Start:span.End]
	if trimmed := strings.TrimSpace(text); trimmed != "" {
		span.Start += strings.Index(text, trimmed)
		span.End = span.Start + len(trimmed)
	}
	p.Answer = corpus.TextSpan{Text: e.Pair[span.Start:span.End], Span: span}
}

// spanAnswers returns the span, with the logits in [T 2] of its first token as start and of its last as end; for no
// answer, those of the first token of the example's first window, which stands for it.
func spanAnswers(p *SpanPrediction, _ Input, rows nn.Rows, example int, shape []int) []Answer {
	texts := textsOf(rows, example)
	if p.Tokens == (corpus.Span{}) {
		first := rows.Starts[texts[0]] * shape[1]
		return []Answer{{"", -1, []int{first, first + 1}, texts[:1]}}
	}
	row := rows.Starts[texts[p.Window]]
	logits := []int{(row + p.Tokens.Start) * shape[1], (row+p.Tokens.End-1)*shape[1] + 1}
	return []Answer{{p.Answer.Text, -1, logits, texts[p.Window : p.Window+1]}}
}

// MatchAnswers returns the best exact match and F1 of an answer against the gold ones, as SQuAD's official script does:
// ignoring case, punctuation, articles and white space (Rajpurkar et al. 2016 and 2018). If the context has no answer,
// the empty answer is right.
func MatchAnswers(gold []corpus.TextSpan, answer string) (exact, f1 float64) {
	var texts []string
	for _, g := range gold {
		if words := normalWords(g.Text); len(words) > 0 {
			texts = append(texts, strings.Join(words, " "))
		}
	}
	if len(texts) == 0 {
		texts = []string{""} // no answer
	}
	words := normalWords(answer)
	for _, text := range texts {
		if text == strings.Join(words, " ") {
			exact = 1
		}
		f1 = max(f1, overlap(strings.Fields(text), words))
	}
	return exact, f1
}

// overlap is the F1 of the words of an answer against those of the gold one; if one is empty, 1 if both are, else 0.
func overlap(gold, answer []string) float64 {
	if len(gold) == 0 || len(answer) == 0 {
		if len(gold) == len(answer) {
			return 1
		}
		return 0
	}
	left := map[string]int{}
	for _, w := range gold {
		left[w]++
	}
	same := 0
	for _, w := range answer {
		if left[w] > 0 {
			left[w]--
			same++
		}
	}
	return float64(2*same) / float64(len(gold)+len(answer))
}

// normalWords are the words of an answer in lower case, without ASCII punctuation and the articles a, an, the.
func normalWords(text string) []string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	return strings.Fields(withoutArticles(text))
}

// words are runs of letters, digits and _.
var words = regexp.MustCompile(`[\pL\pN_]+`)

// withoutArticles replaces each word a, an and the by a blank.
func withoutArticles(text string) string {
	return words.ReplaceAllStringFunc(text, func(word string) string {
		if word == "a" || word == "an" || word == "the" {
			return " "
		}
		return word
	})
}
