package claims

import "strings"

// expense is something that a member can claim, in the words of one note.
type expense struct {
	pattern   string // such as "my dental bill" or "the {procedure} at {provider}"
	procedure string // value of {procedure} in pattern; empty if pattern has a noun
	plural    bool
}

// verbForm returns the form of is, was or has that agrees with the expense.
func (e expense) verbForm(singular string) string {
	if !e.plural {
		return singular
	}
	return map[string]string{"is": "are", "was": "were", "has": "have"}[singular]
}

// expensePatterns are the patterns of expenses, with a slot for a noun of the claim type or for a procedure. Verbs
// agree with the noun or procedure if agrees is set, and are singular otherwise.
var expensePatterns = []struct {
	pattern string
	agrees  bool
}{
	{"the {noun}", true},
	{"the {noun}", true},
	{"the {noun}", true},
	{"the {noun}", true},
	{"my {noun}", true},
	{"my {noun}", true},
	{"my [son|daughter|wife|husband|mother]'s {noun}", true},
	{"the {noun} ({amount})", true},
	{"the {noun} from {provider}", true},
	{"the {noun} from {date}", true},
	{"the {procedure}", true},
	{"my {procedure}", true},
	{"my [son|daughter|wife|husband|mother]'s {procedure}", true},
	{"the {procedure} at {provider}", true},
	{"the {procedure} on {date}", true},
	{"the [bill|invoice|receipt] for the {procedure}", false},
	{"the {amount} for the {procedure}", false},
	{"the {amount} for the {noun}", false},
}

// procedureStems are the beginnings of procedures.
var procedureStems = func() []string {
	var stems []string
	for _, part := range []string{
		"cardi", "neur", "gastr", "hepat", "derm", "arthr", "oste", "nephr", "pulm", "vascul",
		"lymph", "thyr", "laryng", "cerebr", "spin", "stern", "crani", "bronch", "pelv", "tend",
	} {
		for _, link := range []string{"o", "a", "io", "eno", "ato", "ulo"} {
			stems = append(stems, part+link)
		}
	}
	return stems
}()

// expense draws an expense of the claim type and the words for it.
func (w *writer) expense(t claimType) expense {
	p, n := pick(w.Rand, expensePatterns), pick(w.Rand, t.nouns)
	e := expense{
		pattern: strings.ReplaceAll(w.chooseAlternatives(p.pattern), "{noun}", n.text),
		plural:  p.agrees && n.plural,
	}
	if strings.Contains(p.pattern, "{procedure}") {
		e.procedure = joinHalves(w.Rand, w.split.index, [2][]string{procedureStems, t.procedureEndings})
		e.plural = false
	}
	return e
}

// expenseWithoutDetails draws an expense of the claim type that names no entity but a procedure.
func (w *writer) expenseWithoutDetails(t claimType) expense {
	for {
		e := w.expense(t)
		slots := slotPattern.FindAllString(e.pattern, -1)
		if len(slots) == 0 || len(slots) == 1 && e.procedure != "" {
			return e
		}
	}
}

// expenseWithoutEntities draws an expense of the claim type that names no entity.
func (w *writer) expenseWithoutEntities(t claimType) expense {
	for {
		if e := w.expenseWithoutDetails(t); e.procedure == "" {
			return e
		}
	}
}

// drawExpenses draws the expenses of a note: the one claimed and two others, all of different claim types.
func (w *writer) drawExpenses(claimed claimType, draw func(claimType) expense) map[string]expense {
	var others []claimType
	for _, t := range claimTypes {
		if t.name != claimed.name {
			others = append(others, t)
		}
	}
	w.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return map[string]expense{
		"claimed": draw(claimed),
		"other":   draw(others[0]),
		"third":   draw(others[1]),
	}
}
