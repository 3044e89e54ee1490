package dataset

import (
	"errors"
	"os"
	"slices"
	"sync"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Stream has the training examples of a group, which are read when a batch needs them: a multitask.Stream.
type Stream struct {
	data    *Dataset
	group   *Group
	records *corpus.Stream
	numbers []uint32 // of the records that are training examples; nil: all

	kinds     []*outputs.Kind  // of the heads
	labels    []*corpus.Labels // of the heads; nil: they are not known yet
	windowing corpus.Windowing

	lengths []int32
	sum     string
	encoded encodedSurvey
	given   []uint32            // numbers of the first training records with words
	divided map[string][]uint32 // numbers of the records of each split; nil: all are in train

	// what the passes find, which an index keeps
	sampled       map[int][]sampled // of the tasks' surveys
	warnings      []plugin.Warning
	splitWarnings []splitWarning
	doubts        []plugin.Warning // warnings of doubtful data
	index         indexPlace
	indexed       bool   // it is from an index
	encoding      string // what the lengths depend on besides; "": they are not known
	// readers are *reader with tasks of their own, whose state one goroutine may change
	readers sync.Pool
}

var _ multitask.Stream = (*Stream)(nil)

// encodedSurvey is what is known of the training examples as a whole after they were encoded once.
type encodedSurvey struct {
	Truncated        int              `json:"truncated"`         // examples
	TruncatedTargets []int            `json:"truncated_targets"` // by head: targets in no window
	Statistics       []heads.Training `json:"statistics"`        // by head
}

// newStream returns a stream of records. sampled are records with which the tasks' Survey finds what it finds with
// all, by the number of the task.
func newStream(d *Dataset, group *Group, records *corpus.Stream, sampled map[int][]sampled) *Stream {
	s := &Stream{data: d, group: group, records: records, kinds: d.kinds(group), windowing: d.Windowing(group),
		sampled: sampled}
	// later files may be split into words in another way, which the training data chooses
	splitters := slices.Clone(d.splitters)
	s.readers.New = func() any {
		types := make([]tasks.Task, len(d.Experiment.Tasks))
		for _, number := range group.Tasks {
			task := d.Experiment.Tasks[number]
			built, err := task.Part.Build(tasks.Env{Name: task.Name, Heads: task.HeadNames(), Split: splitters[number]})
			if err != nil {
				panic("dataset: " + err.Error()) // it was built before
			}
			tasks.SurveyRecords(built, recordsOf(s.sampled[number]))
			types[number] = built
		}
		return &reader{e: d.Experiment, types: types, mistakes: &plugin.Mistakes{}}
	}
	return s
}

// count returns the number of training examples.
func (s *Stream) count() int {
	if s.numbers == nil {
		return s.records.Len()
	}
	return len(s.numbers)
}

// record returns the number of the record of a training example.
func (s *Stream) record(number int) int {
	if s.numbers == nil {
		return number
	}
	return int(s.numbers[number])
}

// place returns the place of a training example.
func (s *Stream) place(number int) corpus.Place { return s.records.Place(s.record(number)) }

// example reads a record as an example of all tasks of the group.
func (s *Stream) example(record int) (*corpus.Example, error) {
	read, err := s.records.Record(record)
	if err != nil {
		return nil, err
	}
	in := s.readers.Get().(*reader)
	defer s.readers.Put(in)
	example := make([]*corpus.Example, 1)
	first := in.e.Tasks[s.group.Tasks[0]].Name
	for _, number := range s.group.Tasks {
		own := []corpus.Record{in.e.Tasks[number].Data.Format.RenameRecord(read)}
		errs, differ := in.addExamples(example, number, own, first)
		switch {
		case differ != nil:
			return nil, differ
		case len(errs) > 0:
			return nil, errs[0].err
		}
	}
	example[0].Transient = true
	return example[0], nil
}

// numbered reads a training example, and sets the numbers of its labels if they are known.
func (s *Stream) numbered(number int) (*corpus.Example, error) {
	e, err := s.example(s.record(number))
	if err != nil {
		return nil, err
	}
	for h, labels := range s.labels {
		s.kinds[h].AssignIDs(e.Targets[h], labels)
	}
	return e, nil
}

// Lengths implements multitask.Stream.
func (s *Stream) Lengths() []int32 { return s.lengths }

// At implements multitask.Stream.
func (s *Stream) At(number int) (*corpus.Example, error) {
	e, err := s.numbered(number)
	if err != nil {
		return nil, err
	}
	encode(s.data.Tokenizer, s.windowing, s.kinds, e)
	return e, nil
}

// Sum implements multitask.Stream.
func (s *Stream) Sum() string { return s.sum }

// Close closes the files.
func (s *Stream) Close() { s.records.Close() }

// Close closes the files of streamed training data; examples of them cannot be read any more.
func (d *Dataset) Close() {
	for _, group := range d.Groups {
		if group.Stream != nil {
			group.Stream.Close()
		}
	}
}

// Replaced returns the paths of streamed training data that name other files than those that are read, or none, each
// once.
func (d *Dataset) Replaced() []string {
	var paths []string
	for _, group := range d.Groups {
		if group.Stream != nil {
			paths = append(paths, group.Stream.records.Replaced()...)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// each calls visit with each training example, in their order, before they are encoded.
func (s *Stream) each(visit func(e *corpus.Example) error) error {
	return inOrder(s.count(), s.numbered, func(i int, e *corpus.Example) error {
		if err := s.data.progressed(i+1, i+1, s.count()); err != nil {
			return err
		}
		return visit(e)
	})
}

// encode encodes each training example once, and keeps their lengths and what is known of them as a whole.
func (s *Stream) encode() error {
	key := s.encodingKey()
	if s.indexed && s.encoding == key && len(s.lengths) == s.count() {
		return nil
	}
	d, sum := s.data, multitask.NewExampleSum()
	d.begin("encoding " + TrainingFile(d.Experiment.Tasks[s.group.Tasks[0]].Data).Name)
	s.lengths = make([]int32, 0, s.count())
	s.encoded = encodedSurvey{TruncatedTargets: make([]int, len(s.kinds))}
	var all []*statistics
	for _, labels := range s.labels {
		all = append(all, newStatistics(len(labels.Names())))
	}
	type encoded struct {
		*corpus.Example
		tokens    int
		truncated bool
	}
	read := func(number int) (encoded, error) {
		e, err := s.At(number)
		if err != nil {
			return encoded{}, err
		}
		return encoded{e, e.Tokens(), s.windowing.Truncates(d.Tokenizer, e)}, nil
	}
	err := inOrder(s.count(), read, func(i int, e encoded) error {
		if err := d.progressed(i+1, i+1, s.count()); err != nil {
			return err
		}
		s.lengths = append(s.lengths, int32(e.tokens))
		if e.truncated {
			s.encoded.Truncated++
		}
		sum.Add(e.Example, s.kinds)
		for h, kind := range s.kinds {
			if kind.Truncated(e.Targets[h]) {
				s.encoded.TruncatedTargets[h]++
			}
			all[h].add(kind.Count(e.Targets[h]))
		}
		return nil
	})
	s.sum = sum.String()
	for _, of := range all {
		s.encoded.Statistics = append(s.encoded.Statistics, of.training())
	}
	if err == nil && key != "" {
		s.encoding = key
		s.writeIndex()
	}
	return err
}

// checkStreams returns the mistakes of tasks whose training data cannot be streamed, for what they and their heads do
// with all of it.
func (d *Dataset) checkStreams(group *Group, mistakes *plugin.Mistakes) {
	at := d.Experiment.Place("tasks." + d.Experiment.Tasks[group.Tasks[0]].Name + ".data.stream")
	for _, number := range group.Tasks {
		task := d.Experiment.Tasks[number]
		if about := tasks.DescriptionOf(d.Tasks[number]); about.Survey != nil && about.SurveySample == nil {
			mistakes.Add(at, "task %q: data: stream: type %s reads all records of a file before the first example; "+
				"leave stream out", task.Name, task.Part.Type)
		}
		for _, head := range task.Heads {
			if isFitted(head) {
				mistakes.Add(at, "task %q: data: stream: head %q of type %s is fitted to many training texts at once; "+
					"leave stream out, and take limit: N if they do not fit in memory", task.Name, head.Name,
					head.Part.Type)
			}
		}
	}
}

// streams reports whether the training examples of a group are streamed.
func streams(e *config.Experiment, group *Group) bool { return e.Tasks[group.Tasks[0]].Data.Stream }

// surveyChunk is how many records a task's SurveySample reads at once.
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
		samples := tasks.DescriptionOf(r.types[number]).SurveySample != nil
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
	choose := tasks.DescriptionOf(s.reader.types[number]).SurveySample
	if choose == nil {
		return
	}
	all := append(s.surveyed[number], s.fresh[number]...)
	var kept []sampled
	for _, i := range choose(recordsOf(all)) {
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
