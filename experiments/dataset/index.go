package dataset

import (
	"bufio"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// indexPlace is where the index of a Stream is, and what it depends on besides the training file's content.
type indexPlace struct {
	path string // "": there is no cache for it
	key  string
}

// indexMagic begins an index; the number is that of its format.
const indexMagic = "jenga stream index 1\n"

// maxIndexAbout is the largest size of an index without its numbers, in bytes.
const maxIndexAbout = 64 << 20

// indexAbout is what an index has beside numbers.
type indexAbout struct {
	Key           string           `json:"key"`
	Encoding      string           `json:"encoding"`
	Sampled       map[int][]int    `json:"sampled"` // by task
	Warnings      []plugin.Warning `json:"warnings"`
	SplitWarnings []splitWarning   `json:"split_warnings"`
	Doubts        []plugin.Warning `json:"doubts"`
	Survey        surveyAbout      `json:"survey"`
	Encoded       encodedSurvey    `json:"encoded"`
	Sum           string           `json:"sum"`
	Divided       map[string]int   `json:"divided"` // numbers of records by split
	Given         []uint32         `json:"given"`
	Lengths       int              `json:"lengths"`
}

// surveyAbout is a survey in an index.
type surveyAbout struct {
	Examples   int              `json:"examples"`
	Unlabelled int              `json:"unlabelled"`
	Paired     int              `json:"paired"`
	Empty      int              `json:"empty"`
	Labelled   []int            `json:"labelled"` // by head
	Labels     []map[string]int `json:"labels"`   // by head
}

// indexSplits are the splits in the order of their numbers in an index.
var indexSplits = []string{config.Train, config.Dev, config.Test, Unused}

// indexPlace returns the place of the index of a group's training file in the user's cache folder. There is one index
// for the tasks of an experiment file, which the next one replaces.
func (d *Dataset) indexPlace(group *Group, file config.File) indexPlace {
	cache, err := os.UserCacheDir()
	if err != nil {
		return indexPlace{}
	}
	e, key := d.Experiment, sha256.New()

	// the program, the seed and the tasks
	if program, err := os.Executable(); err == nil {
		stamp(key, program)
	}
	fmt.Fprintln(key, e.Seed)
	for _, number := range group.Tasks {
		text, err := e.TaskText(number)
		if err != nil {
			return indexPlace{}
		}
		fmt.Fprintln(key, text)
	}

	// the tokenizer, which splits texts into words, and the files whose texts are compared with those of training
	tokenizer, err := sumTokenizer(d.Tokenizer)
	if err != nil {
		return indexPlace{}
	}
	fmt.Fprintln(key, tokenizer)
	first := e.Tasks[group.Tasks[0]]
	for _, other := range []config.File{first.Data.Dev, first.Data.Test} {
		for _, path := range other.Paths() {
			stamp(key, path)
		}
	}

	name := sha256.New()
	for _, path := range append([]string{e.Path, first.Name}, file.Paths()...) {
		if path, err = filepath.Abs(path); err != nil {
			return indexPlace{}
		}
		fmt.Fprintln(name, path)
	}
	return indexPlace{
		path: filepath.Join(cache, "jenga", "streams", hex.EncodeToString(name.Sum(nil)[:16])+".index"),
		key:  hex.EncodeToString(key.Sum(nil)),
	}
}

// stamp writes the path, size and time of a file.
func stamp(w io.Writer, path string) {
	fmt.Fprintln(w, path)
	if info, err := os.Stat(path); err == nil {
		fmt.Fprintln(w, info.Size(), info.ModTime().UnixNano())
	}
}

// sumTokenizer returns a checksum of the files of a tokenizer.
func sumTokenizer(tokenizer corpus.Tokenizer) (string, error) {
	folder, err := os.MkdirTemp("", "jenga-tokenizer-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	if err := tokenizer.Save(folder); err != nil {
		return "", err
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(folder, file.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n%s", file.Name(), len(text), text)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// encodingKey returns what the lengths of examples depend on besides the index's key: a vocabulary that is trained
// depends on the files of other tasks too.
func (s *Stream) encodingKey() string {
	tokenizer, err := sumTokenizer(s.data.Tokenizer)
	if err != nil {
		return ""
	}
	sum := sha256.New()
	fmt.Fprintf(sum, "%s %+v\n", tokenizer, s.windowing)
	for _, labels := range s.labels {
		fmt.Fprintf(sum, "%q\n", labels.Names())
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// writeIndex writes the index under a temporary name and renames it. Without it the next start takes longer: a failure
// has no other consequence.
func (s *Stream) writeIndex() {
	if s.index.path == "" {
		return
	}
	folder := filepath.Dir(s.index.path)
	if os.MkdirAll(folder, 0o755) != nil {
		return
	}
	file, err := os.CreateTemp(folder, "new-")
	if err != nil {
		return
	}
	err = s.encodeIndex(file)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), s.index.path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
}

// encodeIndex writes the index.
func (s *Stream) encodeIndex(to io.Writer) error {
	train := s.group.train
	about := indexAbout{
		Key: s.index.key, Encoding: s.encoding, Warnings: s.warnings, SplitWarnings: s.splitWarnings,
		Doubts: s.doubts, Encoded: s.encoded, Sum: s.sum, Given: s.given, Lengths: len(s.lengths),
		Sampled: map[int][]int{}, Divided: map[string]int{},
		Survey: surveyAbout{Examples: train.examples, Unlabelled: train.unlabelled, Paired: train.paired,
			Empty: train.empty},
	}
	for _, of := range train.heads {
		about.Survey.Labelled = append(about.Survey.Labelled, of.labelled)
		about.Survey.Labels = append(about.Survey.Labels, of.labels)
	}
	for number, records := range s.sampled {
		for _, r := range records {
			about.Sampled[number] = append(about.Sampled[number], r.number)
		}
	}
	for split, numbers := range s.divided {
		about.Divided[split] = len(numbers)
	}
	header, err := json.Marshal(about)
	if err != nil {
		return err
	}

	sum := crc32.New(files.CRC32C)
	buffered := bufio.NewWriter(to)
	out := io.MultiWriter(buffered, sum)
	io.WriteString(out, indexMagic)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(header))))
	out.Write(header)
	err = errors.Join(s.records.WriteIndex(out), corpus.WriteNumbers(out, s.lengths))
	for _, split := range indexSplits {
		err = errors.Join(err, corpus.WriteNumbers(out, s.divided[split]))
	}
	buffered.Write(binary.LittleEndian.AppendUint32(nil, sum.Sum32()))
	return errors.Join(err, buffered.Flush())
}

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
	sum := crc32.New(files.CRC32C)
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
