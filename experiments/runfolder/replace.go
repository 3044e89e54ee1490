package runfolder

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Replace replaces a folder: write fills a new one beside it, which is then renamed.
func Replace(folder string, write func(fresh string) error) error {
	fresh, old := folder+NewSuffix, folder+OldSuffix
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.MkdirAll(fresh, 0o755); err != nil {
		return err
	}
	if err := write(fresh); err != nil {
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
	return os.RemoveAll(old)
}

// Link makes folder to a copy of from, by hard links where the file system has them.
func Link(from, to string) error {
	return Replace(to, func(fresh string) error {
		return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			relative, err := filepath.Rel(from, path)
			if err != nil {
				return err
			}
			target := filepath.Join(fresh, relative)
			if d.IsDir() {
				return os.MkdirAll(target, 0o755)
			}
			if err := os.Link(path, target); err == nil {
				return nil
			}
			return files.Copy(path, target)
		})
	})
}

// WriteFile writes a file under a temporary name and renames it, so that path is complete or does not change.
func WriteFile(path string, data []byte) error {
	fresh := path + NewSuffix
	err := os.WriteFile(fresh, data, 0o644)
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		os.Remove(fresh) // a part of the file, on a full disk
	}
	return err
}
