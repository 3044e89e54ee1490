package runfolder

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// syncAll writes a folder, and the folders below it, to the disk, with their files if withFiles is true: what is
// renamed then is whole, even if the power fails. All are synced at once, which a file system does together.
func syncAll(folder string, withFiles bool) error {
	var syncs []func() error
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			syncs = append(syncs, func() error { return syncFolder(path) })
		case withFiles:
			syncs = append(syncs, func() error { return syncFile(path) })
		}
		return nil
	})
	errs := make([]error, len(syncs))
	var all sync.WaitGroup
	for i, write := range syncs {
		all.Go(func() { errs[i] = write() })
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0) // Windows syncs only files that are open for writing
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// syncFolder writes the names in a folder to the disk. Windows has no such call.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil
}
