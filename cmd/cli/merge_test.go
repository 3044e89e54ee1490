package cli

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/merge"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/nn"
)

// runsOfOneBase trains two runs from one base model, in the working directory: a and b.
func runsOfOneBase(t *testing.T) {
	t.Helper()
	rateTest(t)
	train := func(args ...string) {
		t.Helper()
		args = append([]string{"train", "experiment.yaml", "--set", "training.max_steps=4"}, args...)
		status, _, log := call("", args...)
		if status != 0 {
			t.Fatal(log)
		}
	}
	train("--out", "base")
	for folder, task := range map[string]string{"a": "team", "b": "other"} {
		train("--out", folder, "--set", "model.base_model=base/best/encoder", "--set", "model.encoder=null",
			"--set", "tokenizer.train=null", "--set", "tasks.team.name="+task)
	}
}

func TestMergeOfTheCommandLine(t *testing.T) {
	runsOfOneBase(t)
	status, out, log := call("", "merge", "a", "b", "--method", "ties", "--density", "0.5", "--weight", "1,2",
		"-o", "ab")
	for _, want := range []string{"dev:\n", "before", "\nteam   team", "\nother  other",
		"merged by ties, scale 1, density 0.5; the model is in ab\n"} {
		if status != 0 || !strings.Contains(out, want) {
			t.Fatalf("merge: %d, no %q in\n%s%s", status, want, out, log)
		}
	}
	status, predicted, log := call("please\n", "predict", "ab")
	if status != 0 || !strings.Contains(predicted, `"other":{"other":`) {
		t.Errorf("predict: %d, %s%s", status, predicted, log)
	}

	// heads trained again, in place of the run
	status, out, log = call("", "merge", "a", "b", "--refit", "--set", "training.max_steps=20", "--json", "-o", "ab",
		"--force")
	var line struct {
		Method string
		Dev    []merge.Figure
	}
	if err := json.Unmarshal([]byte(out), &line); status != 0 || err != nil {
		t.Fatalf("merge --json: %d, %v, %s%s", status, err, out, log)
	}
	if len(line.Dev) != 2 || line.Method != "mean" || line.Dev[1].Task != "other" || line.Dev[1].Refitted == nil {
		t.Errorf("line %+v", line)
	}
	if status, out, log := call("", "eval", "ab"); status != 0 {
		t.Errorf("eval: %d, %s%s", status, out, log)
	}
}

func TestWhatIsLostByRefitIsNamed(t *testing.T) {
	before, less, equal := 0.9, 0.85, 0.899999
	got := lostByRefit([]merge.Figure{{Task: "a", Metric: "accuracy", Merged: &before, Refitted: &less},
		{Task: "b", Merged: &less, Refitted: &before}, {Task: "c", Merged: &before, Refitted: &equal},
		{Task: "d", Merged: &before}})
	if !strings.HasPrefix(got, `task "a" loses 5.00 points of accuracy by --refit; `) || strings.Count(got, "\n") != 1 {
		t.Errorf("got %s", got)
	}
}

func TestMistakesOfMerge(t *testing.T) {
	t.Chdir(t.TempDir())
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"a"}, exitUsage, "an argument is missing"},
		{[]string{"a", "b"}, exitUsage, "--out: no run folder"},
		{[]string{"a", "b", "-o", "c"}, exitMistake, "a: no such folder\nb: no such folder"},
		{[]string{"a", "b", "-o", "c", "--set", "training.max_steps=2"}, exitUsage, "--set: its options are those"},
		{[]string{"a", "b", "-o", "c", "--refit", "--set", "seed=2"}, exitUsage, "want a key of the section training"},
		{[]string{"a", "b", "-o", "c", "--rename", "3:x=y"}, exitUsage, `no run "3"; want a number from 1 to 2`},
		{[]string{"a", "b", "-o", "c", "--rename", "x=y"}, exitUsage, "want RUN:TASK=NAME"},
		{[]string{"runs/a", "b", "-o", "c", "--rename", "run/a:x=y"}, exitUsage,
			`no run "run/a"; did you mean "runs/a"? want a number from 1 to 2`},
		{[]string{"a", "b", "-o", "c", "--method", "slerp"}, exitUsage, `no method "slerp"`},
		{[]string{"a", "b", "-o", "c", "--density", "0.5"}, exitUsage, "--density: method mean has none"},
		{[]string{"a", "b", "-o", "c", "--seed", "7"}, exitUsage, "--seed: method mean drops no numbers at random"},
		{[]string{"a", "b", "-o", "c", "--weight", "1"}, exitUsage, "--weight: 1 number for 2 runs"},
		{[]string{"a", "b", "-o", "c", "--weight", "1,-1"}, exitUsage,
			"--weight: want numbers from 0 to 1e+100, have -1"},
		{[]string{"a", "b", "-o", "c", "--scale", "-1"}, exitUsage, "--scale: want a number above 0, have -1"},
		{[]string{"a", "b", "-o", "c", "--scale", "0"}, exitUsage, "--scale: want a number above 0, have 0"},
		{[]string{"a", "b", "-o", "c", "--density=0"}, exitUsage,
			"--density: want a number above 0, at most 1, have 0"},
		{[]string{"a", "b", "-o", file}, exitMistake, file + " is a file; name a folder by --out"},
		{[]string{"a", "b", "-o", file + "/c"}, exitMistake, file + " is a file; name a folder by --out"},
		{[]string{"a", "b", "-o", "."}, exitMistake, "a: no such folder"},
	} {
		status, out, log := call("", append([]string{"merge"}, c.args...)...)
		if status != c.status || out != "" || !strings.Contains(log, c.want) {
			t.Errorf("merge %q: status %d, %s%s, want %d, %s", c.args, status, out, log, c.status, c.want)
		}
	}
}

// Mistakes that are found before the merged run is written.
func TestMistakesOfMergeLeaveNoRun(t *testing.T) {
	runsOfOneBase(t)
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"--refit --set training.num_epochs=no", exitMistake, "--set training.num_epochs=no: training: num_epochs: "},
		{"--refit --set training.num_epoch=2", exitMistake, `did you mean "num_epochs"?`},
		{"--refit --set training.output_dir=x", exitUsage, "the run folder is that of --out, ab; leave it out"},
		{"--base base", exitMistake, "--base: base is a run or a checkpoint of one; want the folder of the base model"},
		{"--base base/best", exitMistake, "as RUN/best/encoder"},
		{"--rename 1:taem=x", exitMistake, `--rename: a: no task "taem"; did you mean "team"? available: team`},
		{"--rename 1:team=x --rename 1:team=y", exitMistake, `--rename: two names for task "team" of a, "x" and "y"`},
	} {
		status, out, log := call("", append([]string{"merge", "a", "b", "-o", "ab"}, strings.Fields(c.args)...)...)
		if status != c.status || out != "" || !strings.Contains(log, c.want) {
			t.Errorf("merge %s: status %d, %s%s, want %d, %s", c.args, status, out, log, c.status, c.want)
		}
		if _, err := os.Stat("ab"); err == nil {
			t.Fatalf("merge %s leaves a run", c.args)
		}
	}

	// without data a merge has no metrics, and no flag for other data
	if err := os.Rename("mails.csv", "elsewhere.csv"); err != nil {
		t.Fatal(err)
	}
	status, _, log := call("", "merge", "a", "b", "-o", "ab")
	if status != 0 || !strings.Contains(log, `task "team" is not evaluated on dev`) || strings.Contains(log, "--data") {
		t.Errorf("merge without data: %d, %s", status, log)
	}
}

func TestAnInterruptedMergeSaysHowToGoOn(t *testing.T) {
	runsOfOneBase(t)

	// before it: nothing is left
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	log := new(strings.Builder)
	c := &commands{out: new(strings.Builder), log: log}
	f := mergeFlags{options: merge.Options{Method: merge.Mean}, out: "ab", refit: true}
	err := c.merge(ctx, f, []string{"a", "b"})
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(log.String(), "nothing was merged\n") {
		t.Errorf("merge = %v, %s", err, log)
	}
	if _, err := os.Stat("ab"); err == nil {
		t.Fatal("an interrupted merge leaves a run")
	}

	// after an evaluation
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	c.log = &hook{line: func(text string) error {
		if strings.Contains(text, "eval_overall") {
			cancel()
		}
		return nil
	}}
	f.set = []string{"training.num_epochs=50"}
	err = c.merge(ctx, f, []string{"a", "b"})
	var stopped interruption
	if !errors.As(err, &stopped) || !strings.HasPrefix(err.Error(), "interrupted after step ") ||
		!strings.HasSuffix(err.Error(), "; best so far: epoch 1 in ab/best; go on by jenga train --resume ab") {
		t.Fatalf("merge = %v", err)
	}

	// the command that it names works
	status, out, resumed := call("", "train", "--resume", "ab")
	if status != 0 || !strings.Contains(resumed, "training goes on after step ") ||
		!strings.HasSuffix(out, "the model is in ab\n") {
		t.Errorf("train --resume: %d, %s%s", status, out, resumed)
	}
}

// The last warning comes before the training: the merged run is left as it was.
func TestARefitThatIsInterruptedBeforeItsFirstStep(t *testing.T) {
	runsOfOneBase(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := new(strings.Builder)
	log := new(strings.Builder)
	c := &commands{out: out, log: &hook{line: func(text string) error {
		log.WriteString(text)
		if _, err := os.Stat("ab/experiment.yaml"); err == nil {
			cancel()
		}
		return nil
	}}}
	f := mergeFlags{options: merge.Options{Method: merge.Mean}, out: "ab", refit: true, json: true}
	err := c.merge(ctx, f, []string{"a", "b"})
	const want = "the merged run without --refit is in ab; the same command with --force starts again\n"
	if !errors.Is(err, context.Canceled) || !strings.HasSuffix(log.String(), want) {
		t.Errorf("merge = %v, %swant %s", err, log, want)
	}
	var last struct{ Event, Resume string }
	if err := json.Unmarshal([]byte(out.String()), &last); err != nil || last.Event != "interrupted" {
		t.Errorf("the event is %s, %v", out, err)
	}
	if status, out, log := call("", "eval", "ab"); status != 0 {
		t.Errorf("eval: %d, %s%s", status, out, log)
	}
}

// skipWithoutInt8 skips a test that multiplies in int8 by a flag, which is an error where that is slow.
func skipWithoutInt8(t *testing.T) {
	t.Helper()
	if err := nn.Int8.Check(); err != nil {
		t.Skip(err)
	}
}

// mustCall calls the command, and returns what it writes.
func mustCall(t *testing.T, in string, args ...string) string {
	t.Helper()
	status, out, log := call(in, args...)
	if status != 0 {
		t.Fatalf("%q: %d, %s%s", args, status, out, log)
	}
	return out
}

// trainedMails trains a small run in the working directory, runs/mails.
func trainedMails(t *testing.T, args ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	mustCall(t, "", append([]string{"train"}, args...)...)
}

var mailTexts = strings.ReplaceAll("the card is too high and a window hangs again", " ", "\n")

func TestAQuantizedRunPredictsAsItsRunInInt8(t *testing.T) {
	skipWithoutInt8(t)
	trainedMails(t)
	out := mustCall(t, "", "quantize", "runs/mails", "--out", "int8")
	if !strings.HasPrefix(out, "dev:\ntask  head  metric in %  float32  int8    change\nteam  team  accuracy ") ||
		!strings.Contains(out, "; the model is in int8\n") {
		t.Errorf("quantize: %s", out)
	}
	mustCall(t, "", "quantize", "runs/mails", "--keep", "embeddings", "-o", "words", "--no-dev")
	for _, command := range [][]string{{"predict", "", "--top", "2"}, {"embed", ""}, {"eval", "", "--json"}} {
		of := func(run string, more ...string) string {
			args := append(slices.Clone(command), more...)
			args[1] = run
			return mustCall(t, mailTexts, args...)
		}
		want := of("runs/mails", "--precision", "int8")
		// with the embeddings in float32 the rest is the same, bit for bit
		for _, more := range [][]string{nil, {"--precision", "int8"}} {
			if got := of("words", more...); got != want {
				t.Errorf("%q %q with embeddings in float32:\n%swant\n%s", command, more, got, want)
			}
		}
		if got := of("int8"); got == want || got == of("runs/mails") {
			t.Errorf("%q: the embeddings are not rounded", command)
		}
	}
	if out := mustCall(t, "", "eval", "int8"); !strings.HasPrefix(out, "dev, in int8:\n") {
		t.Errorf("eval: %s", out)
	}
	for _, precision := range []string{"float32", "bf16"} {
		for _, command := range []string{"predict int8", "embed int8", "eval int8", "calibrate int8", "serve int8",
			"bench int8 --measure infer"} {
			status, _, log := call(mailTexts, append(strings.Fields(command), "--precision", precision)...)
			want := "precision " + precision + ": the weights are quantized to int8"
			if nn.BFloat16.Check() != nil && precision == "bf16" {
				want = "--precision bf16: " // slow here, or the weights'
			}
			named := strings.Contains(log, "; leave it out, or open the run that they were made of, runs/mails\n")
			known := exitUsage // else of this processor
			if strings.HasSuffix(want, ": ") {
				known = status
			}
			if status != known || !strings.Contains(log, want) || command == "predict int8" && !named {
				t.Errorf("%s --precision %s: %d, %s", command, precision, status, log)
			}
		}
	}
	mustCall(t, "", "bench", "int8", "--measure", "infer,one,products", "--length", "16")
}

func TestAQuantizedRunIsExplainedWithoutGradients(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	for _, keep := range []string{"", "embeddings"} {
		mustCall(t, "", "quantize", "runs/mails", "--out", "int8", "--no-dev", "--force", "--keep="+keep)
		out := mustCall(t, "", "explain", "int8", "the card", "--json")
		if !strings.Contains(out, `"attention":[`) || strings.Contains(out, `"gradient_input"`) ||
			!strings.Contains(out, "a quantized encoder has no gradients; the run that it was made of has them") {
			t.Errorf("explain, --keep=%s: %s", keep, out)
		}
	}
}

func TestATaskThatLosesByQuantizationIsNamed(t *testing.T) {
	trainedMails(t)

	// A number that is added to all word embeddings and subtracted from all positions changes no state, but as integers
	// with one scale the other values of a row are 0.
	const large = 100
	path := filepath.FromSlash("runs/mails/best/encoder/model.safetensors")
	file, err := safetensors.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	var tensors []safetensors.Tensor
	for _, info := range file.Tensors() {
		values, err := file.Floats(info.Name)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(values); at += info.Shape[len(info.Shape)-1] {
			switch {
			case strings.Contains(info.Name, "word_embeddings"):
				values[at] += large
			case strings.Contains(info.Name, "position_embeddings"):
				values[at] -= large
			}
		}
		tensors = append(tensors, safetensors.Tensor{Name: info.Name, Shape: info.Shape, Data: values})
	}
	file.Close()
	err = errors.Join(safetensors.Write(path, tensors, nil), runfolder.WriteChecksums(t.Context(), "runs/mails/best"))
	if err != nil {
		t.Fatal(err)
	}

	out := mustCall(t, "", "quantize", "runs/mails", "-o", "int8")
	if !strings.Contains(out, `task "team" loses `) ||
		!strings.Contains(out, " points of accuracy; --keep leaves layers in float32, as --keep embeddings,0\n") {
		t.Errorf("quantize: %s", out)
	}
	var line quantizedLine
	out = mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--force", "--json")
	if err := json.Unmarshal([]byte(out), &line); err != nil || !slices.Equal(line.Lost, []string{"team"}) ||
		line.Dev[0].Metric != "accuracy" || !(*line.Dev[0].After < *line.Dev[0].Before-0.005) {
		t.Errorf("quantize --json: %v, %s", err, out)
	}
	out = mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--force", "--keep", "embeddings")
	if strings.Contains(out, "loses") || !strings.Contains(out, "\nquantized to int8 but for embeddings: ") {
		t.Errorf("quantize --keep embeddings: %s", out)
	}
	if out = mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--force", "--keep", "0"); !strings.Contains(out,
		"; --keep leaves layers in float32, as --keep embeddings,0\n") {
		t.Errorf("quantize --keep 0: %s", out)
	}
}

func TestAQuantizedRunOfAFrozenModelIsAQuarterAndComplete(t *testing.T) {
	model := filepath.Join(shared.Dir(t), "models", "minilm-l6")
	t.Chdir(t.TempDir())
	base := "base"
	if err := os.CopyFS(base, os.DirFS(model)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	mustCall(t, "", "train", "--set", "model={base_model: base, freeze: all}", "--set", "tokenizer=null",
		"--set", "training.max_steps=2")
	var line quantizedLine
	out := mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--json")
	if err := json.Unmarshal([]byte(out), &line); err != nil {
		t.Fatal(err)
	}
	if ratio := float64(line.Bytes) / float64(line.BytesBefore); !(ratio > 0.25 && ratio <= 0.3) {
		t.Errorf("%d bytes of %d: %.3f", line.Bytes, line.BytesBefore, ratio)
	}
	want := mustCall(t, mailTexts, "predict", "int8")
	if err := errors.Join(os.RemoveAll(base), os.RemoveAll("runs"), os.Rename("int8", "moved")); err != nil {
		t.Fatal(err)
	}
	if got := mustCall(t, mailTexts, "predict", "moved"); got != want {
		t.Errorf("without the run and its base model: %swant %s", got, want)
	}
}

func TestMistakesOfQuantize(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--no-dev")
	writeFile(t, ".", "bilstm.yaml", strings.Replace(smallExperiment,
		"{type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}", "{type: bilstm}", 1))
	mustCall(t, "", "train", "bilstm.yaml", "--out", "lstm", "--set", "training.max_steps=2")
	const refused = "int8: it is quantized to int8, and is neither trained nor merged nor quantized again; want the " +
		"run that it was made of, runs/mails"
	const based = " --set model.encoder=null --set tokenizer.train=null"
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"quantize", exitUsage, "an argument is missing"},
		{"quantize runs/mails", exitUsage, "--out: no run folder; want --out DIR"},
		{"quantize none -o x", exitMistake, "none: no such folder"},
		{"quantize runs/mails -o int8", exitMistake, "int8 holds a run: name another folder by --out"},
		{"quantize runs/mails -o .", exitMistake, ". is, holds or lies in runs/mails"},
		{"quantize runs/mails -o x --keep 1", exitMistake,
			`--keep: no layer "1"; want embeddings, or a number from 0 to 0`},
		{"quantize runs/mails -o x --keep all", exitMistake, `--keep: no layer "all"; want embeddings, or`},
		{"quantize runs/mails -o x --keep embedings", exitMistake,
			`--keep: no layer "embedings"; did you mean "embeddings"? want embeddings, or a number from 0 to 0`},
		{"quantize lstm -o x", exitMistake, "lstm: its encoder, bilstm, has no weights in int8"},
		{"quantize int8 -o x", exitMistake, refused},
		{"merge int8 runs/mails -o x", exitMistake, refused},
		{"train --resume int8", exitMistake, refused},
		{"train --out x --set model.base_model=int8/best/encoder --set model.freeze=all" + based, exitMistake,
			"model: base_model: int8/best/encoder: the encoder is quantized to int8: it predicts, and is neither "},
		{"train --out x --set model.base_model=int8/best/encoder" + based, exitMistake,
			"the encoder is quantized to int8: it predicts, and is neither trained nor merged"},
		{"train --out x --set model.base_model=int8" + based, exitMistake, "the encoder is quantized to int8"},
		{"bench int8", exitMistake, "; --measure infer,one,products leaves training out"},
	} {
		status, out, log := call("", strings.Fields(c.args)...)
		if status != c.status || out != "" || !strings.Contains(log, c.want) {
			t.Errorf("%s: status %d, %s%s, want %d, %s", c.args, status, out, log, c.status, c.want)
		}
		if runfolder.Exists("x") {
			t.Errorf("%s: it leaves a folder", c.args)
			os.RemoveAll("x")
		}
	}
}

func TestAQuantizationWithoutDevDataSaysSo(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	if err := os.Remove("mails.csv"); err != nil {
		t.Fatal(err)
	}
	status, out, log := call("", "quantize", "runs/mails", "-o", "int8")
	if status != 0 || !strings.Contains(log, `task "team" is not evaluated on dev: `) ||
		!strings.Contains(out, "\nteam  team               -        -     -\n") {
		t.Errorf("quantize: %d, %s%s", status, out, log)
	}
	status, out, log = call("", "quantize", "runs/mails", "-o", "int8", "--force", "--no-dev")
	if status != 0 || log != "" || strings.Contains(out, "dev") {
		t.Errorf("quantize --no-dev: %d, %s%s", status, out, log)
	}
	mustCall(t, mailTexts, "predict", "int8")
}

func TestAQuantizationSaysThatACalibrationIsNotTakenOver(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	for _, calibrated := range []bool{false, true} {
		if calibrated {
			mustCall(t, "", "calibrate", "runs/mails", "--abstain", "0.9")
		}
		_, _, log := call("", "quantize", "runs/mails", "-o", "int8", "--no-dev", "--force")
		if got := strings.Contains(log, "the quantized run does not take it over"); got != calibrated {
			t.Errorf("calibrated %v: %s", calibrated, log)
		}
	}
}

func TestAnInterruptedQuantizationLeavesNothing(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, noDev := range []bool{false, true} { // before the evaluation, and when the run is written
		log := new(strings.Builder)
		c := &commands{out: new(strings.Builder), log: log}
		err := c.quantize(ctx, quantizeFlags{out: "int8", noDev: noDev}, "runs/mails")
		if !errors.Is(err, context.Canceled) || !strings.HasSuffix(log.String(), "nothing was quantized\n") {
			t.Errorf("quantize = %v, %s", err, log)
		}
		if runfolder.Exists("int8") {
			t.Error("it leaves a folder")
		}
	}

	// an earlier run stays
	mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--no-dev", "--keep", "0")
	want := mustCall(t, mailTexts, "predict", "int8")
	c := &commands{out: new(strings.Builder), log: new(strings.Builder)}
	if err := c.quantize(ctx, quantizeFlags{out: "int8", noDev: true, force: true}, "runs/mails"); err == nil {
		t.Error("no error")
	}
	if got := mustCall(t, mailTexts, "predict", "int8"); got != want {
		t.Errorf("the run that was there predicts %s, and before %s", got, want)
	}
}

func TestWhatAKilledQuantizationHasLeftIsReplaced(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--no-dev")
	const whole, others = " holds what a command has left of a run", " holds files, but no run, as "
	for _, left := range []struct {
		names string
		want  string // the error without --force
		stays bool   // with --force too
	}{
		{"", "", false},
		{"best.new", "", false},
		{"best", whole, false},
		{"best metrics.jsonl.new", whole, false},
		{"best metrics.jsonl experiment.yaml.new", whole, false},
		{"best.new notes.txt", others, true},
	} {
		if err := os.RemoveAll("killed"); err != nil {
			t.Fatal(err)
		}
		for _, name := range strings.Fields(left.names) {
			from := filepath.Join("int8", strings.TrimSuffix(name, ".new"))
			if info, err := os.Stat(from); err == nil && info.IsDir() {
				if err := os.CopyFS(filepath.Join("killed", name), os.DirFS(from)); err != nil {
					t.Fatal(err)
				}
				continue
			}
			writeFile(t, "killed", name, "")
		}
		writeFile(t, "killed", "training.lock", "process 1 on this-host\n")
		args := []string{"quantize", "runs/mails", "-o", "killed", "--no-dev"}
		if left.want != "" {
			status, _, log := call("", args...)
			if status != exitMistake || !strings.Contains(log, left.want) {
				t.Errorf("%q: %d, %s", left.names, status, log)
			}
			args = append(args, "--force")
		}
		if left.stays {
			if status, _, log := call("", args...); status != exitMistake || !runfolder.Exists("killed/notes.txt") {
				t.Errorf("%q --force: %d, %s", left.names, status, log)
			}
			continue
		}
		mustCall(t, "", args...)
		if got, want := namesIn(t, "killed"), namesIn(t, "int8"); !slices.Equal(got, want) {
			t.Errorf("%q: the folder has %q, want %q", left.names, got, want)
		}
		mustCall(t, mailTexts, "predict", "killed")
	}
}

func TestTheRunThatAKilledQuantizationReplacesIsResumed(t *testing.T) {
	trainedMails(t, "--set", "training.max_steps=2")
	mustCall(t, "", "quantize", "runs/mails", "-o", "int8", "--no-dev")
	for from, to := range map[string]string{"runs/mails": "killed/replaced-run", "int8/best": "killed/best"} {
		if err := os.CopyFS(to, os.DirFS(from)); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, "killed", "training.lock", "process 1 on this-host\n")
	const advice = "jenga train --resume killed"
	if status, _, log := call(mailTexts, "predict", "killed"); status == 0 || !strings.Contains(log, advice) {
		t.Errorf("predict: %d, %s; want %s", status, log, advice)
	}
	mustCall(t, "", strings.Fields(advice)[1:]...)
	if got, want := namesIn(t, "killed"), namesIn(t, "runs/mails"); !slices.Equal(got, want) {
		t.Errorf("the folder has %q, want %q", got, want)
	}
	mustCall(t, mailTexts, "predict", "killed")
}

// namesIn returns the names of the files in a folder.
func namesIn(t *testing.T, folder string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
