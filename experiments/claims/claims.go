// Package claims writes the notes that the quickstart and claims.yaml train on: what members of a health insurance
// write when they claim, invented from a seed. Each note has a claim type, an urgency and the entities in it; those of
// claims.yaml have more, and come with clauses and questions, too.
//
// Most notes name several things, of which one is claimed: the others were settled, declined or put down by mistake. So
// the claim type depends on who does what in a sentence, not on the words in it. Sentences and entity values of the dev
// and test notes are not among those of the train notes, though their words are.
package claims

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
)

//go:generate go run ./generate

// Note is one claim.
type Note struct {
	Text      string   `json:"text"`
	ClaimType string   `json:"claim_type"`
	Urgency   string   `json:"urgency"`
	Entities  []Entity `json:"entities"`
}

// Entity is a span of a note's text, in characters, End exclusive.
type Entity struct {
	Start int    `json:"start"`
	End   int    `json:"end"`
	Label string `json:"label"`
}

// Split names a file of notes and how many it has.
type Split struct {
	Name  string
	Notes int
	seed  uint64
	part  int // of the entity values
	from  *patterns
}

// Splits are the three files of the quickstart.
var Splits = []Split{
	{"train", 4000, 1, 0, &trainPatterns},
	{"dev", 300, 2, 1, &devPatterns},
	{"test", 500, 3, 2, &testPatterns},
}

// File is the name of the file of a split's notes. Those of train are packed; those of dev and test are text, so that
// people can read some.
func (s Split) File() string {
	if s.Name == "train" {
		return "train.jsonl.gz"
	}
	return s.Name + ".jsonl"
}

// Write writes a split's notes as JSON lines: always the same ones.
func Write(w io.Writer, split Split) error {
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	for _, note := range split.notes() {
		if err := out.Encode(note); err != nil {
			return fmt.Errorf("%s notes: %w", split.Name, err)
		}
	}
	return nil
}

func (s Split) notes() []Note {
	r := rand.New(rand.NewPCG(s.seed, 0))
	written := map[string]bool{}
	var notes []Note
	for len(notes) < s.Notes {
		note := newWriter(r, s).note(kinds[len(notes)%len(kinds)])
		if !written[note.Text] {
			written[note.Text] = true
			notes = append(notes, note)
		}
	}
	r.Shuffle(len(notes), func(i, j int) { notes[i], notes[j] = notes[j], notes[i] })
	return notes
}
