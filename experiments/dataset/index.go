package dataset

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

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

// index is what a file in gob has, which its CRC-32C follows.
type index struct {
	Key   string
	Files []corpus.Places
	Found found
}

// found is what the passes over a training file find.
type found struct {
	Sampled       map[int][]int // by task: numbers of the records of its survey
	Warnings      []plugin.Warning
	SplitWarnings []splitWarning
	Doubts        []plugin.Warning    // warnings of doubtful data
	Given         []uint32            // numbers of the first training records with words
	Divided       map[string][]uint32 // numbers of the records of each split; nil: all are in train

	// once the training examples are encoded
	Survey   *survey
	Lengths  []int32
	Encoding string // what these depend on besides; "": they are not known
	Sum      string
}

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
	for _, path := range file.Paths() {
		stamp(key, corpus.ClassesFile(path))
	}
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

func stamp(w io.Writer, path string) {
	fmt.Fprintln(w, path)
	if info, err := os.Stat(path); err == nil {
		fmt.Fprintln(w, info.Size(), info.ModTime().UnixNano())
	}
}

func sumTokenizer(tokenizer corpus.Tokenizer) (string, error) {
	folder, err := os.MkdirTemp("", "jenga-tokenizer-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(folder)
	if err := tokenizer.Save(folder); err != nil {
		return "", err
	}
	saved, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, file := range saved {
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

func (x index) write(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return files.Replace(path, func(w io.Writer) error {
		sum := crc32.New(files.CRC32C)
		if err := gob.NewEncoder(io.MultiWriter(w, sum)).Encode(x); err != nil {
			return err
		}
		_, err := w.Write(sum.Sum(nil))
		return err
	})
}

// indexed returns the stream of a group's training file by its index, nil if there is none of the same files, tasks and
// program. The survey of the group is set, and the tasks are surveyed.
func (r *reader) indexed(group *Group, file config.File, place indexPlace) *Stream {
	about, err := readIndex(place.path, place.key)
	if err != nil || !slices.EqualFunc(about.Files, file.Paths(),
		func(p corpus.Places, path string) bool { return p.Path == path }) {
		return nil // damaged, or of other data: a pass makes another
	}
	records, err := corpus.OpenStream(formatOf(r.e.Tasks[group.Tasks[0]], file), about.Files)
	if err != nil {
		return nil
	}
	if r.data.resumes() {
		err = records.Verify()
	}
	s := newStream(r.data, group, records)
	if err = errors.Join(err, r.adopt(s, about.Found)); err != nil {
		s.Close()
		return nil
	}
	s.indexed = true
	return s
}

var errOther = errors.New("an index of other data")

// readIndex reads an index that write has written. Its numbers may be any.
func readIndex(path, key string) (x index, err error) {
	const most = 8 << 30 // bytes
	data, err := files.ReadFile(path, most)
	if err != nil {
		return x, err
	}
	text := data[:max(0, len(data)-crc32.Size)]
	sum := crc32.New(files.CRC32C)
	sum.Write(text)
	if !bytes.Equal(data[len(text):], sum.Sum(nil)) {
		return x, errOther
	}
	if err := gob.NewDecoder(bytes.NewReader(text)).Decode(&x); err != nil || x.Key != key {
		return index{}, errOther
	}
	return x, nil
}

func (r *reader) adopt(s *Stream, f found) error {
	all, n := s.records.Len(), len(s.kinds)
	if f.Survey == nil || len(f.Survey.Heads) != n || len(f.Lengths) > all {
		return errOther
	}
	for _, numbers := range append(slices.Collect(maps.Values(f.Divided)), f.Given) {
		if slices.ContainsFunc(numbers, func(n uint32) bool { return int(n) >= all }) {
			return errOther
		}
	}
	s.found = f

	// samples of the tasks' surveys, and first records
	first, err := s.records.Record(0)
	if err != nil {
		return err
	}
	for _, number := range s.group.Tasks {
		format := trainingFormat(r.e.Tasks[number])
		s.group.first[number] = r.surveyed(number, &format, first)
		for _, n := range f.Sampled[number] {
			if n < 0 || n >= all {
				return errOther
			}
			record, err := s.records.Record(n)
			if err != nil {
				return err
			}
			s.sampled[number] = append(s.sampled[number], r.surveyed(number, &format, record))
		}
		tasks.SurveyRecords(r.types[number], s.sampled[number])
	}

	f.Survey.kinds = s.kinds
	s.group.surveys[config.Train] = f.Survey
	s.group.setDivided(f.Divided, s.records.Place)
	return nil
}
