package claims

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// Pair is a note and a clause of the policy.
type Pair struct {
	Text   string `json:"text"`
	Clause string `json:"clause"`
	// covered | not_covered | unclear: the clause is about another item, or about a case that the note does not state
	Covered string `json:"covered"`
}

// answers are the labels of pairs of a note and a clause.
var answers = []string{"covered", "not_covered", "unclear"}

// condition is a condition of cover. It has two cases, of which a clause covers one.
type condition struct {
	stated [2][3][]string // sentences of notes that state a case, by split
	when   [2][]string    // phrases of clauses for a case
	limit  measure
}

// measure separates the cases of a condition by a number: below and above a limit.
type measure struct {
	limits []int
	write  func(w *writer, limit, which int) // fills the slots of stated
	ask    func(w *writer, limit int)        // fills the slots of when
}

// both are sentences that state either case, depending on the values of their slots.
func both(sentences [3][]string) [2][3][]string { return [2][3][]string{sentences, sentences} }

var conditions = []condition{
	{ // place
		stated: [2][3][]string{{
			{"I was abroad at the time.", "It happened in another country.", "We were on holiday abroad.",
				"I was treated in another country.", "It was on a journey abroad."},
			{"I was treated abroad.", "We were on holiday in another country."},
			{"We were abroad when it happened.", "I was on a journey in another country.",
				"It happened on holiday abroad."},
		}, {
			{"I was at home at the time.", "It happened at home, in our own country.",
				"I was treated in our own country.", "We were at home in our own country.", "It was at home."},
			{"I was treated at home.", "We were in our own country."},
			{"We were at home when it happened.", "I was in our own country at the time.",
				"It happened in our own country."},
		}},
		when: [2][]string{{"abroad", "in another country"}, {"at home", "in our own country"}},
	},
	{ // cause
		stated: [2][3][]string{{
			{"I had an accident.", "It was an accident at work.", "A car hit me, it was an accident.",
				"It came from an accident.", "There was an accident on the road."},
			{"It happened in an accident.", "I had an accident with my car."},
			{"There was an accident at work.", "I had it from an accident.", "The accident was on the road."},
		}, {
			{"I had an illness.", "It was an illness.", "I was ill for weeks, it was an illness.",
				"It came from an illness.", "There was an illness before it."},
			{"It happened in an illness.", "I had an illness for weeks."},
			{"There was an illness for weeks.", "I had it from an illness.", "The illness came at work."},
		}},
		when: [2][]string{{"after an accident", "in case of an accident"}, {"in an illness", "in case of an illness"}},
	},
	{ // referral
		stated: [2][3][]string{{
			{"My doctor referred me.", "I had a referral.", "There was a referral from my doctor.",
				"I went with a referral.", "I have the referral."},
			{"My doctor has referred me.", "A doctor had referred me."},
			{"I came with a referral from my doctor.", "My doctor had referred me.", "There is a referral."},
		}, {
			{"No doctor referred me.", "I had no referral.", "There was no referral from my doctor.",
				"I went without a referral.", "I have no referral."},
			{"I was referred by no doctor.", "No doctor had referred me."},
			{"I came without a referral from my doctor.", "I was not referred by a doctor.", "There is no referral."},
		}},
		when: [2][]string{{"with a referral", "after a referral"}, {"without a referral", "when there is no referral"}},
	},
	{ // stay
		stated: [2][3][]string{{
			{"I stayed overnight.", "They kept me overnight.", "I spent the night there.", "I was kept for the night.",
				"I had to stay overnight."},
			{"I was there overnight.", "They kept me for the night."},
			{"They wanted me to stay overnight.", "I stayed for the night.", "I was kept overnight."},
		}, {
			{"I went home the same day.", "They sent me home the same day.", "I was home the same day.",
				"It was done the same day.", "I came back the same day."},
			{"I came home the same day.", "The same day they sent me home."},
			{"They wanted me to go home the same day.", "The same day I was home.", "I was sent home the same day."},
		}},
		when: [2][]string{{"with an overnight stay", "when the member stays overnight"},
			{"without an overnight stay", "when the member goes home the same day"}},
	},
	{ // waiting period
		stated: both([3][]string{
			{"I have been a member for {months}.", "I have been with you for {months}.", "My policy is {months} old.",
				"I was a member for {months} when it happened."},
			{"I have been with you, as a member, for {months}.", "The policy is {months} old."},
			{"I have had the policy for {months}.", "For {months} I have been a member.",
				"I was with you for {months} when it happened."},
		}),
		when: [2][]string{{"in the first {wait} of membership", "before {wait} of membership"},
			{"after {wait} of membership", "from {wait} of membership on"}},
		limit: measure{[]int{2, 5, 8}, terms,
			func(w *writer, limit int) { w.facts["wait"] = fact{"", membership[limit]} }},
	},
}

// membership lists terms, each longer than the one before it.
var membership = []string{
	"a month", "two months", "three months", "four months", "five months", "six months", "seven months", "eight months",
	"nine months", "ten months", "eleven months", "a year", "two years", "five years",
}

// terms chooses a membership at random, shorter or longer than the one at limit.
func terms(w *writer, limit, which int) {
	list := membership[:limit]
	if which == 1 {
		list = membership[limit+1:]
	}
	w.facts["months"] = fact{"", pick(w.Rand, list)}
}

// subjects are the phrases of clauses for the kinds.
var subjects = map[string][]string{
	"hospital":      {"hospital care", "inpatient care"},
	"dental":        {"dental care", "the dentist"},
	"optical":       {"optical care", "the optician"},
	"maternity":     {"maternity care", "pregnancy and birth"},
	"pharmacy":      {"medicines", "prescription drugs"},
	"physiotherapy": {"physio", "rehab"},
	"diagnostics":   {"laboratory work", "imaging and lab tests"},
	"ambulance":     {"the ambulance", "rescue"},
}

// only are clauses that cover one case, never clauses that exclude one.
var (
	only = [3][]string{
		{"We pay for {subject} only {when}.", "Cover for {subject} is given only {when}.",
			"For {subject} the member is insured only {when}.", "Only {when} there is cover for {subject}."},
		{"For {subject} there is cover only {when}.", "Only {when} we pay for {subject}."},
		{"The member has cover for {subject} only {when}.", "For {subject} we pay only {when}.",
			"Only {when} the member is insured for {subject}."},
	}
	never = [3][]string{
		{"We do not pay for {subject} {when}.", "There is no cover for {subject} {when}.",
			"For {subject} the member is not insured {when}.", "Cover for {subject} is not given {when}."},
		{"For {subject} there is no cover {when}.", "We never pay for {subject} {when}."},
		{"The member has no cover for {subject} {when}.", "For {subject} we do not pay {when}.",
			"The member is not insured for {subject} {when}."},
	}
)

// clause is a clause of a policy: the kind of claim it is about, and the case of a condition that it covers.
type clause struct {
	kind      int // of kinds
	condition int // of conditions
	limit     int // of a measured condition
	covers    int // case 0 or 1
	text      string
}

// pairs returns a note for each label of each clause. Both cases have the same number of clauses, so that neither
// text alone determines the label.
func (s Split) pairs() []Pair {
	r := rand.New(rand.NewPCG(s.seed, 0))
	var pairs []Pair
	for n := 0; len(pairs) < s.Notes; n++ {
		c := newWriter(r, s).clause(n%len(kinds), n/len(kinds)%len(conditions))
		for _, answer := range answers {
			pairs = append(pairs, Pair{newWriter(r, s).about(c, answer), c.text, answer})
		}
	}
	r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return pairs
}

// clause writes a clause of a kind under a condition.
func (w *writer) clause(kind, condition int) clause {
	c := clause{kind: kind, condition: condition, covers: w.IntN(2)}
	about, template := conditions[condition], pick(w.Rand, only[w.split.part])
	when := about.when[c.covers]
	if w.IntN(5) == 0 {
		template, when = pick(w.Rand, never[w.split.part]), about.when[1-c.covers]
	}
	if m := about.limit; m.ask != nil {
		c.limit = pick(w.Rand, m.limits)
		m.ask(w, c.limit)
	}
	w.clean = true
	subject := pick(w.Rand, subjects[kinds[kind].name])
	w.sentence(strings.NewReplacer("{subject}", subject, "{when}", pick(w.Rand, when)).Replace(template))
	c.text = w.text.String()
	return c
}

// about writes a note with the given label for a clause: the claimed item, and the case of a condition.
func (w *writer) about(c clause, answer string) string {
	w.lower = w.Float64() < 0.15
	kind, which, silent := c.kind, c.covers, false
	others := slices.DeleteFunc(w.Perm(len(conditions)), func(i int) bool { return i == c.condition })
	switch answer {
	case "not_covered":
		which = 1 - which
	case "unclear":
		which = w.IntN(2)
		if silent = w.IntN(2) == 0; !silent {
			kind = (kind + 1 + w.IntN(len(kinds)-1)) % len(kinds)
		}
	}

	w.items = map[string]item{"claimed": w.noun(kinds[kind])}
	sentences := []string{w.claimSentence()}
	if silent {
		sentences = append(sentences, w.conditionSentence(pick(w.Rand, others), which, 0))
	} else {
		sentences = append(sentences, w.conditionSentence(c.condition, which, c.limit))
	}
	w.Shuffle(len(sentences), func(i, j int) { sentences[i], sentences[j] = sentences[j], sentences[i] })
	if w.IntN(3) == 0 {
		sentences = append([]string{pick(w.Rand, w.split.from.openings)}, sentences...)
	}
	w.write(sentences)
	return w.text.String()
}

// conditionSentence returns a sentence that states a case of a condition, with the limit, or a random one if it is 0.
func (w *writer) conditionSentence(number, which, limit int) string {
	c := conditions[number]
	if m := c.limit; m.write != nil {
		if limit == 0 {
			limit = pick(w.Rand, m.limits)
		}
		m.write(w, limit, which)
	}
	return pick(w.Rand, c.stated[which][w.split.part])
}

// noun returns an item of the kind as one of its nouns, without an entity.
func (w *writer) noun(k kind) item {
	for {
		if t := w.plainItem(k); t.procedure == "" {
			return t
		}
	}
}
