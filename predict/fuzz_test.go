package predict

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	trainedrun "github.com/jenga-nlp/jenga/internal/trained"
)

// FuzzRunFolder opens a run of which one file was changed by someone who made its checksums again, and predicts: an
// error or an answer, in bounded time and memory.
func FuzzRunFolder(f *testing.F) {
	run := trainedrun.Kinds(f)
	names, err := runfolder.Files(run)
	if err != nil {
		f.Fatal(err)
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		return strings.HasPrefix(name, runfolder.LastDir+"/") || filepath.Base(name) == runfolder.ChecksumsFile
	})
	files := make([][]byte, len(names))
	for i, name := range names {
		if files[i], err = os.ReadFile(filepath.Join(run, name)); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), files[i])
	}
	f.Fuzz(func(t *testing.T, changed byte, content []byte) {
		folder := t.TempDir()
		for i, name := range names {
			path, text := filepath.Join(folder, filepath.FromSlash(name)), files[i]
			if i == int(changed)%len(names) {
				text = content
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, text, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		if err := runfolder.WriteChecksums(t.Context(), filepath.Join(folder, runfolder.BestDir)); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		opened(t, folder)
		runtime.ReadMemStats(&after)
		took, memory := time.Since(start), after.TotalAlloc-before.TotalAlloc
		if took > 20*time.Second || memory > 512<<20 {
			t.Errorf("%s: %v and %d MB", names[int(changed)%len(names)], took, memory>>20)
		}
	})
}

// opened opens a run, if it can be opened, and answers texts of all forms by it.
func opened(t *testing.T, folder string) {
	t.Helper()
	m, err := Open(t.Context(), folder, Options{MaxTextTokens: 1000})
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m.PredictExamples(ctx, Form{Top: 3}, &corpus.Example{Text: "so good, a bad day"},
		&corpus.Example{Text: "so good", Words: []corpus.Span{{Start: 0, End: 2}, {Start: 3, End: 7}}},
		&corpus.Example{Text: "so good", Pair: "a bad day", Paired: true})
	m.Close()
}
