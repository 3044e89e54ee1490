package dataset

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// indexPlace is where the index of a Stream is, and what it depends on besides the training file's content.
type indexPlace struct {
	path string // "": there is no cache for it
	key  string
}

// index is a safetensors file: many numbers are its tensors, all else is its metadata, as JSON, with a CRC-32C of both.
type index struct {
	Key   string          `json:"key"`
	Files []corpus.Places `json:"files"` // without Ends and Lines
	Found found           `json:"found"`
}

// found is what the passes over a training file find, which an index keeps.
type found struct {
	Sampled       map[int][]int    `json:"sampled"` // by task: numbers of the records of its survey
	Warnings      []plugin.Warning `json:"warnings"`
	SplitWarnings []splitWarning   `json:"split_warnings"`
	Doubts        []plugin.Warning `json:"doubts"` // warnings of doubtful data
	Survey        *survey          `json:"survey"`
	Encoded       *encodedSurvey   `json:"encoded"`
	Encoding      string           `json:"encoding"` // what Encoded and Sum depend on besides; "": they are not known
	Sum           string           `json:"sum"`
	Given         []uint32         `json:"given"` // numbers of the first training records with words

	lengths []int32
	divided map[string][]uint32 // numbers of the records of each split; nil: all are in train
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
	if os.MkdirAll(filepath.Dir(s.index.path), 0o755) == nil {
		index{s.index.key, s.records.Places(), s.found}.write(s.index.path)
	}
}

// Keys of the metadata.
const (
	indexKey = "jenga stream index 2" // the number is the version
	sumKey   = "crc32c"
)

func (x index) write(path string) error {
	var tensors []safetensors.Tensor
	places := x.Files
	x.Files = slices.Clone(places)
	for i, p := range places {
		tensors = appendNumbers(tensors, fmt.Sprint("ends/", i), p.Ends)
		tensors = appendNumbers(tensors, fmt.Sprint("lines/", i), p.Lines)
		x.Files[i].Ends, x.Files[i].Lines = nil, nil
	}
	tensors = appendNumbers(tensors, "lengths", x.Found.lengths)
	for split, numbers := range x.Found.divided {
		tensors = appendNumbers(tensors, "divided/"+split, numbers)
	}
	text, err := json.Marshal(x)
	if err != nil {
		return err
	}
	metadata := map[string]string{indexKey: string(text)}
	metadata[sumKey] = fmt.Sprintf("%08x", safetensors.Sum(tensors, metadata))
	return safetensors.Write(path, tensors, metadata)
}

// appendNumbers appends a tensor of numbers' bytes, little-endian, if there are some.
func appendNumbers[N int32 | uint32 | int64](all []safetensors.Tensor, name string, numbers []N) []safetensors.Tensor {
	raw, err := binary.Append(nil, binary.LittleEndian, numbers)
	if err != nil {
		panic("dataset: " + err.Error()) // such numbers have a size
	}
	if len(raw) == 0 {
		return all
	}
	return append(all, safetensors.Tensor{Name: name, Shape: []int{len(raw)}, DType: "U8", Raw: raw})
}

// numbersOf returns the numbers of a tensor's bytes, nil for none.
func numbersOf[N int32 | uint32 | int64](raw []byte) []N {
	if len(raw) == 0 {
		return nil
	}
	numbers := make([]N, len(raw)/binary.Size(N(0)))
	binary.Decode(raw, binary.LittleEndian, numbers)
	return numbers
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

// errOther is the error of an index of other data.
var errOther = errors.New("an index of other data")

// readIndex reads an index that write has written. Its numbers may be any.
func readIndex(path, key string) (x index, err error) {
	file, err := safetensors.Open(path)
	if err != nil {
		return x, err
	}
	defer file.Close()
	metadata := file.Metadata()
	if err := json.Unmarshal([]byte(metadata[indexKey]), &x); err != nil || x.Key != key {
		return x, errOther
	}
	var tensors []safetensors.Tensor
	raw := map[string][]byte{}
	for _, info := range file.Tensors() {
		if raw[info.Name], err = file.Raw(info.Name); err != nil {
			return x, err
		}
		tensors = append(tensors, safetensors.Tensor{Name: info.Name, Shape: info.Shape, DType: info.DType,
			Raw: raw[info.Name]})
	}
	sum := metadata[sumKey]
	delete(metadata, sumKey)
	if fmt.Sprintf("%08x", safetensors.Sum(tensors, metadata)) != sum {
		return x, errOther
	}

	for i := range x.Files {
		p := &x.Files[i]
		p.Ends = numbersOf[int64](raw[fmt.Sprint("ends/", i)])
		p.Lines = numbersOf[uint32](raw[fmt.Sprint("lines/", i)])
	}
	x.Found.lengths = numbersOf[int32](raw["lengths"])
	for _, split := range append(splits, Unused) {
		if numbers := numbersOf[uint32](raw["divided/"+split]); numbers != nil {
			if x.Found.divided == nil {
				x.Found.divided = map[string][]uint32{}
			}
			x.Found.divided[split] = numbers
		}
	}
	return x, nil
}

func (r *reader) adopt(s *Stream, f found) error {
	all, n := s.records.Len(), len(s.kinds)
	if f.Survey == nil || len(f.Survey.Heads) != n || f.Encoded == nil || len(f.Encoded.TruncatedTargets) != n ||
		len(f.Encoded.Statistics) != n || len(f.lengths) > all {
		return errOther
	}
	for _, numbers := range append(slices.Collect(maps.Values(f.divided)), f.Given) {
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
		format := r.e.Tasks[number].Data.Format
		s.group.first[number] = format.RenameRecord(first)
		for _, n := range f.Sampled[number] {
			if n < 0 || n >= all {
				return errOther
			}
			record, err := s.records.Record(n)
			if err != nil {
				return err
			}
			s.sampled[number] = append(s.sampled[number], format.RenameRecord(record))
		}
		tasks.SurveyRecords(r.types[number], s.sampled[number])
	}

	f.Survey.kinds = s.kinds
	s.group.surveys[config.Train] = f.Survey
	s.group.encoded[config.Train] = f.Encoded
	s.group.setDivided(f.divided, s.records.Place)
	return nil
}
