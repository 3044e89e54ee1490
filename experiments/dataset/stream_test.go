package dataset

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

// TestStreamsHaveTheMistakesOfMemory compares the errors of the same data with and without stream.
func TestStreamsHaveTheMistakesOfMemory(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	many := ""
	for i := range 30 {
		many += fmt.Sprintf(`{"text": "so %d", "price": "a lot", "label": "good"}`+"\n", i)
	}
	for name, test := range map[string]struct{ task, data, want string }{
		"a line that is no record": {"type: classification, data: {train: a.jsonlSTREAM}",
			"{\"text\": \"so\", \"label\": \"a\"}\n{\"text\n[]\n", "a.jsonl:2: "},
		"no field": {"type: classification, data: {train: a.jsonl, text: txtSTREAM}", many, `did you mean "text"`},
		"the same mistake in all records": {"type: regression, data: {train: a.jsonl, value: priceSTREAM}", many,
			"all 30 records of a.jsonl have the same mistake"},
		"a mistake in some": {"type: classification, data: {train: a.jsonlSTREAM}",
			strings.Repeat(`{"text": "so", "label": [["b"]]}`+"\n", 9) + many,
			"a.jsonl: task \"mood\": and 4 more records like"},
		"labels without names": {"type: classification, label_maps: {mood: {0: no}}, data: {train: a.jsonlSTREAM}",
			strings.Repeat(`{"text": "so", "label": 0}`+"\n"+`{"text": "so", "label": 7}`+"\n", 9) +
				`{"text": "so", "label": 8}` + "\n",
			"reads it as no label\n" + `a.jsonl:19: task "mood": label 8 has no name in label_maps: {mood: …}, which ` +
				"has 0; name it there, or data: {missing: [8]} reads it as no label\n" +
				`a.jsonl: task "mood": and 8 more records like a.jsonl:19`},
		"a split that takes all": {"type: classification, data: {train: a.jsonl, split: {dev: 40}STREAM}", many,
			"leaves none to train on"},
		"no labels": {"type: classification, data: {train: a.jsonlSTREAM}",
			`{"text": "so"}` + "\n" + `{"text": "no"}` + "\n",
			`head "mood" has no label in its training data`},
		"an empty file": {"type: classification, data: {train: a.jsonlSTREAM}", "\n\n", "a.jsonl: no records"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a.jsonl": test.data}
			task := "  - {name: mood, " + test.task + "}\n"
			_, want := load(t, strings.ReplaceAll(task, "STREAM", ""), files)
			_, got := load(t, strings.ReplaceAll(task, "STREAM", ", stream: true"), files)
			if want == nil || got == nil || !strings.Contains(want.Error(), test.want) {
				t.Fatalf("errors %v and %v, want %s", want, got, test.want)
			}
			if got.Error() != want.Error() {
				t.Errorf("error\n%v\nwant\n%v", got, want)
			}
		})
	}
}

// TestTokensTakeBoundedMemory encodes examples on a machine with little memory. Each question has all tokens of its
// context, so that a small file may have more than any machine holds.
func TestTokensTakeBoundedMemory(t *testing.T) {
	defer kernel.SetThreads(kernel.Threads())
	kernel.SetThreads(2) // so that few examples of a stream are in memory at once
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	lines := ""
	for i := range 6_000 {
		lines += fmt.Sprintf(`{"text": "it was a very long day %d", "label": "l%d"}`+"\n", i, i%2)
	}
	questions := func(n int) string {
		one := `{"question": "who?", "answers": {"text": ["Zoe"], "answer_start": [0]}},`
		return `{"data": [{"paragraphs": [{"context": "Zoe` + strings.Repeat(" it was", 900) + `", "qas": [` +
			strings.TrimSuffix(strings.Repeat(one, n), ",") + `]}]}]}`
	}
	files := map[string]string{"a.jsonl": lines, "a.json": questions(30), "one.json": questions(1)}
	for name, test := range map[string]struct{ task, want string }{
		"texts": {"type: classification, data: {train: a.jsonl}",
			", or read them from their file in each step by data: {stream: true}"},
		"a stream":            {"type: classification, data: {train: a.jsonl, stream: true}", ""},
		"questions about one": {"type: question_answering, data: {train: a.json}", "data: {limit: N}"},
		"dev": {"type: question_answering, data: {train: one.json, dev: a.json}",
			"divide long texts, or the file"},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := load(t, "  - {name: mood, "+test.task+"}\n", files)
			if err != nil {
				t.Fatal(err)
			}
			defer data.Close()
			if stream := data.Groups[0].Stream; stream != nil {
				stream.found.Encoding = "" // so that it is encoded again
			}
			data.machine = memory.Machine{Files: fstest.MapFS{"proc/meminfo": {Data: []byte("MemAvailable: 900 kB")}}}
			err = data.encodeAll()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case test.want != "" && (err == nil || !strings.HasSuffix(err.Error(), test.want) ||
				!regexp.MustCompile(`^.*a\.jsonl?:\d+.*: up to about here the tokens of (train|dev) take 1\.0\d MiB, `+
					`more than the memory that is left`).MatchString(err.Error())):
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// TestDoubtsAboutFilesAreWarnings reads files of several splits that can be read, but are likely to be wrong, in
// memory, as a stream, and by the index of that.
func TestDoubtsAboutFilesAreWarnings(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	files := map[string]string{
		"a.tsv":   "text\tlabel\n\"so good\tgood\nso bad\tbad\nso fair\"\tgood\nso so\tbad\n",
		"a.conll": "# x O\nAda _ B-PER\n\n# y O\nEve _ B-PER\n",
	}
	for task, want := range map[string]string{
		"{name: mood, type: classification, data: {train: a.tsv, dev: a.tsv, quote: noneSTREAM}}": "",
		"{name: mood, type: classification, data: {train: a.tsv, dev: a.tsvSTREAM}}": "a.tsv:2: a quote that opens " +
			"here is closed in line 4: the 3 lines are read as one row; quote: none reads quotes as letters",
		"{name: mood, type: ner, data: {train: a.conll, dev: a.conll, comments: \"#\"STREAM}}": "",
		"{name: mood, type: ner, data: {train: a.conll, dev: a.conllSTREAM}}": "a.conll:1: 2 sentences begin with " +
			"the word \"#\", which is no other word",
	} {
		for _, stream := range []string{"", ", stream: true", ", stream: true"} {
			data, err := load(t, "  - "+strings.ReplaceAll(task, "STREAM", stream)+"\n", files)
			if err != nil {
				t.Fatal(err)
			}
			data.Close()
			text := strings.Join(plugin.Lines(data.Warnings), "\n")
			if n := strings.Count(text, "task \"mood\": "+want); want != "" && n != 2 || // of train and of dev
				want == "" && (strings.Contains(text, "quote") || strings.Contains(text, "sentences")) {
				t.Errorf("%s%s: warnings\n%s\nwant two of %s", task, stream, text, want)
			}
		}
	}
}

func TestHeadsThatAreFittedRefuseStreams(t *testing.T) {
	_, err := load(t, "  - {name: odd, type: anomaly, data: {train: a.jsonl, stream: true}, heads: [{name: odd, type: "+
		"attention_pattern}]}\n", map[string]string{"a.jsonl": `{"text": "so", "label": "normal"}` + "\n"})
	const want = `exp.yaml:5:63: task "odd": data: stream: head "odd" of type attention_pattern is fitted to many ` +
		`training texts at once; leave stream out`
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestTheEndOfTheContextEndsAPass(t *testing.T) {
	sample.Tasks(t, "  - {name: mood, type: classification, data: {train: a.jsonl, stream: true}}\n",
		map[string]string{"a.jsonl": strings.Repeat(`{"text": "so", "label": "a"}`+"\n", 5000)})
	e, err := config.Read(t.Context(), "exp.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	for _, at := range []string{"first pass", "examples", "labels", "words", "encoding"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		_, err = Load(ctx, e, Options{Pass: func(name string) func(done, of int) {
			return func(int, int) {
				if strings.HasPrefix(name, at) {
					cancel(stop)
				}
			}
		}}, config.Train, config.Dev)
		if !errors.Is(err, context.Canceled) || context.Cause(ctx) != stop {
			t.Errorf("%s: error %v, want that of the context", at, err)
		}
	}
}

func ignored(int, int) {}

func TestInOrderKeepsTheOrder(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 1000} {
		var got []int
		err := inOrder(t.Context(), ignored, n, func(i int) (int, error) { return 2 * i, nil }, func(i, v int) error {
			if v != 2*i {
				t.Errorf("element %d is %d", i, v)
			}
			got = append(got, i)
			return nil
		})
		if err != nil || len(got) != n || !slices.IsSorted(got) {
			t.Errorf("%d of %d elements, error %v", len(got), n, err)
		}
	}
	failed := errors.New("failed")
	visited := 0
	err := inOrder(t.Context(), ignored, 1000, func(i int) (int, error) {
		if i == 300 {
			return 0, failed
		}
		return i, nil
	}, func(int, int) error {
		visited++
		return nil
	})
	if err != failed || visited != 300 {
		t.Errorf("error %v after %d elements, want 300", err, visited)
	}
}

// An element may take seconds: what ends the context ends the work before the next one.
func TestInOrderEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	err := inOrder(ctx, ignored, 1000, func(i int) (int, error) {
		calls.Add(1)
		cancel()
		return i, nil
	}, func(int, int) error { return nil })
	if n := int(calls.Load()); err != context.Canceled || n >= chunkSize {
		t.Errorf("error %v after %d calls, want it after a few", err, n)
	}
}

// written writes an index of three records to a file.
func written(t testing.TB) (x index, path string) {
	t.Helper()
	x = index{
		Key: "key",
		Files: []corpus.Places{{Path: "a.jsonl", Size: 30, Line: 1, Ends: []int64{10, 20}},
			{Path: "b.jsonl", Size: 40, Line: 2, Ends: []int64{40}, Lines: []uint32{2}}},
		Found: found{Sum: "sum", Given: []uint32{1}, Lengths: []int32{3, 4},
			Divided: map[string][]uint32{config.Train: {0, 2}, Unused: {1}}},
	}
	path = filepath.Join(t.TempDir(), "a.index")
	if err := x.write(path); err != nil {
		t.Fatal(err)
	}
	return x, path
}

func TestAnIndexIsReadAsItWasWritten(t *testing.T) {
	want, path := written(t)
	got, err := readIndex(path, "key")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("readIndex = %+v, %v, want %+v", got, err, want)
	}
	if _, err := readIndex(path, "other"); err == nil {
		t.Error("no error for another key")
	}
}

// FuzzIndex reads any bytes as an index.
func FuzzIndex(f *testing.F) {
	_, path := written(f)
	index, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(index)
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, index []byte) {
		path := filepath.Join(t.TempDir(), "a.index")
		sample.Write(t, path, string(index))
		readIndex(path, "key")
	})
}
