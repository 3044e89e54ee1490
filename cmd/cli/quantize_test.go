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

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/nn"
)

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
			if status != exitMistake || !strings.Contains(log, want) || command == "predict int8" && !named {
				t.Errorf("%s --precision %s: %d, %s", command, precision, status, log)
			}
		}
	}
	mustCall(t, "", "bench", "int8", "--measure", "infer,one,products", "--length", "16", "--texts", "2", "--steps",
		"1")
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
	err = errors.Join(safetensors.Write(path, tensors, nil), runfolder.WriteChecksums("runs/mails/best"))
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
			mustCall(t, "", "calibrate", "runs/mails")
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
