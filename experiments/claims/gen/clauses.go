package main

import (
	"math/rand/v2"
	"slices"
	"strings"
)

// clausePair is a note and a clause of the policy.
type clausePair struct {
	Text   string `json:"text"`
	Clause string `json:"clause"`
	// covered, not_covered, or unclear: the clause is about another claim type, or about a condition that the note does
	// not mention
	Covered string `json:"covered"`
}

// coverLabels are the labels of a clausePair.
var coverLabels = []string{"covered", "not_covered", "unclear"}

// clause is a clause of a policy: its claim type, and which case of a condition it covers.
type clause struct {
	claimType int // index in claimTypes
	condition int // index in conditions
	limit     int // of a condition with a threshold
	covered   int // the case that is covered, 0 or 1
	text      string
}

// clausePairs generates a note for each label of each clause. Clauses cover either case of a condition as often, so
// that neither the note nor the clause alone determines the label.
func (s Split) clausePairs() []clausePair {
	r := rand.New(rand.NewPCG(s.seed, 0))
	var pairs []clausePair
	for n := 0; len(pairs) < s.size; n++ {
		c := newWriter(r, s).clause(n%len(claimTypes), n/len(claimTypes)%len(conditions))
		for _, label := range coverLabels {
			pairs = append(pairs, clausePair{newWriter(r, s).noteForClause(c, label), c.text, label})
		}
	}
	r.Shuffle(len(pairs), func(i, j int) { pairs[i], pairs[j] = pairs[j], pairs[i] })
	return pairs
}

// clause writes a clause with indices of a claim type and a condition.
func (w *writer) clause(typeIndex, conditionIndex int) clause {
	c := clause{claimType: typeIndex, condition: conditionIndex, covered: w.IntN(2)}
	condition, template := conditions[conditionIndex], pick(w.Rand, inclusions[w.split.index])
	phrases := condition.clausePhrases[c.covered]
	if w.IntN(5) == 0 {
		template, phrases = pick(w.Rand, exclusions[w.split.index]), condition.clausePhrases[1-c.covered]
	}
	if t := condition.threshold; t != nil {
		c.limit = pick(w.Rand, t.limits)
		t.fillClause(w, c.limit)
	}

	w.withoutTypos = true
	subject := pick(w.Rand, clauseSubjects[claimTypes[typeIndex].name])
	w.writeSentence(strings.NewReplacer("{subject}", subject, "{when}", pick(w.Rand, phrases)).Replace(template))
	c.text = w.text.String()
	return c
}

// noteForClause writes a note that has the label for a clause: a claim, and a case of a condition.
func (w *writer) noteForClause(c clause, label string) string {
	w.lowercase = w.drawLowercase()
	claimed, caseIndex, otherCondition := c.claimType, c.covered, false
	others := slices.DeleteFunc(w.Perm(len(conditions)), func(i int) bool { return i == c.condition })
	switch label {
	case "not_covered":
		caseIndex = 1 - caseIndex
	case "unclear":
		caseIndex = w.IntN(2)
		if otherCondition = w.IntN(2) == 0; !otherCondition {
			claimed = (claimed + 1 + w.IntN(len(claimTypes)-1)) % len(claimTypes)
		}
	}

	w.expenses = map[string]expense{"claimed": w.expenseWithoutEntities(claimTypes[claimed])}
	sentences := []string{w.claimWithoutAmount()}
	if otherCondition {
		sentences = append(sentences, w.conditionSentence(pick(w.Rand, others), caseIndex, 0))
	} else {
		sentences = append(sentences, w.conditionSentence(c.condition, caseIndex, c.limit))
	}
	w.Shuffle(len(sentences), func(i, j int) { sentences[i], sentences[j] = sentences[j], sentences[i] })
	if w.IntN(3) == 0 {
		sentences = append([]string{pick(w.Rand, w.split.patterns.openings)}, sentences...)
	}
	w.writeSentences(sentences)
	return w.text.String()
}

// conditionSentence draws a sentence for a case of a condition. If the condition has a threshold, limit is one of its
// limits, or 0 to draw one.
func (w *writer) conditionSentence(conditionIndex, caseIndex, limit int) string {
	c := conditions[conditionIndex]
	if t := c.threshold; t != nil {
		if limit == 0 {
			limit = pick(w.Rand, t.limits)
		}
		t.fillNote(w, limit, caseIndex)
	}
	return pick(w.Rand, c.noteSentences[caseIndex][w.split.index])
}

// fillMembershipTerm sets {months} to a term shorter (case 0) or longer (case 1) than that at index limit.
func fillMembershipTerm(w *writer, limit, caseIndex int) {
	terms := membershipTerms[:limit]
	if caseIndex == 1 {
		terms = membershipTerms[limit+1:]
	}
	w.slotValues["months"] = slotValue{"", pick(w.Rand, terms)}
}

// fillWaitingPeriod sets {wait} to the term at index limit.
func fillWaitingPeriod(w *writer, limit int) {
	w.slotValues["wait"] = slotValue{"", membershipTerms[limit]}
}

// condition is what cover may depend on. It has two cases, and a clause covers one of them.
type condition struct {
	noteSentences [2][3][]string // of each case, for train, dev and test
	clausePhrases [2][]string    // of each case
	threshold     *threshold     // nil if the sentences themselves express the case
}

// threshold separates the two cases of a condition by a number: below and above a limit.
type threshold struct {
	limits     []int
	fillNote   func(w *writer, limit, caseIndex int) // sets the slots of noteSentences
	fillClause func(w *writer, limit int)            // sets those of clausePhrases
}

// sameSentences are the sentences of a condition whose cases differ in the values of slots.
func sameSentences(sentences [3][]string) [2][3][]string { return [2][3][]string{sentences, sentences} }

// conditions are all conditions of clauses.
var conditions = []condition{
	{ // place
		noteSentences: [2][3][]string{{
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
		clausePhrases: [2][]string{{"abroad", "in another country"}, {"at home", "in our own country"}},
	},
	{ // cause
		noteSentences: [2][3][]string{{
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
		clausePhrases: [2][]string{{"after an accident", "in case of an accident"},
			{"in an illness", "in case of an illness"}},
	},
	{ // referral
		noteSentences: [2][3][]string{{
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
		clausePhrases: [2][]string{{"with a referral", "after a referral"},
			{"without a referral", "when there is no referral"}},
	},
	{ // stay
		noteSentences: [2][3][]string{{
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
		clausePhrases: [2][]string{{"with an overnight stay", "when the member stays overnight"},
			{"without an overnight stay", "when the member goes home the same day"}},
	},
	{ // waiting period
		noteSentences: sameSentences([3][]string{
			{"I have been a member for {months}.", "I have been with you for {months}.", "My policy is {months} old.",
				"I was a member for {months} when it happened."},
			{"I have been with you, as a member, for {months}.", "The policy is {months} old."},
			{"I have had the policy for {months}.", "For {months} I have been a member.",
				"I was with you for {months} when it happened."},
		}),
		clausePhrases: [2][]string{{"in the first {wait} of membership", "before {wait} of membership"},
			{"after {wait} of membership", "from {wait} of membership on"}},
		threshold: &threshold{[]int{2, 5, 8}, fillMembershipTerm, fillWaitingPeriod},
	},
}

// membershipTerms are how long a member has been insured, in ascending order.
var membershipTerms = []string{
	"a month", "two months", "three months", "four months", "five months", "six months", "seven months", "eight months",
	"nine months", "ten months", "eleven months", "a year", "two years", "five years",
}

// clauseSubjects are the words of clauses for the claim types.
var clauseSubjects = map[string][]string{
	"hospital":      {"hospital care", "inpatient care"},
	"dental":        {"dental care", "the dentist"},
	"optical":       {"optical care", "the optician"},
	"maternity":     {"maternity care", "pregnancy and birth"},
	"pharmacy":      {"medicines", "prescription drugs"},
	"physiotherapy": {"physio", "rehab"},
	"diagnostics":   {"laboratory work", "imaging and lab tests"},
	"ambulance":     {"the ambulance", "rescue"},
}

// inclusions are patterns of clauses that cover one case of a condition.
var inclusions = [3][]string{
	{"We pay for {subject} only {when}.", "Cover for {subject} is given only {when}.",
		"For {subject} the member is insured only {when}.", "Only {when} there is cover for {subject}."},
	{"For {subject} there is cover only {when}.", "Only {when} we pay for {subject}."},
	{"The member has cover for {subject} only {when}.", "For {subject} we pay only {when}.",
		"Only {when} the member is insured for {subject}."},
}

// exclusions are patterns of clauses that leave one case of a condition without cover.
var exclusions = [3][]string{
	{"We do not pay for {subject} {when}.", "There is no cover for {subject} {when}.",
		"For {subject} the member is not insured {when}.", "Cover for {subject} is not given {when}."},
	{"For {subject} there is no cover {when}.", "We never pay for {subject} {when}."},
	{"The member has no cover for {subject} {when}.", "For {subject} we do not pay {when}.",
		"The member is not insured for {subject} {when}."},
}
