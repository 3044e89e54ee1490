package claims

import (
	"math/rand/v2"
	"slices"
)

// Question is a question about a note, with its answer, in SQuAD's format.
type Question struct {
	Question string   `json:"question"`
	Context  string   `json:"context"`
	Answers  []Answer `json:"answers"`
}

// Answer is a span of the context.
type Answer struct {
	Text  string `json:"text"`
	Start int    `json:"answer_start"` // in characters
}

// statement is a fact of a note, in one sentence, and questions about it.
type statement struct {
	sentences [3][]string // none: a claim, in the words of the quickstart's notes
	asks      []ask
}

// ask is the wordings of a question whose answer is the value of a slot.
type ask struct {
	slot     string
	wordings [3][]string
}

var statements = []statement{
	{ // the policy, always the first sentence of a note
		[3][]string{
			{"My policy is {policy}.", "Policy {policy}.", "I am writing about policy {policy}.",
				"My policy number is {policy}."},
			{"This is about policy {policy}.", "Policy number: {policy}."},
			{"My number is {policy}.", "About my policy, {policy}:", "Policy {policy} has a claim."},
		},
		[]ask{{"policy", [3][]string{
			{"Which policy is it?", "What is the policy number?", "Which policy does the member have?",
				"About which policy is the claim?"},
			{"Which is the policy of the member?", "What is the number of the policy?"},
			{"Which policy is the claim about?", "What policy number does the member have?",
				"Which is the policy number?"},
		}}},
	},
	{
		treatments,
		[]ask{
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
		[]ask{{"sent", [3][]string{
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
		[]ask{
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
		[]ask{{"share", [3][]string{
			{"How much does the member pay?", "What is the member's own share?", "How much is the own share?",
				"What share does the member pay?"},
			{"How much is the member's share?", "What does the member pay?"},
			{"What is the own share?", "How much of it does the member pay?", "How much is the share of the member?"},
		}}},
	},
	{
		[3][]string{
			{"{keeper} has the papers.", "The papers are at {keeper}.", "The papers are with {keeper}.",
				"You can have the papers from {keeper}."},
			{"{keeper} has all my papers.", "My papers are with {keeper}."},
			{"All the papers are at {keeper}.", "It is {keeper} that has the papers.",
				"{keeper} has the papers for you."},
		},
		[]ask{{"keeper", [3][]string{
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
		[]ask{{"doctor", [3][]string{
			{"Who referred the member?", "From whom is the referral?", "Who wrote the referral?",
				"By whom was the member referred?"},
			{"Who had referred the member?", "By whom is the referral?"},
			{"Who was it that referred the member?", "The referral is from whom?", "By whom was the referral written?"},
		}}},
	},
	{
		[3][]string{},
		[]ask{{"claimed", [3][]string{
			{"What is claimed?", "What does the member claim?", "For what is the claim?", "What is the claim for?"},
			{"What is the member claiming?", "What does the member want paid?"},
			{"What is it that the member claimed?", "The claim is for what?", "What does the member want refunded?"},
		}}},
	},
}

// questions returns equally many questions about each slot.
func (s Split) questions() []Question {
	r := rand.New(rand.NewPCG(s.seed, 0))
	type place struct{ statement, ask int }
	var slots []place
	for i, statement := range statements {
		for j := range statement.asks {
			slots = append(slots, place{i, j})
		}
	}
	written := map[string]bool{}
	var questions []Question
	for len(questions) < s.Notes {
		about := slots[len(questions)%len(slots)]
		q := newWriter(r, s).question(about.statement, about.ask)
		if !written[q.Context] {
			written[q.Context] = true
			questions = append(questions, q)
		}
	}
	r.Shuffle(len(questions), func(i, j int) { questions[i], questions[j] = questions[j], questions[i] })
	return questions
}

// question writes a note of five statements, with a question about one of them.
func (w *writer) question(about, asked int) Question {
	w.lower = w.Float64() < 0.15
	w.items = w.chooseItems(pick(w.Rand, kinds), w.plainItem)
	w.fillSlots("policy", "policy")
	w.fillSlots("date", "day", "sent", "billed")
	w.fillSlots("provider", "clinic", "keeper", "doctor")
	w.euros("total", 100, 2000)
	w.euros("share", 20, 100)

	chosen := []int{about}
	for _, i := range w.Perm(len(statements)) {
		if i != about && len(chosen) < 5 {
			chosen = append(chosen, i)
		}
	}
	w.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	if i := slices.Index(chosen, 0); i > 0 {
		chosen[0], chosen[i] = chosen[i], chosen[0]
	}
	var sentences []string
	for _, i := range chosen {
		sentences = append(sentences, w.state(statements[i]))
	}
	w.write(sentences)

	a := statements[about].asks[asked]
	at := w.places[a.slot]
	context := w.text.String()
	answer := Answer{string([]rune(context)[at[0]:at[1]]), at[0]}
	return Question{pick(w.Rand, a.wordings[w.split.part]), context, []Answer{answer}}
}

// state returns a sentence for a statement.
func (w *writer) state(s statement) string {
	if list := s.sentences[w.split.part]; len(list) > 0 {
		return pick(w.Rand, list)
	}
	if w.IntN(2) == 0 {
		return w.claimSentence()
	}
	for {
		if s := pick(w.Rand, w.split.from.contrasts); !slotted(s, "{date}") {
			return s
		}
	}
}
