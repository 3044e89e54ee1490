//go:build gpu && linux && (amd64 || arm64)

package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
)

// deviceProgram is the program with the tag gpu, in a folder with an experiment.
type deviceProgram struct{ path, home, library string }

func newDeviceProgram(t *testing.T) deviceProgram {
	p := deviceProgram{home: t.TempDir(), library: cudatest.Library(t)}
	p.path = filepath.Join(p.home, "jenga")
	buildProgram(t, p.path, "gpu")
	killedData(t, p.home)
	file := filepath.Join(p.home, "experiment.yaml")
	text := strings.Replace(killedExperiment, "  ema: 0.95\n", "", 1)
	text = strings.Replace(text, "num_epochs: 4", "num_epochs: 2", 1)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return p
}

// command returns a call of the program, whose output goes to the buffer.
func (p deviceProgram) command(words ...string) (*exec.Cmd, *bytes.Buffer) {
	cmd, log := exec.Command(p.path, words...), new(bytes.Buffer)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.home, log, log
	if p.library != "" {
		cmd.Env = append(os.Environ(), cuda.LibraryVariable+"="+p.library)
	}
	return cmd, log
}

// train starts a training on a device, or goes on with it.
func (p deviceProgram) train(folder, device string, more ...string) (*exec.Cmd, *bytes.Buffer) {
	words := []string{"train", "--resume", "experiment.yaml", "--out", folder, "--device", device}
	return p.command(append(words, more...)...)
}

// complete trains to the end, and returns the result.
func (p deviceProgram) complete(t *testing.T, folder, device string, more ...string) map[string]string {
	t.Helper()
	cmd, log := p.train(folder, device, more...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	return resultOf(t, filepath.Join(p.home, folder))
}

// kill starts a training on cuda:0, and kills it when it has saved a checkpoint.
func (p deviceProgram) kill(t *testing.T, folder string) {
	t.Helper()
	cmd, log := p.train(folder, "cuda:0")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.home, folder, "last", "training.snapshot")); err == nil {
			break
		}
	}
	cmd.Process.Kill()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("%v, want killed\n%s", err, log)
	}
}

// fail trains on a GPU that is lost at a launch of a kernel.
func (p deviceProgram) fail(t *testing.T, folder string) {
	t.Helper()
	cmd, log := p.train(folder, "cuda:0")
	cmd.Env = append(cmd.Env, "JENGA_HOSTCUDA_FAIL=cuLaunchKernel:700:900")
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
		t.Fatalf("a training on a lost GPU: %v\n%s", err, log)
	}
	for _, want := range []string{"CUDA_ERROR_ILLEGAL_ADDRESS", "go on by jenga train --resume " + folder} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("a training on a lost GPU lacks %q:\n%s", want, log)
		}
	}
}

func checkSame(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d files, want %d", what, len(got), len(want))
	}
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s differs", what, name)
		}
	}
}

// TestATrainingOnADevice trains on a GPU, which is the processor. Killed, or after the GPU was lost, the training goes
// on to the same bytes; with the change allowed on the processor, too. A run predicts the same on both.
func TestATrainingOnADevice(t *testing.T) {
	p := newDeviceProgram(t)
	whole := p.complete(t, "whole", "cuda:0")
	if !strings.Contains(whole["metrics.jsonl"], `"device":"cuda:0"`) {
		t.Error("metrics.jsonl does not name the device")
	}
	p.kill(t, "killed")
	checkSame(t, "killed", p.complete(t, "killed", "cuda:0"), whole)
	if !cudatest.Real() {
		p.fail(t, "lost")
		checkSame(t, "the GPU was lost", p.complete(t, "lost", "cuda:0"), whole)
	}

	p.kill(t, "moved")
	cmd, log := p.train("moved", "cpu")
	if err := cmd.Run(); err == nil || !strings.Contains(log.String(), "--allow-changes kernels") {
		t.Errorf("a training goes on on another device: %v\n%s", err, log)
	}
	moved := p.complete(t, "moved", "cpu", "--allow-changes", "kernels")
	if !strings.Contains(moved["metrics.jsonl"], `{"event":"device","device":"cpu"}`) {
		t.Error("metrics.jsonl does not say that the training goes on on the processor")
	}

	p.checkPredictions(t, "whole")
}

// checkPredictions compares the predictions of a run on both devices.
func (p deviceProgram) checkPredictions(t *testing.T, run string) {
	t.Helper()
	texts := "the invoice number 7 came late\nthe window hangs\na fee of 12 euros is too high\n"
	if err := os.WriteFile(filepath.Join(p.home, "texts.txt"), []byte(texts), 0o644); err != nil {
		t.Fatal(err)
	}
	var answers [2][]any
	for i, device := range []string{"cuda:0", "cpu"} {
		cmd, log := p.command("predict", run, "texts.txt", "--device", device)
		var out bytes.Buffer
		cmd.Stdout = &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v\n%s", err, log)
		}
		for line := range strings.Lines(out.String()) {
			var answer any
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				t.Fatal(err)
			}
			answers[i] = append(answers[i], answer)
		}
	}
	if len(answers[0]) != 3 || !near(answers[0], answers[1]) {
		t.Errorf("a device predicts %v, the processor %v", answers[0], answers[1])
	}
}

// near reports whether values of JSON are the same, but for differences of numbers of at most 1e-4.
func near(a, b any) bool {
	switch a := a.(type) {
	case float64:
		b, ok := b.(float64)
		return ok && math.Abs(a-b) <= 1e-4*max(1, math.Abs(b))
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !near(a[i], b[i]) {
				return false
			}
		}
		return true
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for key := range a {
			if !near(a[key], b[key]) {
				return false
			}
		}
		return true
	}
	return a == b
}
