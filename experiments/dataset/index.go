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

// indexMagic begins an index; the number is that of its format. A header in JSON follows, with its length before it,
// the numbers of places and of found, and a checksum.
const indexMagic = "jenga stream index 2\n"

// maxIndexHeader is the largest size of an index without its numbers, in bytes.
const maxIndexHeader = 64 << 20

// indexHeader is what an index has beside numbers.
type indexHeader struct {
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
	folder := filepath.Dir(s.index.path)
	if os.MkdirAll(folder, 0o755) != nil {
		return
	}
	file, err := os.CreateTemp(folder, "new-")
	if err != nil {
		return
	}
	err = indexHeader{s.index.key, s.records.Places(), s.found}.write(file)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), s.index.path)
	}
	if err != nil {
		os.Remove(file.Name())
	}
}

func (h indexHeader) write(to io.Writer) error {
	places := h.Files
	h.Files = slices.Clone(places)
	for i := range h.Files {
		h.Files[i].Ends, h.Files[i].Lines = nil, nil
	}
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	sum := crc32.New(files.CRC32C)
	buffered := bufio.NewWriter(to)
	out := io.MultiWriter(buffered, sum)
	io.WriteString(out, indexMagic)
	err = writeNumbers(out, header)
	for _, p := range places {
		err = errors.Join(err, writeNumbers(out, p.Ends), writeNumbers(out, p.Lines))
	}
	err = errors.Join(err, writeNumbers(out, h.Found.lengths))
	for _, split := range indexSplits {
		err = errors.Join(err, writeNumbers(out, h.Found.divided[split]))
	}
	return errors.Join(err, binary.Write(buffered, binary.LittleEndian, sum.Sum32()), buffered.Flush())
}

// numbersAtOnce is how many numbers of an index are converted at once.
const numbersAtOnce = 1 << 13

// writeNumbers writes numbers, little-endian, after their count.
func writeNumbers[N byte | int32 | uint32 | int64](w io.Writer, numbers []N) error {
	err := binary.Write(w, binary.LittleEndian, uint64(len(numbers)))
	for some := range slices.Chunk(numbers, numbersAtOnce) {
		err = errors.Join(err, binary.Write(w, binary.LittleEndian, some))
	}
	return err
}

// readNumbers returns numbers that writeNumbers has written, at most as many as given; nil for none.
func readNumbers[N byte | int32 | uint32 | int64](r io.Reader, most int) (numbers []N, err error) {
	var n uint64
	if err := binary.Read(r, binary.LittleEndian, &n); err != nil || n == 0 {
		return nil, err
	}
	if n > uint64(most) {
		return nil, fmt.Errorf("%d numbers, want at most %d: %w", n, most, errOther)
	}
	numbers = make([]N, n)
	for some := range slices.Chunk(numbers, numbersAtOnce) {
		if err := binary.Read(r, binary.LittleEndian, some); err != nil {
			return nil, err
		}
	}
	return numbers, nil
}

// indexed returns the stream of a group's training file by its index, nil if there is none of the same files, tasks and
// program. The survey of the group is set, and the tasks are surveyed.
func (r *reader) indexed(group *Group, file config.File, place indexPlace) *Stream {
	in, err := os.Open(place.path)
	if err != nil {
		return nil
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return nil
	}
	about, err := readIndex(in, info.Size(), place.key)
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

// readIndex reads an index of some bytes that write has written. Its numbers may be any.
func readIndex(in io.Reader, size int64, key string) (about indexHeader, err error) {
	sum := crc32.New(files.CRC32C)
	buffered := bufio.NewReaderSize(in, 1<<16)
	from, most := io.TeeReader(buffered, sum), int(size/4)

	// header
	magic := make([]byte, len(indexMagic))
	if _, err := io.ReadFull(from, magic); err != nil || string(magic) != indexMagic {
		return about, errOther
	}
	header, err := readNumbers[byte](from, min(maxIndexHeader, int(size)))
	if err != nil {
		return about, err
	}
	if err := json.Unmarshal(header, &about); err != nil || about.Key != key {
		return about, errOther
	}

	// numbers
	for i := range about.Files {
		p := &about.Files[i]
		if p.Ends, err = readNumbers[int64](from, most); err != nil {
			return about, err
		}
		if p.Lines, err = readNumbers[uint32](from, most); err != nil {
			return about, err
		}
	}
	if about.Found.lengths, err = readNumbers[int32](from, most); err != nil {
		return about, err
	}
	divided := map[string][]uint32{}
	for _, split := range indexSplits {
		numbers, err := readNumbers[uint32](from, most)
		if err != nil {
			return about, err
		}
		if numbers != nil {
			divided[split], about.Found.divided = numbers, divided
		}
	}
	have, want := sum.Sum32(), uint32(0)
	if err := binary.Read(buffered, binary.LittleEndian, &want); err != nil || want != have {
		return about, errOther
	}
	return about, nil
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
