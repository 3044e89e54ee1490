package dataset

import (
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
	warnings      []string
	splitWarnings []splitWarning
	doubts        []string // warnings of doubtful data
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
		_, surveys := d.Tasks[number].(tasks.Surveyor)
		if _, samples := d.Tasks[number].(tasks.SurveySampler); surveys && !samples {
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
