package experiments

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// Unpack writes an experiment that ships with jenga to path, if there is no file and path ends in its name, as
// experiments/quickstart.yaml does. The data that it names and that ships too goes beside it. Files that are there stay
// as they are. It returns what it wrote.
func Unpack(path string) (wrote []string, err error) {
	name := filepath.Base(path)
	text, err := fs.ReadFile(Shipped, name)
	if err != nil || filepath.Ext(name) != ".yaml" || runfolder.Exists(path) {
		return nil, nil
	}
	put := func(name string, data []byte) error {
		to := filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
		if runfolder.Exists(to) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		wrote = append(wrote, to)
		return runfolder.WriteFile(to, data)
	}
	err = fs.WalkDir(Shipped, ".", func(data string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(data, ".yaml") || !bytes.Contains(text, []byte(data)) {
			return err
		}
		content, err := fs.ReadFile(Shipped, data)
		if err != nil {
			return err
		}
		return put(data, content)
	})
	if err != nil {
		return wrote, err
	}
	return wrote, put(name, text)
}
