package main

import (
	"slices"
	"strings"
)

// note is a record of the quickstart.
type note struct {
	Text      string   `json:"text"`
	ClaimType string   `json:"claim_type"`
	Urgency   string   `json:"urgency"`
	Entities  []entity `json:"entities"`
}

// entity is a span of a note's text, in characters, End exclusive.
type entity struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Label string `json:"label"`
}

// notes generates the quickstart's notes of a split, as many of each claim type.
func (s Split) notes() []note {
	return distinctRecords(s, func(w *writer, n int) note {
		return w.note(claimTypes[n%len(claimTypes)])
	}, func(n note) string { return n.Text })
}

// note writes a note that claims an expense of the claim type.
func (w *writer) note(claimed claimType) note {
	p := w.split.patterns
	var sentences []string
	addWithProbability := func(probability float64, patterns []string) {
		if len(patterns) > 0 && w.Float64() < probability {
			sentences = append(sentences, pick(w.Rand, patterns))
		}
	}

	addWithProbability(0.35, p.openings)
	claim := w.claimSentences()
	urgency, urgencyPatterns := w.drawUrgency()
	if w.IntN(4) == 0 {
		addWithProbability(1, urgencyPatterns)
		sentences = append(sentences, claim...)
	} else {
		sentences = append(sentences, claim...)
		addWithProbability(0.4, p.asides)
		addWithProbability(1, urgencyPatterns)
	}
	addWithProbability(0.25, p.closings)

	w.lowercase = w.drawLowercase()
	w.expenses = w.drawExpenses(claimed, w.expense)
	w.writeSentences(sentences)
	return note{w.text.String(), claimed.name, urgency, w.entities}
}

// drawLowercase draws whether a note has no capital letters.
func (w *writer) drawLowercase() bool { return w.Float64() < 0.15 }

// claimSentences draws the sentences that claim one expense and may exclude others.
func (w *writer) claimSentences() []string {
	p := w.split.patterns
	claim, settled := pick(w.Rand, p.claims), pick(w.Rand, p.settled)
	switch n := w.Float64(); {
	case n < 0.85:
		return []string{claim}
	case n < 0.9:
		return []string{claim, settled}
	case n < 0.95:
		return []string{settled, claim}
	case n < 0.99:
		return []string{pick(w.Rand, p.contrasts)}
	default:
		third := strings.ReplaceAll(pick(w.Rand, p.settled), "{other", "{third")
		contrast := pick(w.Rand, p.contrasts)
		if w.IntN(2) == 0 {
			return []string{third, contrast}
		}
		return []string{contrast, third}
	}
}

// drawUrgency draws the urgency of a note and returns the sentences that express it. Most routine notes have none.
func (w *writer) drawUrgency() (urgency string, sentences []string) {
	p := w.split.patterns
	switch n := w.Float64(); {
	case n < 0.25:
		return "urgent", p.urgent
	case n < 0.5:
		return "soon", p.soon
	case n < 0.7:
		return "routine", p.routine
	}
	return "routine", nil
}

// fullNote is a note with all its labels.
type fullNote struct {
	Text      string   `json:"text"`
	ClaimType string   `json:"claim_type"`
	Urgency   string   `json:"urgency"`
	Fraud     string   `json:"fraud"`  // fraud if the note contradicts itself, otherwise genuine
	Amount    int      `json:"amount"` // claimed, in euros
	Codes     []string `json:"codes"`  // names of any of settingCodes and otherCodes
	// anomalous if its words are in an order that no member writes, otherwise normal
	Structure string `json:"structure"`
	// results of qualityChecks: for each label of a check, 1 if the note has such an entity, otherwise 0
	Quality  map[string][]int `json:"quality"`
	Entities []entity         `json:"entities"`
}

// qualityChecks are the entity labels that the quality control of a claims office requires in a note, by check.
var qualityChecks = map[string][]string{
	"member":    {"policy"},
	"treatment": {"date", "provider", "procedure"},
}

// checkQuality returns the results of qualityChecks for a note with these entities.
func checkQuality(entities []entity) map[string][]int {
	results := map[string][]int{}
	for check, labels := range qualityChecks {
		for _, label := range labels {
			present := 0
			if slices.ContainsFunc(entities, func(e entity) bool { return e.Label == label }) {
				present = 1
			}
			results[check] = append(results[check], present)
		}
	}
	return results
}

// fullNotes generates the full notes of a split. One of 25 is fraud. One of 10 in dev and test is anomalous, but one of
// 50 in train, where a detector learns what is normal. No note is both.
func (s Split) fullNotes() []fullNote {
	anomalyPeriod := 10
	if s.Name == "train" {
		anomalyPeriod = 50
	}
	return distinctRecords(s, func(w *writer, n int) fullNote {
		return w.fullNote(claimTypes[n%len(claimTypes)], n%25 == 7, n%anomalyPeriod == 3)
	}, func(n fullNote) string { return n.Text })
}

// fullNote writes a note: an opening, what happened, what is claimed, how urgent it is, a closing.
func (w *writer) fullNote(claimed claimType, fraud, anomalous bool) fullNote {
	p, split := w.split.patterns, w.split.index
	w.lowercase = w.drawLowercase()
	w.expenses = w.drawExpenses(claimed, w.expenseWithoutDetails)
	w.slotValues["clinic"] = slotValue{"provider", drawFacility(w.Rand, split)}
	w.fillDistinct("date", "day")

	// what happened, with a contradiction if it is fraud
	codes, happened := w.drawCodes(claimed)
	if w.Float64() < 0.6 {
		happened = append([]string{pick(w.Rand, treatmentSentences[split])}, happened...)
	}
	if fraud || w.Float64() < 0.3 {
		happened = append(happened, w.circumstance(fraud))
	}

	// what is claimed
	amount, claims := w.drawClaim()
	if w.Float64() < 0.2 {
		claims = append(claims, w.settledSentence())
	}
	urgency, urgencyPatterns := w.drawUrgency()

	sentences := []string{pick(w.Rand, p.openings)}
	if w.IntN(4) == 0 {
		sentences = slices.Concat(sentences, claims, happened)
	} else {
		sentences = slices.Concat(sentences, happened, claims)
	}
	if len(urgencyPatterns) > 0 {
		sentences = append(sentences, pick(w.Rand, urgencyPatterns))
	}
	sentences = append(sentences, pick(w.Rand, p.closings))
	if anomalous {
		sentences = w.disorder(sentences)
	}
	w.writeSentences(sentences)

	return fullNote{
		Text:      w.text.String(),
		ClaimType: claimed.name,
		Urgency:   urgency,
		Fraud:     labelIf(fraud, "fraud", "genuine"),
		Amount:    amount,
		Codes:     codes,
		Structure: labelIf(anomalous, "anomalous", "normal"),
		Quality:   checkQuality(w.entities),
		Entities:  w.entities,
	}
}

// labelIf returns yes if the condition holds, otherwise no.
func labelIf(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// fillDistinct sets slots to entity values with the label, all different.
func (w *writer) fillDistinct(label string, slots ...string) {
	for _, slot := range slots {
		for w.slotValues[slot] == (slotValue{}) {
			drawn := slotValue{label, entityGenerators[label](w.Rand, w.split.index)}
			duplicate := false
			for _, value := range w.slotValues {
				duplicate = duplicate || value == drawn
			}
			if !duplicate {
				w.slotValues[slot] = drawn
			}
		}
	}
}
