package run

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// smallDisk returns a folder with a file system of a few bytes in memory; it skips the test where only root can.
func smallDisk(t *testing.T, options string) string {
	t.Helper()
	folder := t.TempDir()
	mount := exec.Command("mount", "-t", "tmpfs", "-o", options, "jenga-test", folder)
	if out, err := mount.CombinedOutput(); err != nil {
		t.Skipf("cannot mount a file system: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", folder).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return folder
}

func TestATrainingOnAFullDiskGoesOnWhenThereIsRoom(t *testing.T) {
	path, sets := sample.Small(t, ""), []string{"training.num_epochs=6", "training.eval_strategy=steps",
		"training.eval_steps=2"}
	whole := filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, whole, sets...)

	disk := smallDisk(t, "size=4m")
	folder, filler := filepath.Join(disk, "run"), filepath.Join(disk, "filler")
	r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.Train(context.Background(), folder, func(event train.Event) error {
		if step, ok := event.(train.Step); ok && step.Number == 7 {
			fill(t, filler)
		}
		return nil
	})
	if !errors.Is(err, syscall.ENOSPC) || done.Resume != filepath.Join(folder, runfolder.LastDir) {
		t.Fatalf("on a full disk Train = %v, to resume from %q", err, done.Resume)
	}
	if _, err := checkpoint.Read(t.Context(), done.Resume, folder); err != nil {
		t.Errorf("the last checkpoint: %v", err)
	}

	// no room yet
	if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("still without room Train = %v", err)
	}

	// room
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if _, err := resumedRun(t, folder).Train(context.Background(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	checkSameResult(t, "with room again", result(t, folder), result(t, whole))
}

// fill writes a file until the disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 16; size > 0; {
		if _, err := file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}
