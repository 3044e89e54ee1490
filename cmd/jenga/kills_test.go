package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
)

// killedExperiment trains three groups of tasks, with all that has a state of its own: dropout, a sampler and a
// weighting that draw and learn, accumulation, running means, early stopping, streamed data.
const killedExperiment = `
model:
  encoder: {type: transformer, layers: 2, width: 32, heads: 2, feed_forward: 64, max_positions: 64}
  dropout: 0.1
  fusion: {type: attention, scale: residual}
tokenizer: {max_length: 64, train: {vocab_size: 200}}
tasks:
  - {name: team, type: classification, data: {path: team.jsonl, stream: true, split: {dev: 0.2}}}
  - {name: things, type: ner, data: {path: things.jsonl, stream: true, split: {dev: 0.2}}}
  - {name: price, type: regression, data: {path: price.jsonl, split: {dev: 0.2}}}
training:
  learning_rate: 3.0e-3
  batch_size: 8
  num_epochs: 4
  warmup_ratio: 0.1
  weighting: uncertainty
  sampling: {type: temperature}
  gradient_accumulation_steps: 2
  ema: 0.95
  eval_strategy: steps
  eval_steps: 7
  early_stopping_patience: 2
  save_strategy: steps
  save_steps: 6
  save_total_limit: 2
  logging_steps: 1
`

// killedData writes the examples of killedExperiment.
func killedData(t *testing.T, folder string) {
	t.Helper()
	things := []string{"invoice", "card", "payment", "bill", "fee", "program", "window", "button", "update", "menu"}
	ends := []string{"was charged twice", "is too high", "came late", "crashes at start", "hangs", "shows an error"}
	var team, tags, price strings.Builder
	for i := range 240 {
		thing, end := things[i*7%len(things)], ends[i*5%len(ends)]
		label := "billing"
		if i*7%len(things) > 4 {
			label = "support"
		}
		fmt.Fprintf(&team, `{"text": "the %s number %d %s", "label": %q}`+"\n", thing, i, end, label)
		if i%2 == 0 {
			fmt.Fprintf(&tags, `{"words": ["the", %q, %q], "tags": ["O", "B-thing", "O"]}`+"\n", thing, end)
		}
		if i%3 == 0 {
			fmt.Fprintf(&price, `{"text": "%s for %d euros %s", "value": %d}`+"\n", thing, i%17, end, i%17)
		}
	}
	for name, text := range map[string]string{
		"team.jsonl": team.String(), "things.jsonl": tags.String(), "price.jsonl": price.String(),
		"experiment.yaml": killedExperiment,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(shared.RunTests(m)) }

// buildProgram gives the program, built with a tag or "", the name of path. It is built once for all tests.
func buildProgram(t *testing.T, path, tag string) {
	t.Helper()
	program := filepath.Join(shared.PackageDir(), "jenga-"+tag)
	if _, err := os.Stat(program); err != nil {
		if out, err := exec.Command("go", "build", "-tags", tag, "-o", program, ".").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := os.Link(program, path); err != nil {
		t.Fatal(err)
	}
}

// killer trains killedExperiment in folders below home, and kills the program.
type killer struct {
	program, home string
	rand          *rand.Rand
	whole         time.Duration  // of a training that is not killed
	starts        int            // of the program
	hit           map[string]int // kills by what they left
}

// start starts a training, or goes on with it, by one thread and by two in turns.
func (k *killer) start(t *testing.T, folder string, log *bytes.Buffer) *exec.Cmd {
	t.Helper()
	k.starts++
	cmd := exec.Command(k.program, "train", "--resume", "experiment.yaml", "--out", folder,
		"--threads", strconv.Itoa(1+k.starts%2))
	cmd.Dir, cmd.Stdout, cmd.Stderr = k.home, log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// train trains to the end, and returns the result.
func (k *killer) train(t *testing.T, folder string) map[string]string {
	t.Helper()
	var log bytes.Buffer
	if err := k.start(t, folder, &log).Wait(); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	return resultOf(t, filepath.Join(k.home, folder))
}

// moments are files whose appearance in the run folder is a moment of a checkpoint's writing or renaming.
var moments = []string{
	"last.new", "last.new/encoder", "last.new/model.safetensors", "last.new/training.snapshot", "last.old",
	"best.new", "best.old", "tasks/team.new", "tasks/price.old", "checkpoints/step-*.new", "checkpoints/*.old",
	"experiment.yaml", "training.lock",
}

// wait waits for a random moment, or until the program has ended.
func (k *killer) wait(folder string, ended <-chan error) {
	after := time.Duration(k.rand.Float64() * float64(k.whole))
	if k.rand.IntN(2) == 0 {
		after = min(after, k.whole/2)
		for began := time.Now(); time.Since(began) < after && len(ended) == 0; {
			time.Sleep(time.Millisecond)
		}
		return
	}

	// a moment after some time: one that has passed does not come back
	until := time.Now().Add(2 * k.whole)
	time.Sleep(after / 2)
	pattern := filepath.Join(k.home, folder, moments[k.rand.IntN(len(moments))])
	for time.Now().Before(until) && len(ended) == 0 {
		if found, err := filepath.Glob(pattern); err == nil && len(found) > 0 {
			break
		}
	}
	time.Sleep(time.Duration(k.rand.IntN(3000)) * time.Microsecond)
}

// kill starts a training in folder, or goes on with it, and kills it. It returns false if it had come to its end.
func (k *killer) kill(t *testing.T, folder string) bool {
	t.Helper()
	var log bytes.Buffer
	cmd := k.start(t, folder, &log)
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	k.wait(folder, ended)
	if len(ended) == 0 {
		cmd.Process.Kill()
	}
	err := <-ended
	if err == nil {
		return false
	}
	if !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v\n%s", err, &log)
	}
	k.hit[k.left(t, folder)]++
	return true
}

// What a kill may have left.
const (
	whileWriting  = "while writing"
	whileRenaming = "while renaming"
)

// left describes what a kill has left.
func (k *killer) left(t *testing.T, folder string) string {
	t.Helper()
	var parts []string
	names := map[string]bool{}
	err := filepath.WalkDir(filepath.Join(k.home, folder), func(path string, _ fs.DirEntry, err error) error {
		names[path] = true
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for suffix, what := range map[string]string{".new": whileWriting, ".old": whileRenaming} {
		for name := range names {
			if strings.HasSuffix(name, suffix) && !slices.Contains(parts, what) {
				parts = append(parts, what)
			}
		}
	}
	if !names[filepath.Join(k.home, folder, "last", "training.snapshot")] && len(parts) == 0 {
		return "before the first checkpoint"
	}
	slices.Sort(parts)
	if len(parts) == 0 {
		return "between checkpoints"
	}
	return strings.Join(parts, ", ")
}

// resultOf returns the files of a run, but for checkpoints/, whose states have times.
func resultOf(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || d.Name() == "checkpoints":
			if err == nil {
				err = fs.SkipDir
			}
			return err
		case d.IsDir():
			return nil
		}
		name, _ := filepath.Rel(folder, path)
		if d.Name() == runfolder.EndFile {
			path = endWithoutTimes(t, path)
		}
		text, err := os.ReadFile(path)
		all[name] = shared.WithoutTimes(string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// endWithoutTimes returns the path of a copy of the state at the end of a training without what differs between two
// equal ones: the time that it took, and the size of metrics.jsonl, which has times.
func endWithoutTimes(t *testing.T, path string) string {
	t.Helper()
	s, err := snapshots.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	var attached map[string]any
	if err := json.Unmarshal(s.Attached, &attached); err != nil {
		t.Fatal(err)
	}
	delete(attached, "seconds")
	delete(attached, "metrics")
	if s.Attached, err = json.Marshal(attached); err != nil {
		t.Fatal(err)
	}
	without := filepath.Join(t.TempDir(), runfolder.EndFile)
	if err := s.Write(without); err != nil {
		t.Fatal(err)
	}
	return without
}

// TestKills kills trainings at random moments, goes on with them, and compares what they end with. JENGA_KILLS is the
// number of kills.
func TestKills(t *testing.T) {
	kills := 10
	if n, err := strconv.Atoi(os.Getenv("JENGA_KILLS")); err == nil {
		kills = n
	} else {
		shared.SkipUnlessLong(t)
	}
	if runtime.GOOS == "windows" {
		t.Skip("only a signal distinguishes a process that is killed from one that fails")
	}
	k := &killer{home: t.TempDir(), rand: rand.New(rand.NewPCG(1, uint64(kills))), hit: map[string]int{}}
	k.program = filepath.Join(k.home, "jenga")
	buildProgram(t, k.program, "")
	killedData(t, k.home)
	start := time.Now()
	want := k.train(t, "whole")
	k.whole = time.Since(start)
	if strings.Contains(want["metrics.jsonl"], `"step":88,"of":88,`) {
		t.Error("the training came to its last step: early stopping is not tested") // it stops after step 63
	}
	for done, number := 0, 0; done < kills; number++ {
		folder := fmt.Sprintf("killed-%d", number)
		for done < kills && k.kill(t, folder) {
			if done++; k.rand.IntN(4) == 0 {
				break
			}
		}
		got := k.train(t, folder)
		for name := range want {
			if got[name] != want[name] {
				t.Fatalf("after %d kills %s of %s differs", done, name, folder)
			}
		}
		if len(got) != len(want) {
			t.Fatalf("after %d kills %s holds %q, want %q", done, folder, slices.Sorted(maps.Keys(got)),
				slices.Sorted(maps.Keys(want)))
		}
		if err := os.RemoveAll(filepath.Join(k.home, folder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, what := range []string{whileWriting, whileRenaming} {
		if kills >= 50 && !slices.ContainsFunc(slices.Collect(maps.Keys(k.hit)), func(left string) bool {
			return strings.Contains(left, what)
		}) {
			t.Errorf("none of %d kills came %s: %v", kills, what, k.hit)
		}
	}
	t.Logf("%d kills, each with the same bytes in the end; a training takes %v; by what they left: %v", kills,
		k.whole.Round(time.Millisecond), k.hit)
}
