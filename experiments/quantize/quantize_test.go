package quantize

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// based trains tasks from a base model into a new folder, with the data in others.jsonl too.
func based(t *testing.T, tasks string, sets ...string) string {
	t.Helper()
	b := trained.NewBase(t)
	if err := os.Link(filepath.Join(b.Dir, "mails.jsonl"), filepath.Join(b.Dir, "others.jsonl")); err != nil {
		t.Fatal(err)
	}
	return b.Run(t, "run", tasks, append(sets, "training.max_steps=12")...)
}

// quantized opens a run and writes it quantized into a new folder.
func quantized(t *testing.T, folder string, keep ...string) (s *Source, out string) {
	t.Helper()
	s, err := Open(t.Context(), folder, keep)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	out = filepath.Join(t.TempDir(), "int8")
	if err := s.Write(t.Context(), out, false, nil); err != nil {
		t.Fatal(err)
	}
	return s, out
}

// predictions returns the answers of a run for texts, in a precision.
func predictions(t *testing.T, folder string, precision nn.Precision) (answers []map[string]map[string]any) {
	t.Helper()
	opened, err := predict.OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if precision != nn.Float32 {
		opened.Model.Precision = precision // SetPrecision rejects it where it is slow
	}
	asked, err := predict.New(opened, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer asked.Close()
	m, err := predict.Open(t.Context(), folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if want := opened.Model.Encoder.Describe().Precision; m.Precision() != want {
		t.Errorf("the precision is %v, want %v", m.Precision(), want)
	}
	examples := []*corpus.Example{{Text: "please refund the bill"}, {Text: "a [MASK] hangs"}}
	all, err := asked.PredictExamples(t.Context(), predict.Form{}, examples...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		answers = append(answers, p.Tasks)
	}
	return answers
}

func TestAnAdapterOfAllTasksIsInTheWeights(t *testing.T) {
	folder := based(t, trained.Teams, "model.lora={r: 2, per_task: true}")
	s, out := quantized(t, folder, Embeddings)
	if !slices.Equal(s.Kept(), []string{Embeddings}) {
		t.Errorf("kept %q", s.Kept())
	}
	got, want := predictions(t, out, nn.Int8), predictions(t, folder, nn.Int8)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("predictions %+v, want %+v", got, want)
	}
	if err := os.RemoveAll(filepath.Dir(folder)); err != nil {
		t.Fatal(err)
	}
	if again := predictions(t, out, nn.Int8); !reflect.DeepEqual(again, got) {
		t.Errorf("without the run predictions are %+v", again)
	}
}

func TestSeveralAdaptersAreAnError(t *testing.T) {
	folder := based(t, trained.Teams+"  - {name: other, type: classification, data: {path: others.jsonl, label: team, "+
		"split: {dev: 0.2}}}\n", "model.lora={r: 2, per_task: true}")
	const want = "its tasks have changes of the encoder of their own (lora: {per_task: true}), which one encoder"
	if _, err := Open(t.Context(), folder, nil); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Open: %v, want %s", err, want)
	}
}

func TestEmbeddingsThatAHeadMultipliesByStayFloat32(t *testing.T) {
	folder := based(t, trained.Teams+"  - {name: hidden, type: mlm, data: {path: others.jsonl, split: {dev: 0.2}}}\n")
	s, out := quantized(t, folder)
	if !slices.Equal(s.Kept(), []string{Embeddings}) ||
		!strings.Contains(strings.Join(plugin.Lines(s.Warnings), "\n"),
			`the embeddings are left in float32: task "hidden"`) {
		t.Errorf("kept %q, warnings %q", s.Kept(), s.Warnings)
	}
	if got, want := predictions(t, out, nn.Int8), predictions(t, folder, nn.Int8); !reflect.DeepEqual(got, want) {
		t.Errorf("predictions %+v, want %+v", got, want)
	}
}

func TestAQuantizedRunOfACheckpointNamesIt(t *testing.T) {
	folder := trained.Run(t, sample.Small(t, ""), filepath.Join(t.TempDir(), "run"), "model.fusion=none",
		"training.max_steps=12")
	s, out := quantized(t, filepath.Join(folder, runfolder.LastDir))
	about, err := checkpoint.Read(t.Context(), filepath.Join(out, runfolder.BestDir), out)
	if err != nil {
		t.Fatal(err)
	}
	from, err := runfolder.Relative(out, filepath.Join(folder, runfolder.LastDir))
	if err != nil || about.Quantized == nil || about.Quantized.Run != from || len(about.Quantized.Keep) > 0 {
		t.Errorf("%+v, want the run %s (%v)", about.Quantized, from, err)
	}
	if _, err := Open(t.Context(), out, nil); err == nil || !strings.Contains(err.Error(), "it is quantized to int8") {
		t.Errorf("Open of a quantized run: %v", err)
	}

	// as a Go program opens it
	for _, precision := range []nn.Precision{nn.Float32, nn.BFloat16} {
		_, err = predict.Open(t.Context(), out, predict.Options{Precision: &precision})
		var one *predict.PrecisionError
		want := predict.PrecisionError{Own: nn.Int8, Run: filepath.Join(folder, runfolder.LastDir)}
		if !errors.As(err, &one) || *one != want ||
			!strings.Contains(err.Error(), "the weights are quantized to int8") {
			t.Errorf("in %v: %v", precision, err)
		}
	}

	// what cannot be written
	users := sample.Folder(t, map[string]string{"best.new/a": "", "encoder/a": ""})
	for what, err := range map[string]error{"Check": s.Check(users, true),
		"Write": s.Write(t.Context(), users, true, nil)} {
		if err == nil || !strings.Contains(err.Error(), users+" holds files, but no run") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if now := sample.Files(t, users); len(now) != 2 {
		t.Errorf("the folder of a user's 2 files has %d", len(now))
	}
	failed := errors.New("failed")
	other := filepath.Join(t.TempDir(), "new", "int8")
	if err := s.Write(t.Context(), other, false, func() error { return failed }); !errors.Is(err, failed) {
		t.Errorf("Write: %v", err)
	}
	if runfolder.Exists(other) {
		t.Error("a run that is of no use is left")
	}
	if err := s.Check(filepath.Join(folder, "int8"), false); err == nil {
		t.Error("a folder of the run itself is accepted")
	}
}

// What a kill leaves of a quantization over a run: that is in ReplacedDir, and there are files of the new one, but no
// experiment.
func TestAKilledQuantizationKeepsTheEarlierRun(t *testing.T) {
	folder := trained.Run(t, sample.Small(t, ""), filepath.Join(t.TempDir(), "run"), "training.max_steps=12")
	s, fresh := quantized(t, folder)
	failed := errors.New("the disk is full")
	for what, goOn := range map[string]func(out string) error{
		"resuming": func(out string) error {
			_, err := resume.Find(t.Context(), out)
			return err
		},
		"repeating it": func(out string) error {
			if err := s.Write(t.Context(), out, true, func() error { return failed }); !errors.Is(err, failed) {
				return fmt.Errorf("Write = %w, want %w", err, failed)
			}
			return nil
		},
	} {
		out := filepath.Join(t.TempDir(), "out")
		for from, to := range map[string]string{
			folder:                                  filepath.Join(out, runfolder.ReplacedDir),
			filepath.Join(fresh, runfolder.BestDir): filepath.Join(out, runfolder.BestDir),
		} {
			if err := os.CopyFS(to, os.DirFS(from)); err != nil {
				t.Fatal(err)
			}
		}
		sample.Write(t, filepath.Join(out, runfolder.LockFile), "process 1 on this-host\n")
		if err := goOn(out); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		if got, want := sample.Files(t, out), sample.Files(t, folder); !maps.Equal(got, want) {
			t.Errorf("%s: the folder holds %d files, want the %d of the earlier run", what, len(got), len(want))
		}
	}
}

func TestWithoutFiguresAQuantizedRunIsOpenedAlone(t *testing.T) {
	file := sample.Small(t, "")
	_, out := quantized(t, trained.Run(t, file, filepath.Join(t.TempDir(), "run"), "training.max_steps=12"))
	evaluated := func(int, int) { t.Error("dev is evaluated") }
	if err := After(t.Context(), nil, out, evaluated); err != nil {
		t.Error(err)
	}
	if err := After(t.Context(), nil, t.TempDir(), evaluated); err == nil {
		t.Error("a folder without a run is opened")
	}
}

func TestWhatAFigureLoses(t *testing.T) {
	for _, c := range []struct {
		before, after float64
		much          bool
	}{
		{0.9, 0.8951, false}, {0.9, 0.895, false}, {0.9, 0.8949, true}, {0.9, 0.99, false},
	} {
		f := report.Change{Before: &c.before, After: &c.after}
		if LosesMuch(f) != c.much {
			t.Errorf("%v → %v: it loses much: %v", c.before, c.after, LosesMuch(f))
		}
	}
	if LosesMuch(report.Change{After: new(0.0)}) {
		t.Error("an unknown figure loses")
	}
}

func TestFurtherLayersAreNotThoseThatAreKept(t *testing.T) {
	for _, c := range []struct{ keep, want []string }{
		{nil, []string{"embeddings", "0"}}, {[]string{"embeddings"}, []string{"embeddings", "0"}},
		{[]string{"0"}, []string{"embeddings", "0"}}, {[]string{"1"}, []string{"embeddings", "0", "1"}},
		{[]string{"embeddings", "0"}, []string{"embeddings", "0", "1"}}, {[]string{"0", "embeddings", "1"}, nil},
	} {
		keep, err := levels(c.keep, 3)
		s := Source{keep: keep, encoder: encoders.Description{Levels: make([][]*nn.Param, 3)}}
		if got := s.Further(); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("besides %q: %q, %v, want %q", c.keep, got, err, c.want)
		}
	}
}
