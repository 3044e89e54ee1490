package dataset

import (
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

	found   found
	sampled map[int][]corpus.Record // by task: those of found.Sampled, by its names
	index   indexPlace
	indexed bool // it is from an index
	// readers are *reader with tasks of their own, whose state one goroutine may change
	readers sync.Pool
}

var _ multitask.Stream = (*Stream)(nil)

func newStream(d *Dataset, group *Group, records *corpus.Stream) *Stream {
	s := &Stream{data: d, group: group, records: records, kinds: d.kinds(group), windowing: d.Windowing(group),
		sampled: map[int][]corpus.Record{}}
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
			tasks.SurveyRecords(built, s.sampled[number])
			types[number] = built
		}
		return &reader{e: d.Experiment, types: types, mistakes: &plugin.Mistakes{}}
	}
	return s
}

func (s *Stream) count() int {
	if s.numbers == nil {
		return s.records.Len()
	}
	return len(s.numbers)
}

func (s *Stream) record(number int) int {
	if s.numbers == nil {
		return number
	}
	return int(s.numbers[number])
}

func (s *Stream) place(number int) corpus.Place { return s.records.Place(s.record(number)) }

func (s *Stream) example(record int) (*corpus.Example, error) {
	read, err := s.records.Record(record)
	if err != nil {
		return nil, err
	}
	in := s.readers.Get().(*reader)
	defer s.readers.Put(in)
	var e *corpus.Example
	for _, number := range s.group.Tasks {
		format := trainingFormat(in.e.Tasks[number])
		if e, err = in.addTo(e, s.group, number, &format, read); err != nil {
			return nil, err
		}
	}
	e.Transient = true
	return e, nil
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
func (s *Stream) Lengths() []int32 { return s.found.Lengths }

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
func (s *Stream) Sum() string { return s.found.Sum }

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

// encode encodes each training example once, and keeps their lengths and what is known of them as a whole.
func (s *Stream) encode() error {
	key := s.encodingKey()
	if s.indexed && s.found.Encoding == key && len(s.found.Lengths) == s.count() {
		return nil
	}
	sum := multitask.NewExampleSum()
	s.found.Lengths = make([]int32, 0, s.count())
	err := s.data.encode(s.group, config.Train, func(e *corpus.Example) {
		s.found.Lengths = append(s.found.Lengths, int32(e.Tokens()))
		sum.Add(e, s.kinds)
	})
	if err != nil {
		return err
	}
	s.found.Survey, s.found.Sum = s.group.surveys[config.Train], sum.String()
	if s.found.Encoding = key; key != "" && s.index.path != "" {
		// Without an index the next start takes longer: a failure has no other consequence.
		index{s.index.key, s.records.Places(), s.found}.write(s.index.path)
	}
	return nil
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
			if heads.TraitsOf(head.Part.Options).Fitted {
				mistakes.Add(at, "task %q: data: stream: head %q of type %s is fitted to many training texts at once; "+
					"leave stream out, and take limit: N if they do not fit in memory", task.Name, head.Name,
					head.Part.Type)
			}
		}
	}
}

func streams(e *config.Experiment, group *Group) bool { return e.Tasks[group.Tasks[0]].Data.Stream }

func sizeOf(paths []string) (size int64) {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil {
			size += info.Size()
		}
	}
	return size
}

// stream reads the training examples of a group as a Stream, and returns the examples of the other splits that are
// taken from its file. Where the run is trained already, all requested splits are read.
func (r *reader) stream(group *Group, file config.File, requested []string) map[string][]*corpus.Example {
	before := r.mistakes.Len()
	if r.data.checkStreams(group, r.mistakes); r.mistakes.Len() > before {
		return map[string][]*corpus.Example{}
	}
	place := r.data.indexPlace(group, file)
	s := r.indexed(group, file, place)
	if s != nil {
		r.warnings = append(r.warnings, s.found.Warnings...)
	} else if s = r.firstPasses(group, file); s == nil {
		return map[string][]*corpus.Example{}
	}
	s.index = place
	r.warnOf(requested, s.found.SplitWarnings)
	return r.streamed(s, requested)
}

// firstPasses reads a training file for the first time. After a mistake the result is nil.
func (r *reader) firstPasses(group *Group, file config.File) *Stream {
	first, before, warnings := r.e.Tasks[group.Tasks[0]], r.mistakes.Len(), len(r.warnings)
	p := r.newPass(group, file, nil)
	size, progress := int(sizeOf(file.Paths())>>10), r.data.pass("first pass over %s, KiB", group)
	visit := func(record corpus.Record, read int64) {
		if p.scan(record); p.n%progressEvery == 0 {
			progress(int(read>>10), size)
		}
	}
	records, err := corpus.Scan(r.data.ctx, file.Paths(), r.warningFormat(first, file), visit)
	if err != nil {
		r.fileMistakes(first, file, err)
		return nil
	}
	progress(size, size)

	s := newStream(r.data, group, records)
	all, survey := newDivisible(first.Data, s.kinds, records.Place), r.data.newSurvey(group)
	var given []uint32 // numbers of records with words
	if p.survey() && p.examples(r.data.pass("examples of %s", group), records.Record, func(i int, e *corpus.Example) {
		all.add(e)
		survey.add(e)
		if e.WordsGiven {
			given = append(given, uint32(i))
		}
	}) {
		s.found.Divided, s.found.SplitWarnings = r.divide(group, all)
	}
	if r.mistakes.Len() > before {
		s.Close()
		return nil
	}
	s.found.Given, s.found.Sampled = s.training(given), map[int][]int{}
	for _, t := range p.tasks {
		s.found.Warnings = append(s.found.Warnings, r.data.taskWarnings(t.number)...)
		s.found.Sampled[t.number], s.sampled[t.number] = t.sampled, t.records
	}
	s.found.Warnings = append(s.found.Warnings, r.warnings[warnings:]...)
	if len(s.found.Divided) == 1 {
		s.found.Divided = nil
		group.surveys[config.Train] = survey // else that of all records
	}
	return s
}

// streamed sets the stream of a group, and returns the examples of the other splits that are taken from its file.
func (r *reader) streamed(s *Stream, requested []string) map[string][]*corpus.Example {
	s.numbers = s.found.Divided[config.Train]
	parts := map[string][]*corpus.Example{}
	for _, split := range requested {
		numbers := s.found.Divided[split]
		switch {
		case split != config.Train:
		case !r.trained:
			continue
		case s.found.Divided == nil:
			numbers = numbersTo(s.records.Len())
		}
		if numbers == nil {
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

func (s *Stream) read(numbers []uint32) ([]*corpus.Example, error) {
	examples := make([]*corpus.Example, 0, len(numbers))
	read := func(i int) (*corpus.Example, error) { return s.example(int(numbers[i])) }
	err := inOrder(s.data.ctx, func(int, int) {}, len(numbers), read, func(_ int, e *corpus.Example) error {
		e.Transient = false
		examples = append(examples, e)
		return nil
	})
	return examples, err
}

// training returns the first splitExamples of some records that are training examples.
func (s *Stream) training(numbers []uint32) []uint32 {
	var some []uint32
	for _, n := range numbers {
		_, found := slices.BinarySearch(s.found.Divided[config.Train], n)
		if found && len(some) < splitExamples {
			some = append(some, n)
		}
	}
	return some
}
