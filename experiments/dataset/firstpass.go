package dataset

import (
	"errors"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
)

// firstPass makes the examples of all records of a training file for the first time, and reports their mistakes.
type firstPass struct {
	*reader
	stream *Stream
	all    *divisible
	survey *survey
	given  []uint32 // numbers of records with words
}

// errEnough ends the pass at an error that other records would give too.
var errEnough = errors.New("enough")

// run makes the examples.
func (p *firstPass) run(file config.File) error {
	group, n := p.stream.group, p.stream.records.Len()
	first := p.e.Tasks[group.Tasks[0]]
	kind, wrong := p.types[group.Tasks[0]].Output(), map[int]*recordErrors{}
	for _, number := range group.Tasks {
		wrong[number] = newRecordErrors()
	}
	err := inOrder(n, p.stream.records.Record, func(i int, record corpus.Record) error {
		if err := p.data.progressed(i+1, i+1, n); err != nil {
			return err
		}
		example, mistaken := make([]*corpus.Example, 1), false
		for _, number := range group.Tasks {
			own := []corpus.Record{p.e.Tasks[number].Data.Format.RenameRecord(record)}
			errs, differ := p.addExamples(example, number, own, first.Name)
			wrong[number].add(errs...)
			if mistaken = mistaken || len(errs) > 0; differ != nil {
				p.mistakes.Append(differ)
				return errEnough
			}
		}
		if !mistaken {
			p.all.add(example[0], kind, first.Data.Split.By != "")
			p.survey.add(example[0])
			if example[0].WordsGiven {
				p.given = append(p.given, uint32(i))
			}
		}
		return nil
	})
	for _, number := range group.Tasks {
		p.recordMistakes(p.e.Tasks[number], file.Name, wrong[number], n)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
