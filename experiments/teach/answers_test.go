package teach

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/bytereader"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// answersOf returns answers of rows that sum to 1, but for rows of zeros.
func answersOf(rows, columns int) heads.Answer {
	rng := rand.New(rand.NewPCG(1, uint64(rows)))
	a := heads.Answer{Values: make([]float32, rows*columns)}
	for row := range slices.Chunk(a.Values, columns) {
		if rng.IntN(4) == 0 {
			continue
		}
		sum := float32(0)
		for i := range row {
			row[i] = float32(math.Exp(4 * rng.NormFloat64()))
			sum += row[i]
		}
		for i := range row {
			row[i] /= sum
		}
	}
	return a
}

func TestAnswersAreReadAsTheyWereWritten(t *testing.T) {
	for _, c := range []struct{ rows, columns int }{{1, 2}, {7, 13}, {1, 1000}, {0, 3}} {
		a := answersOf(c.rows, c.columns)
		a.Places = []corpus.Span{{}, {Start: 3, End: 300}}
		for _, asBytes := range []bool{false, true} {
			r := bytereader.Reader{Rest: appendAnswer(nil, a, c.columns, asBytes)}
			got, err := readAnswer(&r, r.Count())
			if err != nil {
				t.Fatalf("%+v, %v: %v", c, asBytes, err)
			}
			if !slices.Equal(got.Places, a.Places) || len(got.Values) != len(a.Values) {
				t.Fatalf("%+v, %v: %d values and %v", c, asBytes, len(got.Values), got.Places)
			}
			for at := 0; at < len(a.Values); at += c.columns {
				was, now := a.Values[at:at+c.columns], got.Values[at:at+c.columns]
				step := float32(0)
				if asBytes {
					step = slices.Max(was) / 255
				}
				sum := float32(0)
				for i := range was {
					sum += now[i]
					// half a step, and what keeps the sum of the row moves each value by its fraction of that
					bound := step/2 + was[i]*step*float32(c.columns)/2
					if d := now[i] - was[i]; d > bound || d < -bound {
						t.Errorf("%+v, %v: value %d is %v, was %v", c, asBytes, at+i, now[i], was[i])
					}
				}
				if want := sumOf(was); math.Abs(float64(sum-want)) > 1e-5 {
					t.Errorf("%+v, %v: a row sums to %v, was %v", c, asBytes, sum, want)
				}
			}
		}
	}
}

func sumOf(row []float32) (sum float32) {
	for _, v := range row {
		sum += v
	}
	return sum
}

func TestOrderOfLabels(t *testing.T) {
	student := multitask.Head{Name: "team", Labels: corpus.NewLabels([]string{"b", "c", "a"})}
	if order, err := orderOf(student, []string{"a", "b", "c"}); err != nil || !slices.Equal(order, []int{1, 2, 0}) {
		t.Errorf("order %v, %v", order, err)
	}
	for _, other := range [][]string{{"a", "b"}, {"a", "b", "c", "d"}, {"a", "b", "x"}} {
		if _, err := orderOf(student, other); err == nil {
			t.Errorf("labels %v are taken for a, b, c", other)
		}
	}
}

type taskOf struct {
	tasks.Task
	kind *outputs.Kind
}

func (t taskOf) Output() *outputs.Kind { return t.kind }

// answersOfHead are those of one head for one example, whose record has said of it.
func answersOfHead(t *testing.T, kind *outputs.Kind, headType string, said []byte) *taskAnswers {
	t.Helper()
	labels := []string{"a", "b", "c"}
	choice, err := heads.Registry().FromString(headType, "")
	if err != nil {
		t.Fatal(err)
	}
	built, err := choice.Build(heads.Env{Task: "task", Name: "head", Output: kind, Labels: labels, Width: 4,
		Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	record := append(binary.AppendUvarint(nil, uint64(len(said))), said...)
	path := filepath.Join(t.TempDir(), "answers")
	text := append(binary.AppendUvarint([]byte{0}, uint64(len(record))), record...)
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	file, err := files.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	head := multitask.Head{Name: "head", Head: built, Labels: corpus.NewLabels(labels)}
	data := &dataset.Dataset{Tasks: []tasks.Task{taskOf{kind: kind}}}
	return &taskAnswers{teacher: &teacher{heads: []multitask.Head{head}}, file: file, offsets: []int64{1},
		teachers: &Teachers{built: &model.Assembled{Data: data}}}
}

// What the loss of a head could not take is an error of the file.
func TestAnswersThatDoNotFitTheHead(t *testing.T) {
	window := corpus.Encoding{IDs: make([]int32, 4), Segments: []int8{0, 1, 1, 1}, Words: []int32{-1, 0, 1, -1},
		Offsets: []corpus.Span{{}, {Start: 0, End: 3}, {Start: 4, End: 7}, {}}}
	e := &corpus.Example{Text: "one two", Words: []corpus.Span{{Start: 0, End: 3}, {Start: 4, End: 7}}, Pair: "one two",
		Paired: true, Windows: []corpus.Encoding{window}}
	none, word := corpus.Span{}, corpus.Span{Start: 4, End: 7}
	for name, c := range map[string]struct {
		kind   *outputs.Kind
		head   string
		answer heads.Answer
		fits   bool
	}{
		"labels": {outputs.Label, "linear", heads.Answer{Values: make([]float32, 3)}, true},
		"places of labels": {outputs.Label, "linear", heads.Answer{Values: make([]float32, 4),
			Places: []corpus.Span{none, word}}, false},
		"tags": {outputs.Tags, "crf", heads.Answer{Values: make([]float32, 6)}, true},
		"places of tags": {outputs.Tags, "crf", heads.Answer{Values: make([]float32, 2),
			Places: []corpus.Span{none}}, false},
		"a number": {outputs.Similarity, "similarity", heads.Answer{Values: make([]float32, 1)}, true},
		"places of a number": {outputs.Similarity, "similarity", heads.Answer{Values: make([]float32, 2),
			Places: []corpus.Span{none}}, false},
		"places": {outputs.Span, "span", heads.Answer{Values: make([]float32, 4),
			Places: []corpus.Span{none, word}}, true},
		"no places": {outputs.Span, "span", heads.Answer{Values: make([]float32, 1)}, false},
		"a place after the context": {outputs.Span, "span", heads.Answer{Values: make([]float32, 4),
			Places: []corpus.Span{none, {Start: 4, End: 8}}}, false},
		"a place before the context": {outputs.Span, "span", heads.Answer{Values: make([]float32, 4),
			Places: []corpus.Span{none, {Start: -1, End: 3}}}, false},
		"a place that ends before it begins": {outputs.Span, "span", heads.Answer{Values: make([]float32, 4),
			Places: []corpus.Span{none, {Start: 3, End: 2}}}, false},
	} {
		a := answersOfHead(t, c.kind, c.head, appendAnswer(nil, c.answer, 1, false))
		if err := a.read(0, 0, e, new(heads.Taught)); (err == nil) != c.fits {
			t.Errorf("%s: error %v", name, err)
		}
	}
	for _, tags := range [][]string{{}, {"a"}, {"a", "b"}, {"a", "b", "c"}} {
		target := &outputs.TagsTarget{Tags: tags}
		predicted := append([]byte{predictedForm}, outputs.Tags.MarshalTarget(target)...)
		a := answersOfHead(t, outputs.Tags, "crf", predicted)
		if err := a.read(0, 0, e, new(heads.Taught)); (err == nil) != (len(tags) == len(e.Words)) {
			t.Errorf("the tags %v of two words: error %v", tags, err)
		}
	}
}

// A file of answers may be someone else's: what is in it is an error, and nothing else happens.
func FuzzAnswers(f *testing.F) {
	record := appendAnswer(nil, answersOf(2, 3), 3, true)
	f.Add(append(binary.AppendUvarint([]byte("{}\n\x1a"), uint64(len(record))), record...), 1)
	f.Add([]byte("{}\n\x02\x01\x02"), 1)
	f.Add([]byte("{}\n"), 0)
	f.Fuzz(func(t *testing.T, data []byte, count int) {
		path := filepath.Join(t.TempDir(), "answers")
		sum := crc32.Checksum(data, files.CRC32C)
		if err := os.WriteFile(path, binary.LittleEndian.AppendUint32(slices.Clone(data), sum), 0o644); err != nil {
			t.Fatal(err)
		}
		file, err := files.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		length := min(max(count, 0), 1000)
		a := &taskAnswers{teachers: &Teachers{built: &model.Assembled{}, Taught: &multitask.Taught{}}, file: file,
			teacher: &teacher{length: length}, offsets: make([]int64, length)}
		if a.index(nil) != nil {
			return
		}
		for _, at := range a.offsets {
			record, err := a.record(max(1, at))
			if err != nil {
				continue
			}
			r := bytereader.Reader{Rest: record}
			one := bytereader.Reader{Rest: r.Take(r.Count())}
			if answer, err := readAnswer(&one, one.Count()); err == nil {
				for _, v := range answer.Values {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Errorf("a value is %v", v)
					}
				}
			}
		}
	})
}
