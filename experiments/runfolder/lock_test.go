package runfolder

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/sample"
)

func mustLock(t *testing.T, folder string) *Lock {
	t.Helper()
	lock, err := Acquire(folder)
	if err != nil {
		t.Fatal(err)
	}
	return lock
}

func TestALockIsHeldOnce(t *testing.T) {
	folder := t.TempDir()
	if err := CheckUnlocked(folder); err != nil {
		t.Error(err)
	}
	lock := mustLock(t, folder)
	host, _ := os.Hostname()
	want := fmt.Sprintf("%s: another training writes to it, process %d on %s; wait until it has ended, or name "+
		"another folder by argument out", folder, os.Getpid(), host)
	_, again := Acquire(folder)
	for what, err := range map[string]error{"Acquire": again, "CheckUnlocked": CheckUnlocked(folder)} {
		if err == nil || err.Error() != want || !errors.Is(err, ErrLocked) {
			t.Errorf("%s of a locked folder = %v, want %s", what, err, want)
		}
	}

	// the file that is locked is gone with the lock
	lock.Release()
	if left := sample.Files(t, folder); len(left) > 0 {
		t.Errorf("after Release the folder holds %v", left)
	}
	mustLock(t, folder).Release()
}

func TestALockWaitsForAReaderOfTheFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), LockFile) // which a kill has left
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	reader, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if locked, err := files.TryLock(reader, lockedByte, false); !locked || err != nil {
		t.Fatalf("a shared lock: %v, %v", locked, err)
	}
	time.AfterFunc(2*retryAfter, func() { reader.Close() })
	mustLock(t, filepath.Dir(path)).Release()
}

func TestALockOfARemovedFileIsNoLock(t *testing.T) {
	folder := t.TempDir()
	first := mustLock(t, folder)
	// another process opens the file, the first removes and unlocks it, a third locks a new one
	opened, err := os.OpenFile(filepath.Join(folder, LockFile), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	first.Release()
	third := mustLock(t, folder)
	defer third.Release()
	if locked, err := lockOpened(opened, filepath.Join(folder, LockFile)); locked || err != nil {
		t.Errorf("a file that was removed is locked: %v, %v", locked, err)
	}
}

// holdLock is set in a process that holds the lock of a folder until it is killed.
const holdLock = "JENGA_TEST_HOLD_LOCK"

func TestAKilledProcessHoldsNoLock(t *testing.T) {
	if folder := os.Getenv(holdLock); folder != "" {
		mustLock(t, folder)
		fmt.Println("locked")
		io.Copy(io.Discard, os.Stdin) // until it is killed
		return
	}

	folder := t.TempDir()
	holder := exec.Command(os.Args[0], "-test.run=^TestAKilledProcessHoldsNoLock$")
	holder.Env = append(os.Environ(), holdLock+"="+folder)
	if _, err := holder.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer holder.Process.Kill()
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("the process wrote %q, %v", line, err)
	}
	want := fmt.Sprintf("process %d on ", holder.Process.Pid)
	if _, err := Acquire(folder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Acquire = %v, want an error with %q", err, want)
	}

	if err := holder.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	holder.Wait()
	if !Exists(filepath.Join(folder, LockFile)) {
		t.Error("the file of the killed process is gone: it does not test what a kill leaves")
	}
	mustLock(t, folder).Release()
}

func TestAFolderWithLinksIsNotLocked(t *testing.T) {
	outside := sample.Folder(t, map[string]string{"file": "private"})
	for _, name := range []string{LockFile, BestDir, LastDir, TasksDir, CheckpointsDir, ReplacedDir} {
		for _, target := range []string{outside, filepath.Join(outside, "file"), filepath.Join(outside, "none")} {
			path := filepath.Join(t.TempDir(), name)
			if err := os.Symlink(target, path); err != nil {
				t.Fatal(err)
			}
			kind, remedy := "a folder", func() error { return os.Mkdir(path, 0o755) }
			if name == LockFile {
				kind, remedy = "a regular file", func() error { return os.WriteFile(path, nil, 0o644) }
			}
			want := path + ": a symbolic link; want " + kind
			if _, err := Acquire(filepath.Dir(path)); err == nil || err.Error() != want {
				t.Errorf("Acquire = %v, want %s", err, want)
			}
			if err := errors.Join(os.Remove(path), remedy()); err != nil {
				t.Fatal(err)
			}
			mustLock(t, filepath.Dir(path)).Release()
		}
	}
	if got := sample.Files(t, outside); len(got) != 1 || got["file"] != "private" {
		t.Errorf("the folder that the links name has %q", got)
	}
}

func TestALinkedCheckpointIsNoKeptOne(t *testing.T) {
	outside := sample.Folder(t, map[string]string{"step-3/" + SnapshotFile: "private"})
	folder := sample.Folder(t, map[string]string{CheckpointsDir + "/step-2/" + SnapshotFile: "state"})
	for _, name := range []string{"step-3", "step-4" + OldSuffix} {
		err := os.Symlink(filepath.Join(outside, "step-3"), filepath.Join(folder, CheckpointsDir, name))
		if err != nil {
			t.Fatal(err)
		}
	}
	if steps, err := Steps(filepath.Join(folder, CheckpointsDir)); err != nil || !slices.Equal(steps, []int{2}) {
		t.Errorf("Steps = %v, %v; want that of the folder alone", steps, err)
	}
	if err := RemoveSnapshots(folder); err != nil {
		t.Error(err)
	}
	if got := sample.Files(t, outside); len(got) != 1 {
		t.Errorf("the folder that the links name has %q", got)
	}
}
