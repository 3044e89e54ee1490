package claims

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writer writes one note.
type writer struct {
	*rand.Rand
	split    Split
	text     strings.Builder
	runes    int // in text
	entities []Entity
	capital  bool            // the next letter is a capital
	lower    bool            // the note has no capital letters
	clean    bool            // there are no typos
	items    map[string]item // values of {claimed}, {other} and {third}
	facts    map[string]fact // values of other slots, the same at each use
	// start and end, in characters, of items and of facts that are entities
	places map[string][2]int
}

// fact is the value of a slot. Without a label it is not an entity.
type fact struct{ label, value string }

func newWriter(r *rand.Rand, split Split) *writer {
	return &writer{Rand: r, split: split, entities: []Entity{}, facts: map[string]fact{}, places: map[string][2]int{}}
}

// typoRate is the probability of a typo in a word of five letters or more. Entities have none: members copy them from
// their papers.
const typoRate = 0.03

// note writes a note that claims an item of the kind.
func (w *writer) note(claimed kind) Note {
	p := w.split.from
	var sentences []string
	add := func(probability float64, patterns []string) {
		if len(patterns) > 0 && w.Float64() < probability {
			sentences = append(sentences, pick(w.Rand, patterns))
		}
	}

	add(0.35, p.openings)
	body := w.body()
	urgency, patterns := w.urgency()
	if w.IntN(4) == 0 {
		add(1, patterns)
		sentences = append(sentences, body...)
	} else {
		sentences = append(sentences, body...)
		add(0.4, p.asides)
		add(1, patterns)
	}
	add(0.25, p.closings)

	w.lower = w.Float64() < 0.15
	w.items = w.chooseItems(claimed, w.item)
	w.write(sentences)
	return Note{w.text.String(), claimed.name, urgency, w.entities}
}

// body chooses the sentences about the claimed item and others.
func (w *writer) body() []string {
	p := w.split.from
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

// urgency chooses the urgency of a note, and returns the sentences that state it; most routine notes do not mention it.
func (w *writer) urgency() (string, []string) {
	p := w.split.from
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

// chooseItems returns the items of a note: the claimed one and two others, all of different kinds.
func (w *writer) chooseItems(claimed kind, newItem func(kind) item) map[string]item {
	var others []kind
	for _, k := range kinds {
		if k.name != claimed.name {
			others = append(others, k)
		}
	}
	w.Shuffle(len(others), func(i, j int) { others[i], others[j] = others[j], others[i] })
	return map[string]item{
		"claimed": newItem(claimed),
		"other":   newItem(others[0]),
		"third":   newItem(others[1]),
	}
}

// alternatives are words to choose from: [paid|settled|].
var alternatives = regexp.MustCompile(`\[[^\]]*\]`)

// longWord is a word long enough for a typo.
var longWord = regexp.MustCompile(`[a-z]{5,}`)

// slot is a slot of a pattern: {amount}, {claimed}, or {claimed is} for the verb that agrees with it.
var slot = regexp.MustCompile(`\{(\w+)(?: (\w+))?\}`)

// write writes patterns, separated by spaces.
func (w *writer) write(sentences []string) {
	for i, s := range sentences {
		if i > 0 {
			w.put(" ")
		}
		w.sentence(s)
	}
}

// sentence writes a pattern with a capital first letter.
func (w *writer) sentence(pattern string) {
	w.capital = true
	w.fill(w.choose(pattern), "")
}

// choose returns a pattern with one of its alternatives at each place.
func (w *writer) choose(pattern string) string {
	pattern = alternatives.ReplaceAllStringFunc(pattern, func(a string) string {
		return pick(w.Rand, strings.Split(a[1:len(a)-1], "|"))
	})
	return strings.Join(strings.Fields(pattern), " ")
}

// fill writes a pattern without alternatives. procedure is the value of {procedure}.
func (w *writer) fill(pattern, procedure string) {
	for {
		at := slot.FindStringSubmatchIndex(pattern)
		if at == nil {
			w.put(w.mistyped(pattern))
			return
		}
		w.put(w.mistyped(pattern[:at[0]]))
		name := pattern[at[2]:at[3]]
		t, isItem := w.items[name]
		f, isFact := w.facts[name]
		from := w.runes
		switch {
		case isItem && at[4] >= 0:
			w.put(t.verb(pattern[at[4]:at[5]]))
		case isItem:
			w.fill(t.pattern, t.procedure)
			w.places[name] = [2]int{from, w.runes}
		case isFact && f.label == "":
			w.put(f.value)
		case isFact:
			w.entity(f.label, f.value)
			w.places[name] = [2]int{from, w.runes}
		case name == "number":
			w.put(pick(w.Rand, numbers))
		case name == "procedure":
			w.entity(name, procedure)
		default:
			w.entity(name, values[name](w.Rand, w.split.part))
		}
		pattern = pattern[at[1]:]
	}
}

// entity writes a value and records its span.
func (w *writer) entity(label, value string) {
	start := w.runes
	w.put(value)
	w.entities = append(w.entities, Entity{start, w.runes, label})
}

func (w *writer) put(s string) {
	if s == "" {
		return
	}
	if w.capital {
		first, size := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(first)) + s[size:]
		w.capital = false
	}
	if w.lower {
		s = strings.ToLower(s)
	}
	w.text.WriteString(s)
	w.runes += utf8.RuneCountInString(s)
}

// mistyped returns s with typos.
func (w *writer) mistyped(s string) string {
	if w.clean {
		return s
	}
	return longWord.ReplaceAllStringFunc(s, func(word string) string {
		if w.Float64() >= typoRate {
			return word
		}
		i := 1 + w.IntN(len(word)-2)
		switch w.IntN(3) {
		case 0: // two letters are swapped
			return word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
		case 1: // one is missing
			return word[:i] + word[i+1:]
		default: // one is duplicated
			return word[:i] + word[i:i+1] + word[i:]
		}
	})
}

// numbers are the values of {number}, which is not an entity.
var numbers = []string{"two", "three", "four", "five", "six", "seven", "ten", "twelve"}

// pick chooses one of list.
func pick[E any](r *rand.Rand, list []E) E { return list[r.IntN(len(list))] }
