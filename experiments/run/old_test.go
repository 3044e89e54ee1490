package run

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestRehearsedTasksAreMixedIn(t *testing.T) {
	baseRun(t)
	changes := map[float64]float64{}
	for _, rehearse := range []float64{0, 0.5} {
		folder := fmt.Sprintf("grown%v", rehearse)
		path := growing(t, "{base_model: base, keep_tasks: all}",
			fmt.Sprintf("training: {rehearse: %v, learning_rate: 0.02, num_epochs: 10, batch_size: 8}\n", rehearse))
		r, done := trainSmall(t, path, folder)
		if n := len(r.Model.Groups); rehearse == 0 && n != 1 || rehearse > 0 && n != 2 {
			t.Errorf("rehearse %v trains %d groups", rehearse, n)
		}

		// 4 batches of 8 of the 32 texts of tone in an epoch
		if want := map[float64]int{0: 40, 0.5: 80}[rehearse]; done.Of != want {
			t.Errorf("rehearse %v: %d steps, want %d", rehearse, done.Of, want)
		}
		if len(done.Old) != 2 || done.Old[0].Task != "team" || done.Old[0].After == nil || done.Old[1].After == nil {
			t.Fatalf("old tasks %+v", done.Old)
		}
		for _, h := range done.Old {
			changes[rehearse] += *h.After - *h.Before
		}

		// in the record
		text, err := os.ReadFile(filepath.Join(folder, runfolder.MetricsFile))
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		var first struct {
			Event string
			Tasks map[string]struct{ State string }
		}
		var last struct {
			Old map[string]map[string]struct{ Before, After, Change float64 }
		}
		if err := json.Unmarshal([]byte(lines[0]), &first); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
			t.Fatal(err)
		}
		state := map[float64]string{0: events.Kept, 0.5: events.Rehearsed}[rehearse]
		if first.Event != "base" || first.Tasks["team"].State != state || first.Tasks["tone"].State != events.New {
			t.Errorf("first event %s", lines[0])
		}
		was := done.Old[0]
		if got := last.Old["team"]["team"]; got.Before != *was.Before || got.After != *was.After {
			t.Errorf("done has %+v, want %+v", got, was)
		}
	}
	if changes[0.5] <= changes[0] {
		t.Errorf("with rehearsal the old tasks change by %v, without by %v", changes[0.5], changes[0])
	}
}

func TestDataOfKeptTasksThatIsGone(t *testing.T) {
	baseRun(t)
	if err := os.Rename("mails.jsonl", "moved.jsonl"); err != nil {
		t.Fatal(err)
	}
	// not read
	mustPrepare(t, growing(t, "{base_model: base, freeze: all, keep_tasks: all}", ""))

	// not rehearsed: not measured
	r := mustPrepare(t, growing(t, "{base_model: base, keep_tasks: all}", "training: {rehearse: 0}\n"))
	if !slices.ContainsFunc(plugin.Lines(r.Warnings), func(w string) bool {
		return strings.Contains(w, "what the kept tasks lose is not measured") && strings.Contains(w, "mails.jsonl")
	}) {
		t.Errorf("warnings %q", r.Warnings)
	}

	// rehearsed: an error
	file := growing(t, "{base_model: base, keep_tasks: all}", "training: {rehearse: 0.5}\n")
	_, err := config.Read(t.Context(), file, nil)
	if err == nil || !strings.Contains(err.Error(), "mails.jsonl: no such file") {
		t.Fatalf("Read = %v", err)
	}

	// beside a file of almost its name
	sample.Write(t, "mail.jsonl", "")
	if _, err := config.Read(t.Context(), file, nil); !strings.Contains(err.Error(), `mail.jsonl"? if it was moved,`) {
		t.Errorf("Read = %v", err)
	}

	// named anew, as the error says, or in an entry that is there
	entry := movedEntry(t, err.Error())
	for _, warning := range plugin.Lines(r.Warnings) {
		if strings.Contains(warning, "is not measured") && movedEntry(t, warning) != entry {
			t.Errorf("warning %q, and error %v", warning, err)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{entry, "- {name: team, keep: true}"} {
		for _, rehearse := range []string{"0.5", "0"} {
			named := strings.Replace(string(text), "tasks:\n", "tasks:\n  "+line+"\n", 1)
			sample.Write(t, file, strings.Replace(named, "rehearse: 0.5", "rehearse: "+rehearse, 1))
			if line != entry {
				_, err := config.Read(t.Context(), file, []string{"training.rehearse=0.5"})
				const hint = "if it was moved, name its place in the entry of the task: data: {path: FILE}"
				if err == nil || !strings.Contains(err.Error(), hint) {
					t.Fatalf("Read = %v, want %s", err, hint)
				}
				sample.Write(t, file, strings.Replace(named, "keep: true", "keep: true, data: {path: moved.jsonl}", 1))
			}
			for _, warning := range plugin.Lines(mustPrepare(t, file).Warnings) {
				if strings.Contains(warning, "is not measured") {
					t.Errorf("with %s: warning %q", line, warning)
				}
			}
		}
	}
}

// movedEntry returns the entry of tasks that a message names for moved data, with the new place in it.
func movedEntry(t *testing.T, message string) string {
	t.Helper()
	_, entry, found := strings.Cut(message, "name its place by an entry of tasks: ")
	if !found {
		t.Fatalf("no entry of tasks in %q", message)
	}
	return strings.Replace(entry, "FILE", "moved.jsonl", 1)
}

// Tasks can be rehearsed without evaluations, beside a sampler that does not need them.
func TestRehearsalWithoutEvaluations(t *testing.T) {
	baseRun(t)
	path := growing(t, "{base_model: base, keep_tasks: all}", "training: {rehearse: 0.5, eval_strategy: no}\n")
	r := mustPrepare(t, path, "training.num_epochs=1")
	if r.plan.Sampler.Type != samplers.RehearsalType {
		t.Errorf("the sampler is a %s", r.plan.Sampler.Type)
	}
	_, err := ready(mustRead(t, path, "training.sampling=dynamic"), config.Train, config.Dev)
	if err == nil || !strings.Contains(err.Error(), `sampling "dynamic" follows the metrics on dev`) {
		t.Errorf("dynamic without evaluations: %v", err)
	}
}

// A rehearsed task is trained on: a label that its data has gained since is added to its head.
func TestRehearsedTasksGainLabels(t *testing.T) {
	baseRun(t)
	records, err := os.ReadFile("mails.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	more := strings.Repeat(`{"text": "a contract", "team": "legal"}`+"\n", 20) // some are in train
	sample.Write(t, "mails.jsonl", string(records)+more)
	r := mustPrepare(t, growing(t, "{base_model: base, keep_tasks: all}", "training: {rehearse: 0.5}\n"))
	for _, task := range r.Growth.Tasks {
		if task.Task == "team" && !slices.Equal(task.Heads[0].NewLabels, []string{"legal"}) {
			t.Errorf("new labels of team: %q", task.Heads[0].NewLabels)
		}
	}
	set := r.Data.Labels[multitask.HeadName{Task: "team", Head: "team"}]
	if n := len(set.Names()); set.ID("legal") != n-1 {
		t.Errorf("labels of team: %q", set.Names())
	}
}
