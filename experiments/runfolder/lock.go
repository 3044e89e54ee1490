package runfolder

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"syscall"
	"time"

	"github.com/jenga-nlp/jenga/internal/files"
)

// LockFile is the file of a run folder that a training locks while it writes to the folder. The lock is the system's:
// it ends with the process, however that ends. The content names the process, for messages.
const LockFile = "training.lock"

// lockedByte is the offset of the byte that is locked on Windows, beyond the file's end: the content can be read.
const lockedByte = 1 << 62

// Lock is the lock of a run folder.
type Lock struct {
	file   *os.File
	killed bool        // a kill has left the file of the lock before
	folder fs.FileInfo // that is locked
}

// ErrLocked is wrapped by the errors of a folder that a training has locked.
var ErrLocked = errors.New("another training writes to it")

// ErrMoved is wrapped by the errors of a folder that is no longer where it was locked.
var ErrMoved = errors.New("the folder was moved or removed while the run was written to it")

// CheckUnlocked locks a file for an instant. Acquire tries again for 100 ms, so that it does not take that for a
// training.
const (
	retries    = 20
	retryAfter = 5 * time.Millisecond
)

// Acquire locks a folder, which it creates if there is none. It returns an error that wraps [ErrLocked] if another
// training has locked it, and one if what is written to in it is a link.
func Acquire(folder string) (*Lock, error) {
	path, killed := filepath.Join(folder, LockFile), HasLockFile(folder)
	err := os.MkdirAll(folder, 0o755)
	for _, name := range []string{BestDir, LastDir, TasksDir, CheckpointsDir, ReplacedDir, TeachersDir} {
		err = cmp.Or(err, files.CheckKind(filepath.Join(folder, name), fs.ModeDir))
	}
	if err != nil {
		return nil, err
	}
	for tried := 0; ; tried++ {
		file, err := files.OpenOwn(path, true)
		if err != nil {
			return nil, err
		}
		switch locked, err := lockOpened(file, path); {
		case errors.Is(err, ErrLocked) && tried < retries:
			time.Sleep(retryAfter)
		case err != nil:
			file.Close()
			return nil, err
		case locked:
			lock := &Lock{file: file, killed: killed}
			if lock.folder, err = os.Stat(folder); err == nil {
				err = lock.sign()
			}
			if err != nil {
				lock.Release()
				return nil, err
			}
			return lock, nil
		}
		file.Close() // it is locked, or its last holder has removed it
	}
}

// lockOpened locks the opened file at path. It returns false if the file has been removed meanwhile, so that others do
// not see the lock, and an error if it is locked.
func lockOpened(file *os.File, path string) (bool, error) {
	locked, err := files.TryLock(file, lockedByte, true)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	own, err := file.Stat()
	if err != nil {
		return false, err
	}
	if there, err := os.Stat(path); err != nil || !os.SameFile(own, there) {
		return false, nil
	}
	if !locked {
		return false, lockedError(file, filepath.Dir(path))
	}
	return true, nil
}

// sign writes the process that holds the lock to its file.
func (l *Lock) sign() error {
	host, err := os.Hostname()
	if err != nil {
		host = "this host"
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(fmt.Appendf(nil, "process %d on %s\n", os.Getpid(), host), 0)
	return err
}

// Check returns an error that wraps [ErrMoved] if the folder is no longer where it was: what is written to its path
// would be another run's, or half of one.
func (l *Lock) Check() error {
	path := filepath.Dir(l.file.Name())
	if there, err := os.Stat(path); err != nil || !os.SameFile(l.folder, there) {
		return fmt.Errorf("%s: %w; what was saved before is where it was moved to", path, ErrMoved)
	}
	return nil
}

// Release removes the file and unlocks it, in the order that the system allows. If that fails the file is left, which
// the next training locks. In a folder that was moved it is left, too: at its path may be another's.
func (l *Lock) Release() {
	if l.folder != nil && l.Check() != nil {
		l.file.Close()
		return
	}
	if runtime.GOOS == "windows" { // an open file cannot be removed, neither by another process
		l.file.Close()
		os.Remove(l.file.Name())
		return
	}
	os.Remove(l.file.Name()) // while it is locked: afterwards it may be another's
	l.file.Close()
}

// CheckUnlocked returns an error that wraps [ErrLocked] if a training has locked a folder.
func CheckUnlocked(folder string) error {
	path := filepath.Join(folder, LockFile)
	file, err := files.Open(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil
	case err != nil:
		return err
	}
	defer file.Close()
	switch unlocked, err := files.TryLock(file, lockedByte, false); {
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	case !unlocked:
		return lockedError(file, folder)
	}
	return nil
}

var signature = regexp.MustCompile(`^process \d+ on [\w.-]+`)

// lockedError returns the error of a folder whose LockFile is locked.
func lockedError(file *os.File, folder string) error {
	text := make([]byte, 512)
	n, err := file.ReadAt(text, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		n = 0
	}
	by := ""
	if process := signature.Find(text[:n]); process != nil { // the other may not have written it yet
		by = ", " + string(process)
	}
	return fmt.Errorf("%s: %w%s; wait until it has ended, or name another folder by %w", folder, ErrLocked, by,
		outArgument)
}
