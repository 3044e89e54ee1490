package main

import (
	"strings"
)

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

// claimType is a label of the notes, with the words for an expense of that type: nouns, which all splits use, and
// procedures, medical terms invented for this data whose ending determines the claim type.
type claimType struct {
	name             string
	nouns            []noun
	procedureEndings []string
}

// noun is a word for an expense.
type noun struct {
	text   string
	plural bool
}

// claimTypes are all claim types.
var claimTypes = []claimType{
	{
		"hospital",
		[]noun{{"hospital stay", false}, {"hospital bill", false}, {"inpatient bill", false}, {"ward charges", true},
			{"hospital admission", false}, {"nights on the ward", true}},
		[]string{"ectomy", "plasty"},
	},
	{
		"dental",
		[]noun{{"dental bill", false}, {"dentist's invoice", false}, {"dental work", false},
			{"visit to the dentist", false}, {"dental fees", true}, {"toothache treatment", false}, {"braces", true}},
		[]string{"dontics", "denture"},
	},
	{
		"optical",
		[]noun{{"optician's bill", false}, {"visit to the optician", false}, {"spectacles", true},
			{"contact lenses", true}, {"optical invoice", false}, {"eyewear", false}},
		[]string{"metry", "vision"},
	},
	{
		"maternity",
		[]noun{{"maternity bill", false}, {"birth of our baby", false}, {"midwife's fees", true},
			{"maternity care", false}, {"pregnancy course", false}, {"maternity fees", true}},
		[]string{"partum", "natology"},
	},
	{
		"pharmacy",
		[]noun{{"pharmacy receipt", false}, {"medicines", true}, {"prescription drugs", true},
			{"chemist's bill", false}, {"medication", false}, {"pharmacy order", false}},
		[]string{"cillin", "statin"},
	},
	{
		"physiotherapy",
		[]noun{{"physio sessions", true}, {"physiotherapist's invoice", false}, {"rehab course", false},
			{"physio bill", false}, {"exercise course", false}, {"physio course", false}},
		[]string{"therapy", "massage"},
	},
	{
		"diagnostics",
		[]noun{{"laboratory bill", false}, {"laboratory tests", true}, {"lab work", false}, {"imaging invoice", false},
			{"lab fees", true}, {"imaging bill", false}},
		[]string{"gram", "scopy"},
	},
	{
		"ambulance",
		[]noun{{"ambulance", false}, {"ambulance ride", false}, {"ambulance bill", false}, {"rescue helicopter", false},
			{"paramedics", true}, {"ambulance invoice", false}},
		[]string{"rescue", "transit"},
	},
}
