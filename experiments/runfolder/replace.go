package runfolder

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Replace replaces a folder: write fills a new one beside it, which is then synced and renamed.
func Replace(folder string, write func(fresh string) error) error {
	return replace(folder, true, write)
}

// replace is Replace; withFiles is false if the files that write puts there are synced already.
func replace(folder string, withFiles bool, write func(fresh string) error) error {
	fresh, old := folder+NewSuffix, folder+OldSuffix
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return err
	}
	err := write(fresh)
	if err == nil {
		err = syncAll(fresh, withFiles)
	}
	if err != nil {
		os.RemoveAll(fresh)
		return err
	}
	if Exists(folder) { // otherwise old is the complete version
		if err := os.RemoveAll(old); err != nil {
			return err
		}
		if err := os.Rename(folder, old); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh, folder); err != nil {
		return err
	}
	if err := syncFolder(filepath.Dir(folder)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// Link makes folder to a copy of from, by hard links where the file system has them. Files whose names are in without
// are left out.
func Link(from, to string, without ...string) error {
	return replace(to, false, func(fresh string) error {
		return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			target := filepath.Join(fresh, relative)
			if slices.Contains(without, relative) {
				return nil
			}
			if d.IsDir() {
				return os.MkdirAll(target, 0o755)
			}
			if err := os.Link(path, target); err == nil {
				return nil
			}
			if err := files.Copy(path, target); err != nil {
				return err
			}
			return syncFile(target)
		})
	})
}

// WriteFile writes a file under a temporary name, syncs and renames it, so that path is complete or does not change.
func WriteFile(path string, data []byte) error {
	fresh := path + NewSuffix
	err := os.WriteFile(fresh, data, 0o644)
	if err == nil {
		err = syncFile(fresh)
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err == nil {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(fresh) // a part of the file, on a full disk
	}
	return err
}
