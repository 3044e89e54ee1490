// Package experiments holds the experiment files that come with jenga. Its subpackages read, train and open such files.
package experiments

import (
	"bytes"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

//go:generate go run -C claims/gen .

// Shipped holds the experiment files that come with jenga, and the notes that the quickstart and claims.yaml train on.
//
//go:embed *.yaml claims/*.jsonl claims/*.jsonl.gz claims/*/*.jsonl.gz
var Shipped embed.FS

// shippedFolder is the name of the folder that shipped experiments are written to: a path with another parent folder
// names a file of the user's.
const shippedFolder = "experiments"

// Unpack writes an experiment that ships with jenga to path, if there is no file and path ends in its name and that of
// its folder, as experiments/quickstart.yaml does. The data that it names and that ships too goes beside it, also where
// it is missing beside an experiment that is unchanged. Files that are there stay as they are. It returns what it
// wrote. If there is no file at path and a shipped experiment has a similar name, the error suggests that.
func Unpack(path string) (wrote []string, err error) {
	name := filepath.Base(path)
	text, err := fs.ReadFile(Shipped, name)
	if err != nil || filepath.Ext(name) != ".yaml" || filepath.Base(filepath.Dir(path)) != shippedFolder {
		return nil, checkThere(path)
	}
	if mine, err := os.ReadFile(path); err == nil && !bytes.Equal(mine, text) {
		return nil, nil // a file of the user's
	}

	put := func(name string, data []byte) error {
		to := filepath.Join(filepath.Dir(path), filepath.FromSlash(name))
		if runfolder.Exists(to) {
			return nil
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := runfolder.WriteFile(to, data); err != nil {
			return err
		}
		wrote = append(wrote, to)
		return nil
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

// checkThere returns an error if there is no file at path and an experiment that ships can be suggested: its name is
// similar, or path is the default name. A file or a run that is there and has a similar name is nearer: who reads path
// suggests that.
func checkThere(path string) error {
	if runfolder.Exists(path) {
		return nil
	}
	if path == runfolder.ExperimentFile {
		isYML := func(path string) bool { return filepath.Ext(path) == ".yml" }
		if near := suggest.File(path, path, isYML); near != "" {
			return fmt.Errorf("%s: no such file%s", path, near)
		}
		return fmt.Errorf("%s: no such file; name a file, or try jenga train %s/quickstart.yaml", path, shippedFolder)
	}
	files, err := fs.Glob(Shipped, "*.yaml")
	if err != nil {
		return err
	}
	stem := func(file string) string { return strings.TrimSuffix(filepath.Base(file), ".yaml") }
	var names []string
	for _, file := range files {
		names = append(names, stem(file))
	}
	switch near, ok := suggest.Nearest(stem(path), names); {
	case !ok:
		return nil
	case near+".yaml" != filepath.Base(path) && config.Near(path) != "":
		return nil
	case near == stem(path):
		return fmt.Errorf("%s: no such file; jenga train %s/%s.yaml writes and trains the shipped experiment of that "+
			"name", path, shippedFolder, near)
	default:
		return fmt.Errorf("%s: no such file; did you mean %s/%s.yaml, which ships with jenga?", path, shippedFolder,
			near)
	}
}
