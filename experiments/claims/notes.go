package claims

import "strings"

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
