package claims

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
)

// Set is a folder of records of one kind, in three compressed files: train.jsonl.gz, dev.jsonl.gz, test.jsonl.gz.
type Set struct {
	Folder  string
	Splits  []Split
	records func(Split) []any
}

// Sets are the data of claims.yaml. As in the quickstart's notes, dev and test have sentences and entity values of
// their own, in the words of train.
var Sets = []Set{
	{"full", resized(11, 5000, 300, 500), records(Split.claims)},         // notes with all their labels
	{"clauses", resized(21, 6000, 300, 501), records(Split.pairs)},       // notes, each with a clause of the policy
	{"questions", resized(31, 3000, 300, 500), records(Split.questions)}, // notes, each with a question about it
}

// resized returns the splits with other numbers of records, and seeds of their own from seed on.
func resized(seed uint64, notes ...int) []Split {
	splits := slices.Clone(Splits)
	for i := range splits {
		splits[i].Notes, splits[i].seed = notes[i], seed+uint64(i)
	}
	return splits
}

// records returns a function that returns the records of a split as values of any type.
func records[R any](of func(Split) []R) func(Split) []any {
	return func(split Split) []any {
		var all []any
		for _, record := range of(split) {
			all = append(all, record)
		}
		return all
	}
}

// Write writes a split's records as JSON lines: the same ones in every call.
func (s Set) Write(w io.Writer, split Split) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, record := range s.records(split) {
		if err := out.Encode(record); err != nil {
			return fmt.Errorf("%s of %s: %w", split.Name, s.Folder, err)
		}
	}
	return nil
}

// Claim is a note of the full data.
type Claim struct {
	Text      string   `json:"text"`
	ClaimType string   `json:"claim_type"`
	Urgency   string   `json:"urgency"`
	Fraud     string   `json:"fraud"`  // fraud if the note contradicts itself, else genuine
	Amount    int      `json:"amount"` // what is claimed, in euros
	Codes     []string `json:"codes"`  // any number of those in codes and settings
	// anomalous if sentences are in an unnatural order, else normal
	Structure string `json:"structure"`
	// for each check of checks, 1 if the note names its entity, else 0
	Quality  map[string][]int `json:"quality"`
	Entities []Entity         `json:"entities"`
}

// checks are the entities that the quality control of a claims office requires in a note.
var checks = map[string][]string{
	"member":    {"policy"},
	"treatment": {"date", "provider", "procedure"},
}

// quality returns the results of the checks of a note, by its entities.
func quality(entities []Entity) map[string][]int {
	results := map[string][]int{}
	for check, labels := range checks {
		for _, label := range labels {
			named := 0
			if slices.ContainsFunc(entities, func(e Entity) bool { return e.Label == label }) {
				named = 1
			}
			results[check] = append(results[check], named)
		}
	}
	return results
}

// claims returns notes with all labels. One in 25 is fraud; 10% of dev and test and 2% of train are anomalous. No note
// is both.
func (s Split) claims() []Claim {
	anomalies := 10
	if s.Name == "train" {
		anomalies = 50
	}
	r := rand.New(rand.NewPCG(s.seed, 0))
	written := map[string]bool{}
	var all []Claim
	for len(all) < s.Notes {
		n := len(all)
		claim := newWriter(r, s).claim(kinds[n%len(kinds)], n%25 == 7, n%anomalies == 3)
		if !written[claim.Text] {
			written[claim.Text] = true
			all = append(all, claim)
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// claim writes a note: a greeting, what happened, what is claimed, how urgent it is, a farewell.
func (w *writer) claim(claimed kind, fraud, anomalous bool) Claim {
	p, part := w.split.from, w.split.part
	w.lower = w.Float64() < 0.15
	w.items = w.chooseItems(claimed, w.plainItem)
	w.facts["clinic"] = fact{"provider", place(w.Rand, part)}
	w.fillSlots("date", "day")

	codes, happened := w.codes(claimed)
	if w.Float64() < 0.6 {
		happened = append([]string{pick(w.Rand, treatments[part])}, happened...)
	}
	if fraud || w.Float64() < 0.3 {
		happened = append(happened, w.sign(fraud))
	}
	amount, claims := w.money()
	if w.Float64() < 0.2 {
		claims = append(claims, w.settled())
	}
	urgency, urgent := w.urgency()

	sentences := []string{pick(w.Rand, p.openings)}
	if w.IntN(4) == 0 {
		sentences = slices.Concat(sentences, claims, happened)
	} else {
		sentences = slices.Concat(sentences, happened, claims)
	}
	if len(urgent) > 0 {
		sentences = append(sentences, pick(w.Rand, urgent))
	}
	sentences = append(sentences, pick(w.Rand, p.closings))
	if anomalous {
		sentences = w.disorder(sentences)
	}
	w.write(sentences)
	return Claim{
		w.text.String(), claimed.name, urgency, either(fraud, "fraud", "genuine"), amount, codes,
		either(anomalous, "anomalous", "normal"), quality(w.entities), w.entities,
	}
}

func either(is bool, yes, no string) string {
	if is {
		return yes
	}
	return no
}

// fillSlots fills slots with random values, all different.
func (w *writer) fillSlots(label string, slots ...string) {
	for _, slot := range slots {
		for w.facts[slot] == (fact{}) {
			value := fact{label, values[label](w.Rand, w.split.part)}
			used := false
			for _, f := range w.facts {
				used = used || f == value
			}
			if !used {
				w.facts[slot] = value
			}
		}
	}
}

// plainItem returns an item of the kind, in words without an entity except a procedure.
func (w *writer) plainItem(k kind) item {
	for {
		t := w.item(k)
		if slots := slot.FindAllString(t.pattern, -1); len(slots) == 0 || len(slots) == 1 && t.procedure != "" {
			return t
		}
	}
}

// claimSentence returns a sentence with the claimed item, without an amount.
func (w *writer) claimSentence() string {
	for {
		if s := pick(w.Rand, w.split.from.claims); !slotted(s, "{amount}") {
			return s
		}
	}
}
