package claims

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
