package predict

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

// toneAndTopic writes data of two tasks, and makes a run with an encoder, base, in the working directory, a new one.
func toneAndTopic(t *testing.T) (texts []string) {
	t.Helper()
	path := sample.Small(t, "")
	t.Chdir(filepath.Dir(path))
	var lines strings.Builder
	for i := range 40 {
		text := fmt.Sprintf("the %s of %d %s", []string{"invoice", "window", "fee"}[i%3], i,
			[]string{"came late", "hangs"}[i/3%2])
		texts = append(texts, text)
		fmt.Fprintf(&lines, `{"text": %q, "tone": %q, "topic": %q}`+"\n", text, []string{"calm", "angry"}[i/3%2],
			[]string{"money", "device", "money"}[i%3])
	}
	sample.Write(t, "new.jsonl", lines.String())
	trainSmall(t, path, "base", "training.num_epochs=2")
	return texts
}

// adapted trains tasks, each with an adapter of its own, for as many steps to a folder.
func adapted(t *testing.T, folder, model string, steps int, tasks ...string) {
	t.Helper()
	text := "model: {" + model + ", dropout: 0}\ntasks:\n"
	for _, name := range tasks {
		text += fmt.Sprintf("  - {name: %s, type: classification, data: {path: new.jsonl, label: %[1]s}}\n", name)
	}
	sample.Write(t, "adapted.yaml", text+fmt.Sprintf(`tokenizer: {max_length: 64}
training:
  {learning_rate: 0.05, batch_size: 8, max_steps: %d, max_grad_norm: 0, lr_scheduler: constant,
   sampling: round_robin, eval_strategy: no}
`, steps))
	trainSmall(t, "adapted.yaml", folder)
}

const ownLoRA = "base_model: base/best/encoder, lora: {per_task: true, r: 2, targets: [query, value, up]}"

// A task with an adapter of its own, beside others that have theirs, predicts the same bytes as one that was trained
// alone by the same steps. The batches of the first task are the same then.
func TestAdaptersAreThoseOfTasksThatAreTrainedAlone(t *testing.T) {
	texts := toneAndTopic(t)
	for _, tasks := range [][]string{{"tone", "topic"}, {"topic", "tone"}} {
		first, both := tasks[0], strings.Join(tasks, "_")
		adapted(t, first, ownLoRA, 10, first)
		adapted(t, both, ownLoRA, 20, tasks...)
		alone, beside := linesOf(t, first, texts), linesOf(t, both, texts)
		if alone[first] == "" || len(beside) != 2 || beside[first] != alone[first] {
			t.Errorf("%s beside others predicts\n%salone\n%s", first, beside[first], alone[first])
		}
	}

	// one base, an adapter of each task
	got := sample.Files(t, filepath.Join("tone_topic", runfolder.LastDir))
	for _, name := range []string{"tone", "topic"} {
		if file := filepath.Join("adapters", name+".safetensors"); len(got[file]) == 0 || len(got[file]) > 4096 {
			t.Errorf("%s has %d bytes, want some, at most 4096", file, len(got[file]))
		}
	}
	for name := range got {
		if strings.HasPrefix(name, runfolder.EncoderDir) {
			t.Errorf("the base is copied to %s", name)
		}
	}

	// what does not fit
	model := filepath.Join("topic_tone", runfolder.LastDir, runfolder.ModelFile)
	text, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, model, strings.Replace(string(text), `"adapter": "tone"`, `"adapter": "../tone"`, 1))
	if _, err := OpenRun(t.Context(), "topic_tone/last"); err == nil ||
		!strings.Contains(err.Error(), `task "tone": adapter "../tone" is not the name of a task`) {
		t.Errorf("an adapter out of the folder: %v", err)
	}
	file := filepath.Join("tone_topic", runfolder.LastDir, "adapters", "tone.safetensors")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(t.Context(), "tone_topic/last"); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("a missing adapter: %v", err)
	}
}

// A new task with an adapter changes nothing of those that have none, or have theirs.
func TestATaskWithAnAdapterLeavesTheOthersAsTheyAre(t *testing.T) {
	texts := toneAndTopic(t)
	adapted(t, "second", "base_model: base, keep_tasks: all, lora: {per_task: true, r: 2}", 10, "tone")
	adapted(t, "third", "base_model: second, keep_tasks: all", 10, "topic")
	runs := []map[string]string{linesOf(t, "base", texts), linesOf(t, "second", texts), linesOf(t, "third", texts)}
	for i, want := range runs {
		if len(want) != i+2 {
			t.Fatalf("run %d has %d tasks, want %d", i, len(want), i+2)
		}
		for task := range want {
			for _, later := range runs[i:] {
				if later[task] != want[task] || want[task] == "" {
					t.Errorf("%s predicts\n%slater\n%s", task, want[task], later[task])
				}
			}
		}
	}
	third, err := OpenRun(t.Context(), "third")
	if err != nil {
		t.Fatal(err)
	}
	defer third.Close()
	for names, want := range map[string]string{
		"":           "predictions of all tasks take 3 passes of the encoder",
		"tone":       "",
		"topic team": "predictions of tasks topic, team take 2 passes of the encoder",
	} {
		got := strings.Join(plugin.Lines(third.PassesWarnings(strings.Fields(names)...)), "\n")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("tasks %q: warning %q, want %s", names, got, want)
		}
	}
}
