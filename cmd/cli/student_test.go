package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// studentFile trains the run teacher, of four layers, in a new working directory, and writes of/student.yaml, whose
// encoder is made of two of them.
func studentFile(t *testing.T) {
	t.Helper()
	rateTest(t)
	mustCall(t, "", "train", "experiment.yaml", "--set", "training.max_steps=4", "--set", "model.encoder.layers=4",
		"--out", "teacher")
	text, err := os.ReadFile("experiment.yaml")
	if err != nil {
		t.Fatal(err)
	}
	student := strings.NewReplacer("type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32",
		"from: ../teacher, layers: [0, 3]", "mails.csv", "../mails.csv",
		"tokenizer: {train: {vocab_size: 100}}", "").Replace(string(text))
	if err := os.MkdirAll("of", 0o777); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "of", "student.yaml", student)
}

func TestTheLayersOfAStudentAreChecked(t *testing.T) {
	studentFile(t)
	out := mustCall(t, "", "check", "of/student.yaml")
	encoder := filepath.Join("teacher", runfolder.BestDir, runfolder.EncoderDir)
	if want := "\nencoder: 2 layers, [0 3] of " + encoder + ", "; !strings.Contains(out, want) {
		t.Errorf("check: no %q in\n%s", want, out)
	}
	var checked struct{ Encoder checkedLayers }
	if err := json.Unmarshal([]byte(mustCall(t, "", "check", "--json", "of/student.yaml")), &checked); err != nil ||
		len(checked.Encoder.Layers) != 2 || checked.Encoder.From != encoder || checked.Encoder.Parameters == 0 {
		t.Errorf("check --json: %+v, %v", checked, err)
	}
	for _, args := range [][]string{
		{"check", "of/student.yaml", "--set", "model.encoder.layers=[0, 4]"},
		{"train", "of/student.yaml", "--set", "model.encoder.layers=[0, 4]", "--out", "no"},
	} {
		status, _, log := call("", args...)
		if status != exitMistake || !strings.Contains(log, "model: encoder: layers: there is no layer 4: the "+
			"model has 4 layers, numbered from 0 to 3") {
			t.Errorf("%q: %d, %s", args, status, log)
		}
	}
	status, _, log := call("", "train", "of/student.yaml", "--out", "teacher", "--force")
	if status == 0 || !strings.Contains(log, "teacher holds a run that the base model is part of") {
		t.Errorf("in the teacher's folder: %d, %s", status, log)
	}
}

// A run whose encoder is made of layers of another run's is a run as any other, also after that one is gone.
func TestAStudentIsARunAsAnyOther(t *testing.T) {
	studentFile(t)
	for _, task := range []string{"team", "other"} {
		mustCall(t, "", "train", "of/student.yaml", "--set", "training.max_steps=4", "--set", "tasks.team.name="+task,
			"--out", task)
	}
	mustCall(t, "", "train", "of/student.yaml", "--set", "training.max_steps=4", "--set", "model.freeze=all",
		"--set", "tasks.team.name=frozen", "--out", "frozen")
	mustCall(t, "", "merge", "team", "other", "-o", "merged")
	mustCall(t, "", "merge", "team", "frozen", "-o", "merged2")
	mustCall(t, "", "train", "of/student.yaml", "--set", "training.max_steps=4", "--set", "tasks.team.name=third",
		"--set", "model.encoder.layers=[0, 2]", "--out", "third")
	status, _, log := call("", "merge", "team", "third", "-o", "no")
	if status == 0 || !strings.Contains(log, "team and third are made of different layers of their base model, [0 3] "+
		"and [0 2]; want runs of the same") {
		t.Errorf("merge of other layers: %d, %s", status, log)
	}
	if err := os.Rename("teacher", "gone"); err != nil {
		t.Fatal(err)
	}
	mustCall(t, "", "quantize", "team", "--no-dev", "--out", "int8")
	mustCall(t, "", "quantize", "frozen", "--no-dev", "--out", "frozen8")
	for _, run := range []string{"team", "frozen", "merged", "merged2", "int8", "frozen8", "team/last"} {
		mustCall(t, "please\n", "predict", run)
		mustCall(t, "please\n", "embed", run)
	}
	mustCall(t, "", "eval", "team")
	if err := os.Rename("gone", "teacher"); err != nil {
		t.Fatal(err)
	}
	status, _, log = call("", "train", "of/student.yaml", "--set", "model.encoder.from=int8", "--set",
		"model.encoder.layers=[0]", "--out", "no")
	if status != exitMistake || !strings.Contains(log, "model: encoder: from: int8: it is quantized to int8") {
		t.Errorf("of a quantized run: %d, %s", status, log)
	}
	mustCall(t, "", "train", "of/student.yaml", "--set", "training.max_steps=4", "--set", "model.encoder.from=merged",
		"--set", "model.encoder.layers=[1]", "--out", "merged3")
}
