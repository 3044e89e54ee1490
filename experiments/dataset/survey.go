package dataset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
)

type survey struct {
	Examples   int
	Unlabelled int // without a target for any head
	Paired     int // with a pair
	Empty      int // with an empty text
	EmptyPairs int // with an empty second text of a pair
	OneWord    int // whose text is one word
	NoWords    int // whose words, which the file has, are all numbers, or all tags of spans
	Truncated  int // once they are encoded
	Heads      []headSurvey
	EmptyPair  string // place of the first with an empty second text
	Single     string // place of the first without a second text
	Garbled    int    // with a text that is UTF-8 read as cp1252
	Garble     string // place of the first of these
	Other      int    // with a text of another script read as cp1252
	OtherPlace string // of the first of these

	kinds []*outputs.Kind // of the heads
	sums  textSums
}

type headSurvey struct {
	Labelled int            // examples with a target
	Labels   map[string]int // how often each label occurs
	Negative int            // targets that are negative numbers
	Marks    map[string]int // of these, how often each whole number occurs
	Numbers  int            // targets that are a number
	Least    float64        // of these
	Most     float64

	// once they are encoded
	Truncated  int // targets in no window
	Statistics heads.Training
}

func (d *Dataset) newSurvey(group *Group) *survey {
	s := &survey{kinds: d.kinds(group)}
	for range s.kinds {
		s.Heads = append(s.Heads, headSurvey{Labels: map[string]int{}})
	}
	s.sums.labels = make([][]uint32, len(s.kinds))
	return s
}

func (d *Dataset) kinds(group *Group) []*outputs.Kind {
	var kinds []*outputs.Kind
	for _, of := range d.Heads(group) {
		kinds = append(kinds, d.Tasks[of.Number].Output())
	}
	return kinds
}

func (d *Dataset) labelsOf(group *Group) []*corpus.Labels {
	var labels []*corpus.Labels
	for _, of := range d.Heads(group) {
		labels = append(labels, d.Labels[of.name()])
	}
	return labels
}

func (h *headSurvey) addNumber(v *float64) {
	const most = 2 // whole numbers that are kept
	if v == nil {
		return
	}
	if h.Numbers++; h.Numbers == 1 {
		h.Least, h.Most = *v, *v
	}
	h.Least, h.Most = min(h.Least, *v), max(h.Most, *v)
	if *v >= 0 {
		return
	}
	if h.Negative++; *v == math.Trunc(*v) && len(h.Marks) < most {
		if h.Marks == nil {
			h.Marks = map[string]int{}
		}
		h.Marks[strconv.FormatFloat(*v, 'f', -1, 64)]++
	}
}

func (s *survey) add(e *corpus.Example) {
	s.Examples++
	labelled := false
	for h, target := range e.Targets {
		if target != nil {
			s.Heads[h].Labelled++
			labelled = true
		}
		s.kinds[h].Names(target, func(name *string) { s.Heads[h].Labels[*name]++ })
		if !s.kinds[h].HasLabels {
			s.Heads[h].addNumber(s.kinds[h].Count(target).Number)
		}
	}
	if !labelled {
		s.Unlabelled++
	}
	if e.Paired {
		s.Paired++
	} else if s.Single == "" {
		s.Single = e.Place.String()
	}
	if corpus.IsGarbled(e.Text) || corpus.IsGarbled(e.Pair) {
		if s.Garbled++; s.Garble == "" {
			s.Garble = e.Place.String()
		}
	}
	if corpus.IsOtherScript(e.Text) || corpus.IsOtherScript(e.Pair) {
		if s.Other++; s.Other == 1 {
			s.OtherPlace = e.Place.String()
		}
	}
	switch {
	case strings.TrimSpace(e.Text) == "":
		s.Empty++
	case e.Paired && strings.TrimSpace(e.Pair) == "":
		if s.EmptyPairs++; s.EmptyPair == "" {
			s.EmptyPair = e.Place.String()
		}
	}
	if e.WordsGiven && len(e.Words) == 1 || !e.WordsGiven && !e.Paired && isOneWord(e.Text) {
		s.OneWord++
	}
	if e.WordsGiven && areNoWords(e.Text) {
		s.NoWords++
	}
	s.sums.add(s.kinds, e)
}

func (d *Dataset) survey(group *Group, splits ...string) error {
	for _, split := range splits {
		if group.surveys[split] != nil {
			continue
		}
		s := d.newSurvey(group)
		err := d.each(group, split, "labels of %s", func(e *corpus.Example) error {
			s.add(e)
			return nil
		})
		if err != nil {
			return err
		}
		group.surveys[split] = s
	}
	return nil
}

// Paired reports whether all training examples of the group are pairs of texts, and whether none is. Without training
// examples both are false.
func (g *Group) Paired() (all, none bool) {
	s := g.surveys[config.Train]
	if s == nil || s.Examples == 0 {
		return false, false
	}
	return s.Paired == s.Examples, s.Paired == 0
}

func (d *Dataset) find(name multitask.HeadName) (group *Group, h int) {
	for g := range d.Groups {
		for h, of := range d.Heads(&d.Groups[g]) {
			if of.name() == name {
				return &d.Groups[g], h
			}
		}
	}
	panic("dataset: no head " + name.Head + " of task " + name.Task)
}

// Labelled returns the number of training examples with a target for a head.
func (d *Dataset) Labelled(name multitask.HeadName) int {
	group, h := d.find(name)
	return d.Count(group, h, config.Train).Labelled
}

// EachTarget calls visit with the place and the target for a head of each training example, in their order.
func (d *Dataset) EachTarget(name multitask.HeadName, visit func(at corpus.Place, t corpus.Target)) error {
	group, h := d.find(name)
	return d.each(group, config.Train, "targets of %s", func(e *corpus.Example) error {
		visit(e.Place, e.Targets[h])
		return nil
	})
}

// each calls visit with each example of a split of a group, in their order; they may not be encoded. what names the
// pass over a streamed file.
func (d *Dataset) each(group *Group, split, what string, visit func(e *corpus.Example) error) error {
	progress, n, read := d.source(group, split, what)
	return inOrder(d.ctx, progress, n, read, func(_ int, e *corpus.Example) error { return visit(e) })
}

// source returns the number of examples of a split, what reads one, and what reports the progress of a pass over a
// streamed file. The numbers of labels are set if they are known.
func (d *Dataset) source(group *Group, split, what string) (progress func(done, of int), n int,
	read func(i int) (*corpus.Example, error)) {
	if s := group.Stream; s != nil && split == config.Train {
		return d.pass(what, group), s.count(), s.numbered
	}
	examples := group.Examples[split]
	return func(int, int) {}, len(examples), func(i int) (*corpus.Example, error) { return examples[i], nil }
}

// encode sets the Windows of each example of a split, in which it locates numbered targets, completes the split's
// survey, and calls visit. Those of a stream are read for that alone.
func (d *Dataset) encode(group *Group, split string, visit func(e *corpus.Example)) error {
	s, windowing := group.surveys[split], d.Windowing(group)
	if s == nil {
		return nil
	}
	s.Truncated = 0
	var statistics []*statistics
	for h, set := range d.labelsOf(group) {
		s.Heads[h].Truncated, statistics = 0, append(statistics, newStatistics(len(set.Names())))
	}
	type encoded struct {
		*corpus.Example
		truncated bool
	}
	var taken atomic.Int64 // bytes of tokens
	progress, n, read := d.source(group, split, "encoding %s")
	err := inOrder(d.ctx, progress, n, func(i int) (encoded, error) {
		e, err := read(i)
		if err != nil {
			return encoded{}, err
		}
		encode(d.Tokenizer, windowing, s.kinds, e)
		size := sizeOfTokens(e)
		if bytes := taken.Add(size); (bytes-size)>>20 < bytes>>20 && bytes > d.machine.Left() { // asked once a MiB
			return encoded{}, d.tooManyTokens(group, split, e.Place, bytes)
		}
		return encoded{e, windowing.TruncatedTokens(d.Tokenizer, e) > 0}, nil
	}, func(_ int, e encoded) error {
		if e.truncated {
			s.Truncated++
		}
		for h, kind := range s.kinds {
			if kind.Truncated(e.Targets[h]) {
				s.Heads[h].Truncated++
			}
			statistics[h].add(kind.Count(e.Targets[h]))
		}
		visit(e.Example)
		if e.Transient {
			taken.Add(-sizeOfTokens(e.Example))
		}
		return nil
	})
	for h := range statistics {
		s.Heads[h].Statistics = statistics[h].training()
	}
	return err
}

// sizeOfTokens returns the memory of an example's tokens in bytes.
func sizeOfTokens(e *corpus.Example) (bytes int64) {
	for _, w := range e.Windows {
		bytes += int64(4*len(w.IDs) + 16*len(w.Offsets) + len(w.Segments) + len(w.TokenTypes) + 4*len(w.Words))
	}
	return bytes
}

// tooManyTokens is the error of a split whose examples up to about the one at a place have tokens of so many bytes.
// Since these have been taken already, they are at most half of what was free, and less where other processes of the
// training read the same data at the same time.
func (d *Dataset) tooManyTokens(group *Group, split string, at corpus.Place, bytes int64) error {
	data, remedy := d.Experiment.Tasks[group.Tasks[0]].Data, "divide long texts, or the file"
	if split == config.Train && group.inPlace[split] == "" {
		remedy = "divide long texts, or read fewer by data: {limit: N}"
		if !data.Stream && data.FormatOf(TrainingFile(data).Name).CheckStream(at.File) == nil {
			remedy += ", or read them from their file in each step by data: {stream: true}"
		}
	}
	return fmt.Errorf("%s: up to about here the tokens of %s take %s, more than the memory that is left beside them; "+
		"%s", at, group.nameOf(split), memory.Size(bytes), remedy)
}

// encode sets the Windows of an example, and locates its numbered targets in them.
func encode(tokenizer corpus.Tokenizer, windowing corpus.Windowing, kinds []*outputs.Kind, e *corpus.Example) {
	e.Windows = windowing.Encode(tokenizer, e)
	for h, kind := range kinds {
		kind.Locate(e.Targets[h], e)
	}
}

// Statistics summarises the training data of a head; without training data it is empty.
func (d *Dataset) Statistics(name multitask.HeadName) heads.Training {
	group, h := d.find(name)
	if s := group.surveys[config.Train]; s != nil {
		return s.Heads[h].Statistics
	}
	return newStatistics(len(d.Labels[name].Names())).training()
}

type statistics struct {
	counts  heads.Training
	numbers []float64
}

func newStatistics(labels int) *statistics {
	return &statistics{counts: heads.Training{Counts: make([]int, labels), Deviation: 1}}
}

func (s *statistics) add(c outputs.Count) {
	s.counts.Units += c.Units
	for _, id := range c.Labels {
		if id >= 0 {
			s.counts.Counts[id]++
		}
	}
	if c.Number != nil {
		s.numbers = append(s.numbers, *c.Number)
	}
}

func (s *statistics) training() heads.Training {
	t := s.counts
	if t.Units == 0 {
		return t
	}
	sum, squares := 0.0, 0.0
	for _, v := range s.numbers {
		sum += v
	}
	t.Mean = sum / float64(t.Units)
	for _, v := range s.numbers {
		squares += (v - t.Mean) * (v - t.Mean)
	}
	// rounding may leave squares above 0 for equal numbers
	if len(s.numbers) > 0 && slices.Min(s.numbers) < slices.Max(s.numbers) {
		t.Deviation = math.Sqrt(squares / float64(t.Units))
	}
	return t
}
