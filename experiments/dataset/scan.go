package dataset

import (
	"errors"
	"os"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/tasks"
)

// surveyChunk is how many records a tasks.SurveySampler reads at once.
const surveyChunk = 256

// scanned is what a scan of a group's training file finds besides the places of records.
type scanned struct {
	group    *Group
	reader   *reader
	n        int                         // records
	found    map[int]*corpus.FoundFields // by task
	unread   unreadTexts
	surveyed map[int][]corpus.Record // by task: a sample of the records so far
	fresh    map[int][]corpus.Record // by task: records since
}

// scan reads the records of a group's training file for the first time. After a mistake the result is nil.
func (r *reader) scan(group *Group, file config.File) (*corpus.Stream, *scanned) {
	first, before := r.e.Tasks[group.Tasks[0]], r.mistakes.Len()
	s := &scanned{group: group, reader: r, found: map[int]*corpus.FoundFields{}, surveyed: map[int][]corpus.Record{},
		fresh: map[int][]corpus.Record{}}
	for _, number := range group.Tasks {
		s.found[number] = r.e.Tasks[number].Data.Format.FindFields()
	}
	format := first.Data.FormatOf(file.Name)
	format.Fields = nil // each task renames its own
	size := sizeOf(file.Paths())
	records, err := corpus.Scan(file.Paths(), format, func(record corpus.Record, read int64) error {
		s.add(record)
		s.n++
		return r.data.progressed(s.n, int(read>>10), int(size>>10))
	})
	if err != nil {
		r.fileMistakes(first, file, err)
		return nil, nil
	}
	for _, number := range group.Tasks {
		task := r.e.Tasks[number]
		if err := s.found[number].Err(file.Name); err != nil {
			r.fileMistakes(task, file, err)
		}
		s.sample(number)
		tasks.SurveyRecords(r.types[number], s.surveyed[number])
	}
	if r.mistakes.Len() > before {
		records.Close()
		return nil, nil
	}
	return records, s
}

// add adds a record by the names in its file.
func (s *scanned) add(record corpus.Record) {
	r := s.reader
	s.unread.add(r.e.Tasks[s.group.Tasks[0]].Data.Format, record)
	for _, number := range s.group.Tasks {
		s.found[number].Add(record)
		_, samples := r.types[number].(tasks.SurveySampler)
		_, known := s.group.first[number]
		if !samples && known {
			continue
		}
		own := r.e.Tasks[number].Data.Format.RenameRecord(record)
		if !known {
			s.group.first[number] = own
		}
		if !samples {
			continue
		}
		if s.fresh[number] = append(s.fresh[number], own); len(s.fresh[number]) >= surveyChunk {
			s.sample(number)
		}
	}
}

// sizeOf returns the size of files in bytes.
func sizeOf(paths []string) (size int64) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// sample adds to the sample of a task's records what those since have that it has not.
func (s *scanned) sample(number int) {
	sampler, samples := s.reader.types[number].(tasks.SurveySampler)
	if !samples {
		return
	}
	all := append(s.surveyed[number], s.fresh[number]...)
	var kept []corpus.Record
	for _, i := range sampler.SurveySample(all) {
		kept = append(kept, all[i])
	}
	s.surveyed[number], s.fresh[number] = kept, s.fresh[number][:0]
}

// stream reads the training examples of a group as a Stream, and returns the examples of the other splits that are
// taken from its file. Where the run is trained already, all requested splits are read.
func (r *reader) stream(group *Group, file config.File, requested []string) map[string][]*corpus.Example {
	before := r.mistakes.Len()
	if r.data.checkStreams(group, r.mistakes); r.mistakes.Len() > before {
		return map[string][]*corpus.Example{}
	}
	r.data.begin("first pass over " + file.Name + ", KiB")
	records, found := r.scan(group, file)
	if records == nil {
		return map[string][]*corpus.Example{}
	}
	s := newStream(r.data, group, records, found.surveyed)
	r.data.begin("examples of " + file.Name)
	pass := &firstPass{reader: r, stream: s, all: newDivisible(records.Place), survey: r.data.newSurvey(group)}
	if err := pass.run(file); err != nil {
		r.mistakes.Append(err)
	}
	if r.mistakes.Len() == before {
		r.reportUnread(group.Tasks[0], file, found.unread)
	}
	if r.mistakes.Len() > before {
		s.Close()
		return map[string][]*corpus.Example{}
	}

	// splits
	divided := r.divide(group, pass.all, requested)
	s.given = pass.given
	group.train = pass.survey
	if len(divided) > 1 {
		s.numbers = divided[config.Train]
		group.train = nil // all records were counted
	}
	parts := map[string][]*corpus.Example{}
	for split, numbers := range divided {
		if (split == config.Train && !r.trained) || !slices.Contains(requested, split) {
			continue
		}
		examples, err := s.read(numbers)
		if err != nil {
			r.mistakes.Append(err)
		}
		parts[split] = examples
	}
	if r.trained {
		s.Close()
		return parts
	}
	group.Stream = s
	return parts
}

// read reads records as examples that are kept.
func (s *Stream) read(numbers []uint32) ([]*corpus.Example, error) {
	examples := make([]*corpus.Example, 0, len(numbers))
	err := inOrder(len(numbers), func(i int) (*corpus.Example, error) { return s.example(int(numbers[i])) },
		func(_ int, e *corpus.Example) error {
			e.Transient = false
			examples = append(examples, e)
			return nil
		})
	return examples, err
}

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

// wordsGiven returns the first training examples whose records have words, at most n.
func (d *Dataset) wordsGiven(group *Group, n int) ([]*corpus.Example, error) {
	if s := group.Stream; s != nil {
		isTraining := func(record uint32) bool { return true }
		if s.numbers != nil {
			isTraining = func(record uint32) bool { _, found := slices.BinarySearch(s.numbers, record); return found }
		}
		var numbers []uint32
		for _, record := range s.given {
			if isTraining(record) && len(numbers) < n {
				numbers = append(numbers, record)
			}
		}
		s.given = nil
		return s.read(numbers)
	}
	var given []*corpus.Example
	for _, e := range group.Examples[config.Train] {
		if e.WordsGiven && len(given) < n {
			given = append(given, e)
		}
	}
	return given, nil
}

// isFitted reports whether a head is fitted to training texts.
func isFitted(head config.Head) bool { return heads.TraitsOf(head.Part.Options).Fitted }
