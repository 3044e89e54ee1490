package dataset

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/tasks"
)

// indexed returns the stream of a group's training file by its index, nil if there is none of the same files, tasks and
// program. The survey of the group is set, and the tasks are surveyed.
func (r *reader) indexed(group *Group, file config.File, place indexPlace) *Stream {
	if place.path == "" {
		return nil
	}
	in, err := os.Open(place.path)
	if err != nil {
		return nil
	}
	defer in.Close()
	s, about, err := r.readIndex(group, file, in, place)
	if err != nil {
		return nil // damaged, or of other data: a pass makes another
	}
	if err := r.adopt(s, about); err != nil {
		s.Close()
		return nil
	}
	return s
}

// errOther is the error of an index of other data.
var errOther = errors.New("an index of other data")

// readIndex reads an index that encodeIndex has written.
func (r *reader) readIndex(group *Group, file config.File, in *os.File, place indexPlace) (
	s *Stream, about indexAbout, err error) {
	info, err := in.Stat()
	if err != nil {
		return nil, about, err
	}
	sum := crc32.New(castagnoli)
	buffered := bufio.NewReaderSize(in, 1<<16)
	from := io.TeeReader(buffered, sum)

	// description
	head := make([]byte, len(indexMagic)+4)
	if _, err := io.ReadFull(from, head); err != nil {
		return nil, about, err
	}
	n := binary.LittleEndian.Uint32(head[len(indexMagic):])
	if string(head[:len(indexMagic)]) != indexMagic || n > maxIndexAbout || int64(n) > info.Size() {
		return nil, about, errOther
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(from, text); err != nil {
		return nil, about, err
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return nil, about, err
	}
	if about.Key != place.key {
		return nil, about, errOther
	}

	// numbers
	format := r.e.Tasks[group.Tasks[0]].Data.FormatOf(file.Name)
	format.Fields = nil
	records, err := corpus.OpenStream(file.Paths(), format, from, info.Size())
	if err != nil {
		return nil, about, err
	}
	s = newStream(r.data, group, records, nil)
	if r.data.resumes {
		if err := records.Verify(); err != nil {
			s.Close()
			return nil, about, err
		}
	}
	if err := s.readNumbers(from, about); err != nil {
		s.Close()
		return nil, about, err
	}
	have := sum.Sum32()
	var want [4]byte
	if _, err := io.ReadFull(buffered, want[:]); err != nil || binary.LittleEndian.Uint32(want[:]) != have {
		s.Close()
		return nil, about, fmt.Errorf("CRC-32C %08x: %w", have, errOther)
	}
	s.index, s.indexed = place, true
	return s, about, nil
}

// readNumbers reads the lengths of examples and the numbers of records by split.
func (s *Stream) readNumbers(from io.Reader, about indexAbout) error {
	all := s.records.Len()
	if about.Lengths < 0 || about.Lengths > all {
		return errOther
	}
	s.lengths = make([]int32, about.Lengths)
	if err := corpus.ReadNumbers(from, s.lengths); err != nil {
		return err
	}
	if len(about.Divided) == 0 {
		return nil
	}
	s.divided = map[string][]uint32{}
	for _, split := range indexSplits {
		n, has := about.Divided[split]
		switch {
		case !has:
			continue
		case n < 0 || n > all:
			return errOther
		}
		numbers := make([]uint32, n)
		if err := corpus.ReadNumbers(from, numbers); err != nil {
			return err
		}
		for _, number := range numbers {
			if int(number) >= all {
				return errOther
			}
		}
		s.divided[split] = numbers
	}
	return nil
}

// adopt sets what an index says of a stream, its group and its tasks.
func (r *reader) adopt(s *Stream, about indexAbout) error {
	group, all := s.group, s.records.Len()
	if n := len(s.kinds); len(about.Survey.Labels) != n || len(about.Survey.Labelled) != n ||
		len(about.Encoded.TruncatedTargets) != n || len(about.Encoded.Statistics) != n {
		return errOther
	}

	// samples of the tasks' surveys, and first records
	first, err := s.records.Record(0)
	if err != nil {
		return err
	}
	s.sampled = map[int][]sampled{}
	for _, number := range group.Tasks {
		format := r.e.Tasks[number].Data.Format
		for _, n := range about.Sampled[number] {
			if n < 0 || n >= all {
				return errOther
			}
			record, err := s.records.Record(n)
			if err != nil {
				return err
			}
			s.sampled[number] = append(s.sampled[number], sampled{n, format.RenameRecord(record)})
		}
		tasks.SurveyRecords(r.types[number], recordsOf(s.sampled[number]))
		group.first[number] = format.RenameRecord(first)
	}
	for _, n := range about.Given {
		if int(n) >= all {
			return errOther
		}
	}

	// what the passes have found
	s.warnings, s.splitWarnings, s.doubts, s.given = about.Warnings, about.SplitWarnings, about.Doubts, about.Given
	s.encoded, s.sum, s.encoding = about.Encoded, about.Sum, about.Encoding
	group.setDivided(s.divided, s.records.Place)
	group.train = r.data.newSurvey(group)
	of := about.Survey
	group.train.examples, group.train.unlabelled = of.Examples, of.Unlabelled
	group.train.paired, group.train.empty = of.Paired, of.Empty
	for h := range group.train.heads {
		group.train.heads[h] = headSurvey{of.Labelled[h], of.Labels[h]}
	}
	return nil
}
