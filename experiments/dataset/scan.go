package dataset

import (
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
	surveyed map[int][]sampled // by task: a sample of the records so far
	fresh    map[int][]sampled // by task: records since
}

// sampled is a record of a task's sample, by our names, and its number.
type sampled struct {
	number int
	corpus.Record
}

// recordsOf returns the records of samples.
func recordsOf(samples []sampled) []corpus.Record {
	var records []corpus.Record
	for _, s := range samples {
		records = append(records, s.Record)
	}
	return records
}

// scan reads the records of a group's training file for the first time. After a mistake the result is nil.
func (r *reader) scan(group *Group, file config.File) (*corpus.Stream, *scanned) {
	first, before := r.e.Tasks[group.Tasks[0]], r.mistakes.Len()
	s := &scanned{group: group, reader: r, found: map[int]*corpus.FoundFields{}, surveyed: map[int][]sampled{},
		fresh: map[int][]sampled{}}
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
		tasks.SurveyRecords(r.types[number], recordsOf(s.surveyed[number]))
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
		if s.fresh[number] = append(s.fresh[number], sampled{s.n, own}); len(s.fresh[number]) >= surveyChunk {
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
	var kept []sampled
	for _, i := range sampler.SurveySample(recordsOf(all)) {
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
	place := r.data.indexPlace(group, file)
	if s := r.indexed(group, file, place); s != nil {
		r.warnings = append(r.warnings, s.warnings...)
		r.warnOf(requested, s.splitWarnings)
		return r.streamed(s, requested)
	}
	warnings := len(r.warnings)
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
	if r.mistakes.Len() == before {
		group.train = pass.survey
		if s.divided, s.splitWarnings = r.divide(group, pass.all); len(s.divided) > 1 {
			group.train = nil // all records were counted
		}
	}
	if r.mistakes.Len() > before {
		s.Close()
		return map[string][]*corpus.Example{}
	}
	s.index, s.given = place, s.training(pass.given)
	for _, number := range group.Tasks {
		s.warnings = append(s.warnings, r.data.taskWarnings(number)...)
	}
	s.warnings = append(s.warnings, r.warnings[warnings:]...)
	r.warnOf(requested, s.splitWarnings)
	if len(s.divided) == 1 {
		s.divided = nil
	}
	return r.streamed(s, requested)
}

// streamed sets the stream of a group, and returns the examples of the other splits that are taken from its file.
func (r *reader) streamed(s *Stream, requested []string) map[string][]*corpus.Example {
	s.numbers = s.divided[config.Train]
	parts, divided := map[string][]*corpus.Example{}, s.divided
	if divided == nil && r.trained {
		divided = map[string][]uint32{config.Train: s.all()}
	}
	for split, numbers := range divided {
		if split == config.Train && !r.trained || !slices.Contains(requested, split) {
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
	s.group.Stream = s
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

// all returns the numbers of all records.
func (s *Stream) all() []uint32 {
	numbers := make([]uint32, s.records.Len())
	for i := range numbers {
		numbers[i] = uint32(i)
	}
	return numbers
}

// training returns the first splitExamples of some records that are training examples.
func (s *Stream) training(numbers []uint32) []uint32 {
	var some []uint32
	for _, n := range numbers {
		_, found := slices.BinarySearch(s.divided[config.Train], n)
		if found && len(some) < splitExamples {
			some = append(some, n)
		}
	}
	return some
}

// wordsGiven returns the first training examples whose records have words, at most splitExamples.
func (d *Dataset) wordsGiven(group *Group) ([]*corpus.Example, error) {
	if group.Stream != nil {
		return group.Stream.read(group.Stream.given)
	}
	var given []*corpus.Example
	for _, e := range group.Examples[config.Train] {
		if e.WordsGiven && len(given) < splitExamples {
			given = append(given, e)
		}
	}
	return given, nil
}

// isFitted reports whether a head is fitted to training texts.
func isFitted(head config.Head) bool { return heads.TraitsOf(head.Part.Options).Fitted }
