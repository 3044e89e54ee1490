package main

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

// statement is a sentence that a note may have, and the questions about it.
type statement struct {
	sentences [3][]string // empty for a claim, whose sentences are those of the quickstart's notes
	questions []questionTemplate
}

// questionTemplate has the wordings of a question whose answer is the value of a slot.
type questionTemplate struct {
	slot     string
	wordings [3][]string
}

// treatmentSentences have the provider and the date of a treatment.
var treatmentSentences = [3][]string{
	{
		"I was seen by {clinic} on {day}.",
		"On {day} I went to {clinic}.",
		"{clinic} treated me on {day}.",
		"I had an appointment at {clinic} on {day}.",
		"The treatment was at {clinic} on {day}.",
	}, {
		"I was treated by {clinic} on {day}.",
		"On {day} I was at {clinic} for the treatment.",
	}, {
		"On {day} {clinic} treated me.",
		"I had my appointment on {day} at {clinic}.",
		"It was {clinic} that treated me on {day}.",
	},
}

// statements are all statements. The first one begins a note that has it.
var statements = []statement{
	{ // the policy, which a note begins with
		[3][]string{
			{"My policy is {policy}.", "Policy {policy}.", "I am writing about policy {policy}.",
				"My policy number is {policy}."},
			{"This is about policy {policy}.", "Policy number: {policy}."},
			{"My number is {policy}.", "About my policy, {policy}:", "Policy {policy} has a claim."},
		},
		[]questionTemplate{{"policy", [3][]string{
			{"Which policy is it?", "What is the policy number?", "Which policy does the member have?",
				"About which policy is the claim?"},
			{"Which is the policy of the member?", "What is the number of the policy?"},
			{"Which policy is the claim about?", "What policy number does the member have?",
				"Which is the policy number?"},
		}}},
	},
	{
		treatmentSentences,
		[]questionTemplate{
			{"clinic", [3][]string{
				{"Who treated the member?", "At which place was the treatment?", "Where was the member treated?",
					"By whom was the member treated?"},
				{"Where was the treatment?", "By whom was the treatment?"},
				{"Who was it that treated the member?", "At which place was the member treated?",
					"The treatment was by whom?"},
			}},
			{"day", [3][]string{
				{"When was the member treated?", "On which day was the treatment?",
					"What is the date of the treatment?", "When did they treat the member?"},
				{"When was the treatment?", "On which date was the member treated?"},
				{"On which day was the member treated?", "What was the day of the treatment?",
					"The treatment was on which day?"},
			}},
		},
	},
	{
		[3][]string{
			{"I sent the form on {sent}.", "The form went to you on {sent}.", "My form is from {sent}.",
				"You had the form from me on {sent}."},
			{"On {sent} the form was sent to you.", "The form from me is of {sent}."},
			{"My form was sent on {sent}.", "On {sent} I sent you the form.", "I wrote the form on {sent}."},
		},
		[]questionTemplate{{"sent", [3][]string{
			{"When was the form sent?", "On which day did the form go to us?", "What is the date of the form?",
				"When did the member send the form?"},
			{"On which date was the form sent?", "When did the form go to us?"},
			{"On which day was the form sent?", "What was the day of the form?", "The form was sent when?"},
		}}},
	},
	{
		[3][]string{
			{"The invoice of {billed} comes to {total}.", "On {billed} I had an invoice of {total}.",
				"The invoice is from {billed}, it is {total} in all.",
				"They want {total}, the invoice is of {billed}."},
			{"The invoice from {billed} is {total} in all.", "They sent an invoice of {total} on {billed}."},
			{"On {billed} they sent the invoice, {total} in all.", "It comes to {total}, the invoice is from {billed}.",
				"I had the invoice on {billed}, they want {total}."},
		},
		[]questionTemplate{
			{"billed", [3][]string{
				{"When was the invoice written?", "What is the date of the invoice?",
					"On which day was the invoice sent?", "From when is the invoice?"},
				{"On which date was the invoice written?", "When was the invoice sent?"},
				{"On which day was the invoice written?", "What was the day of the invoice?",
					"The invoice is from when?"},
			}},
			{"total", [3][]string{
				{"How much is the invoice?", "What does the invoice come to?", "How much do they want?",
					"What is the total of the invoice?"},
				{"How much does the invoice come to?", "What is the invoice in all?"},
				{"What do they want in all?", "How much is the total?", "The invoice comes to how much?"},
			}},
		},
	},
	{
		[3][]string{
			{"My own share is {share}.", "I pay {share} myself.", "I have to pay {share} of it.",
				"{share} is my own share."},
			{"Of it I pay {share} myself.", "My share is {share}."},
			{"I have to pay a share of {share} myself.", "My own share of it is {share}.",
				"The share I pay is {share}."},
		},
		[]questionTemplate{{"share", [3][]string{
			{"How much does the member pay?", "What is the member's own share?", "How much is the own share?",
				"What share does the member pay?"},
			{"How much is the member's share?", "What does the member pay?"},
			{"What is the own share?", "How much of it does the member pay?", "How much is the share of the member?"},
		}}},
	},
	{
		[3][]string{
			{"{holder} has the papers.", "The papers are at {holder}.", "The papers are with {holder}.",
				"You can have the papers from {holder}."},
			{"{holder} has all my papers.", "My papers are with {holder}."},
			{"All the papers are at {holder}.", "It is {holder} that has the papers.",
				"{holder} has the papers for you."},
		},
		[]questionTemplate{{"holder", [3][]string{
			{"Who has the papers?", "Where are the papers?", "With whom are the papers?",
				"At which place are the papers?"},
			{"From whom can we have the papers?", "Who has all the papers?"},
			{"Who is it that has the papers?", "The papers are with whom?", "At whom are all the papers?"},
		}}},
	},
	{
		[3][]string{
			{"{doctor} referred me.", "I was referred by {doctor}.", "The referral is from {doctor}.",
				"{doctor} wrote the referral."},
			{"{doctor} had referred me.", "I have a referral from {doctor}."},
			{"The referral was written by {doctor}.", "It was {doctor} that referred me.",
				"I had the referral from {doctor}."},
		},
		[]questionTemplate{{"doctor", [3][]string{
			{"Who referred the member?", "From whom is the referral?", "Who wrote the referral?",
				"By whom was the member referred?"},
			{"Who had referred the member?", "By whom is the referral?"},
			{"Who was it that referred the member?", "The referral is from whom?", "By whom was the referral written?"},
		}}},
	},
	{
		[3][]string{},
		[]questionTemplate{{"claimed", [3][]string{
			{"What is claimed?", "What does the member claim?", "For what is the claim?", "What is the claim for?"},
			{"What is the member claiming?", "What does the member want paid?"},
			{"What is it that the member claimed?", "The claim is for what?", "What does the member want refunded?"},
		}}},
	},
}
