// Package claims generates the notes that the quickstart and claims.yaml train on: synthetic claims of members of a
// health insurance, from a seed. Each note has a claim type, an urgency and entities; the notes of claims.yaml have
// more labels, and there are clauses of a policy and questions.
//
// Most notes mention several items, of which one is claimed: the others were settled, declined or listed by mistake. So
// the claim type depends on the structure of a sentence, not only on its words. The dev and test notes have other
// sentences and entity values than the train notes, in the same words.
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

// File is the name of the file of a split's notes. Train is compressed; dev and test are plain text, to be read.
func (s Split) File() string {
	if s.Name == "train" {
		return "train.jsonl.gz"
	}
	return s.Name + ".jsonl"
}

// Write writes a split's notes as JSON lines. They are the same in every call.
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
