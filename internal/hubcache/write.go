package hubcache

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/jenga-nlp/jenga/internal/files"
)

// lockPoll is the time between two attempts to lock a file.
const lockPoll = 100 * time.Millisecond

// lockedByte is the offset of the byte that huggingface_hub locks on Windows.
const lockedByte = 0

// Lock locks a blob against all other processes that write it, those of huggingface_hub included. Where another one
// holds the lock, waiting is called once. The kernel frees the lock of a process that ends. The file of the lock stays:
// a process that waits for it may have opened it.
func (r Repo) Lock(ctx context.Context, etag string, waiting func()) (unlock func(), err error) {
	if err := os.MkdirAll(r.locks, 0o777); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(filepath.Join(r.locks, etag+".lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	for tried := 0; ; tried++ {
		locked, err := files.TryLock(file, lockedByte, true)
		switch {
		case err == nil && locked:
			return func() { file.Close() }, nil
		case err == nil && tried == 0:
			waiting()
		}
		if err == nil {
			err = Wait(ctx, lockPoll)
		}
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
	}
}

// Wait waits for a time; it returns the error of ctx if that is done before.
func Wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Link makes a file of a commit from its blob: a relative symbolic link, or on systems without them a hard link or a
// copy. name is a path with slashes below the folder of the commit.
func (r Repo) Link(commit, name, etag string) error {
	if err := errors.Join(CheckFile(commit), CheckFile(name), CheckETag(etag)); err != nil {
		return err
	}
	path := filepath.Join(r.Snapshot(commit), filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(path), r.Blob(etag))
	if err != nil {
		return err
	}
	if now, err := os.Readlink(path); err == nil && now == target {
		return nil
	}

	// under another name first, so that path is the old file or the new one at each moment
	return replace(path, func(fresh string) error {
		return linkOrCopy(target, r.Blob(etag), fresh)
	})
}

// linkOrCopy makes a symbolic link at path to target, else a hard link to the file blob, else a copy of it.
func linkOrCopy(target, blob, path string) error {
	if os.Symlink(target, path) == nil || os.Link(blob, path) == nil {
		return nil
	}
	return files.Copy(blob, path)
}

// SetCommit records the commit of a revision, unless the revision is the commit itself.
func (r Repo) SetCommit(revision, commit string) error {
	if err := errors.Join(CheckFile(revision), CheckFile(commit)); err != nil || revision == commit {
		return err
	}
	path := r.ref(revision)
	if r.commitOf(revision) == commit {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return replace(path, func(fresh string) error { return os.WriteFile(fresh, []byte(commit), 0o666) })
}

// replace writes a file under another name in the same folder and renames it to path.
func replace(path string, write func(fresh string) error) error {
	fresh := fmt.Sprintf("%s.%08x.new", path, rand.Uint32()) // another process may replace the same file
	err := write(fresh)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		os.Remove(fresh)
	}
	return err
}
