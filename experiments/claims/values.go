package claims

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// kind is a claim type and the words for its items: common nouns, or a procedure, an invented technical term whose
// ending determines the kind.
type kind struct {
	name    string
	nouns   []noun
	endings []string // of procedures
}

type noun struct {
	text   string
	plural bool
}

var kinds = []kind{
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

// stems are the first parts of procedures.
var stems = func() []string {
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

// item is an item of a claim, in the words of one note.
type item struct {
	pattern   string
	procedure string // value of {procedure} in pattern
	plural    bool
}

// verb returns the form of is, was or has that agrees.
func (t item) verb(singular string) string {
	if !t.plural {
		return singular
	}
	return map[string]string{"is": "are", "was": "were", "has": "have"}[singular]
}

// itemPatterns are phrases for an item: {noun} by its kind, {procedure} by its procedure. The verb agrees with them if
// agrees is set, else it is singular.
var itemPatterns = []struct {
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

// item returns an item of the kind, in a random phrase.
func (w *writer) item(k kind) item {
	how, n := pick(w.Rand, itemPatterns), pick(w.Rand, k.nouns)
	t := item{pattern: strings.ReplaceAll(w.choose(how.pattern), "{noun}", n.text), plural: how.agrees && n.plural}
	if strings.Contains(how.pattern, "{procedure}") {
		t.procedure = joined(w.Rand, w.split.part, [2][]string{stems, k.endings})
		t.plural = false
	}
	return t
}

// owned returns a random number of a split's part. Numbers belong to parts by their last digit: 0 to 5 to train, 6 and
// 7 to dev, 8 and 9 to test.
func owned(r *rand.Rand, part, low, high int) int {
	for {
		if n := low + r.IntN(high-low); partOf(n) == part {
			return n
		}
	}
}

// partOf returns the part that a number belongs to.
func partOf(n int) int { return max(0, n%10-4) / 2 }

// values return a random entity value of a split's part.
var values = map[string]func(r *rand.Rand, part int) string{
	"amount":   amount,
	"date":     date,
	"policy":   policy,
	"provider": provider,
}

func amount(r *rand.Rand, part int) string {
	return fmt.Sprintf("%d %s", owned(r, part, 100, pick(r, []int{1000, 1000, 10000})),
		pick(r, []string{"euros", "dollars", "shillings"}))
}

func date(r *rand.Rand, part int) string {
	// no leap years: one day, one remainder
	day := time.Date(2022+r.IntN(2), 1, 1+owned(r, part, 0, 365), 0, 0, 0, 0, time.UTC)
	return ordinal(day.Day()) + day.Format(pick(r, []string{" January", " January 2006", " Jan", " of January"}))
}

// ordinal writes the day of a month: 1st, 2nd, 3rd, 4th.
func ordinal(day int) string {
	ending := "th"
	if day/10 != 1 && day%10 >= 1 && day%10 <= 3 {
		ending = []string{"st", "nd", "rd"}[day%10-1]
	}
	return fmt.Sprintf("%d%s", day, ending)
}

func policy(r *rand.Rand, part int) string {
	return fmt.Sprintf("%s%d", pick(r, []string{"HK", "MED", "POL"}), owned(r, part, 10000, 100000))
}

// provider returns a random place or doctor.
func provider(r *rand.Rand, part int) string {
	if r.IntN(3) == 0 {
		return "Dr " + joined(r, part, surnames)
	}
	return place(r, part)
}

func place(r *rand.Rand, part int) string {
	return joined(r, part, places) + pick(r, []string{" Clinic", " Clinic", " Hospital", " Health Centre"})
}

// joined makes a name of two halves. Each pair belongs to one part only; the halves occur in all parts.
func joined(r *rand.Rand, part int, halves [2][]string) string {
	for {
		i, j := r.IntN(len(halves[0])), r.IntN(len(halves[1]))
		if partOf(3*i+j) == part {
			return halves[0][i] + halves[1][j]
		}
	}
}

// Halves of the names of providers.
var (
	places = [2][]string{
		{"Lake", "River", "Hill", "Oak", "North", "East", "West", "South", "Green", "Silver", "Rose", "Stone", "Maple",
			"Ash", "Wood", "Fair"},
		{"side", "bank", "crest", "field", "gate", "view", "brook", "moor", "ford", "stead", "wick", "mere"},
	}
	surnames = [2][]string{
		{"Oka", "Wanji", "Lind", "Castel", "Petro", "Yama", "Had", "Nova", "Ferre", "Kowal", "Orte", "Rah"},
		{"for", "ru", "qvist", "lano", "vic", "da", "dad", "kov", "ira", "ski", "gan", "man"},
	}
)
