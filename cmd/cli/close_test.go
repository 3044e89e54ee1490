package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mappedFiles returns the lines of this process's memory map that name files below a folder, on Linux.
func mappedFiles(t *testing.T, folder string) []string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Skipf("this system does not list mapped files: %v", err)
	}
	var below []string
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, folder) {
			below = append(below, line)
		}
	}
	return below
}

// A program that runs commands one after the other keeps no file of a run open.
func TestCommandsUnmapTheFilesOfARun(t *testing.T) {
	folder, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(folder)
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
	for _, command := range []string{"eval runs/mails", "predict runs/mails", "embed runs/mails"} {
		if status, _, log := call("the card\n", strings.Fields(command)...); status != 0 {
			t.Fatal(log)
		}
		if left := mappedFiles(t, folder); len(left) > 0 {
			t.Errorf("after %s these files are mapped:\n%s", command, strings.Join(left, ""))
		}
	}
}
