package claims

import (
	"slices"
	"strings"
)

// questionRecord is a question about a note, with its answer, in the form of SQuAD.
type questionRecord struct {
	Question string       `json:"question"`
	Context  string       `json:"context"`
	Answers  []answerSpan `json:"answers"`
}

// answerSpan is a span of the context.
type answerSpan struct {
	Text  string `json:"text"`
	Start int    `json:"answer_start"` // in characters
}

// questionRecords generates the questions of a split, as many about each slot.
func (s Split) questionRecords() []questionRecord {
	type place struct{ statement, question int } // indices in statements and their questions
	var places []place
	for i, statement := range statements {
		for j := range statement.questions {
			places = append(places, place{i, j})
		}
	}
	return distinctRecords(s, func(w *writer, n int) questionRecord {
		p := places[n%len(places)]
		return w.questionRecord(p.statement, p.question)
	}, func(q questionRecord) string { return q.Context })
}

// questionRecord writes a note of five statements and a question about one, whose index is given with that of the
// question.
func (w *writer) questionRecord(statementIndex, questionIndex int) questionRecord {
	w.lowercase = w.drawLowercase()
	w.expenses = w.drawExpenses(pick(w.Rand, claimTypes), w.expenseWithoutDetails)
	w.fillDistinct("policy", "policy")
	w.fillDistinct("date", "day", "sent", "billed")
	w.fillDistinct("provider", "clinic", "holder", "doctor")
	w.fillEuros("total", 100, 2000)
	w.fillEuros("share", 20, 100)

	// draw the statements; that of the policy is first if it is among them
	indices := []int{statementIndex}
	for _, i := range w.Perm(len(statements)) {
		if i != statementIndex && len(indices) < 5 {
			indices = append(indices, i)
		}
	}
	w.Shuffle(len(indices), func(i, j int) { indices[i], indices[j] = indices[j], indices[i] })
	if i := slices.Index(indices, 0); i > 0 {
		indices[0], indices[i] = indices[i], indices[0]
	}

	var sentences []string
	for _, i := range indices {
		sentences = append(sentences, w.statementSentence(statements[i]))
	}
	w.writeSentences(sentences)

	question := statements[statementIndex].questions[questionIndex]
	at := w.positions[question.slot]
	context := w.text.String()
	answer := answerSpan{string([]rune(context)[at.start:at.end]), at.start}
	return questionRecord{pick(w.Rand, question.wordings[w.split.index]), context, []answerSpan{answer}}
}

// statementSentence draws a sentence for a statement.
func (w *writer) statementSentence(s statement) string {
	if sentences := s.sentences[w.split.index]; len(sentences) > 0 {
		return pick(w.Rand, sentences)
	}
	if w.IntN(2) == 0 {
		return w.claimWithoutAmount()
	}
	for { // a {date} could be the date of another statement
		if s := pick(w.Rand, w.split.patterns.contrasts); !strings.Contains(s, "{date}") {
			return s
		}
	}
}
