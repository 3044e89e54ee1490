package experiments

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/checkpoint"
	"github.com/jenga-nlp/jenga/internal/jsonfile"
	"github.com/jenga-nlp/jenga/nn"
)

// Files of a checkpoint.
const (
	modelFile   = "model.json"
	tensorsFile = "model.safetensors"
	encoderDir  = "encoder"
)

// checkpointModel is what model.json holds: all that the tensors do not say.
type checkpointModel struct {
	Format  int              `json:"format"` // of this file
	Jenga   string           `json:"jenga"`
	Encoder encoderPlace     `json:"encoder"`
	Tasks   []checkpointTask `json:"tasks"`
}

// encoderPlace is where a checkpoint's encoder lies: in its own folder, or, frozen, where it was read from.
type encoderPlace struct {
	Folder string            `json:"folder"`           // relative to the checkpoint's, a frozen encoder's to the run's
	SHA256 map[string]string `json:"sha256,omitempty"` // of the files that a frozen encoder is read from, which are not copied

	model string // path of the model.json that says so
}

type checkpointTask struct {
	Name  string           `json:"name"`
	Type  string           `json:"type"`
	Pairs bool             `json:"pairs,omitempty"` // it learned from pairs of texts alone
	Heads []checkpointHead `json:"heads"`
}

type checkpointHead struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
	// Thresholds are the probabilities from which on labels hold, for people to read: the tensors hold them too.
	Thresholds []float32 `json:"thresholds,omitempty"`
}

const checkpointFormat = 1

// save writes the model to a folder of the run's: beside it first, then renamed, so that a whole one is there at any
// moment.
func (r *Run) save(folder string) error {
	return replace(folder, func(fresh string) error {
		about := checkpointModel{Format: checkpointFormat, Jenga: Version}
		for _, task := range r.Experiment.Tasks {
			g, n, err := r.Model.Group(task.Name)
			if err != nil {
				return err
			}
			t := checkpointTask{Name: task.Name, Type: task.Part.Type, Pairs: g.Tasks[n].Pairs}
			for h, head := range task.Heads {
				built := g.Tasks[n].Heads[h]
				saved := checkpointHead{Name: head.Name, Type: head.Part.Type, Labels: built.Labels.Names()}
				if divided, ok := built.Head.(heads.Thresholded); ok {
					saved.Thresholds = divided.Thresholds()
				}
				t.Heads = append(t.Heads, saved)
			}
			about.Tasks = append(about.Tasks, t)
		}

		var err error
		if about.Encoder, err = r.saveEncoder(fresh, filepath.Dir(folder)); err != nil {
			return err
		}
		if err := checkpoint.Write(filepath.Join(fresh, tensorsFile), r.ownParams(), nn.Params{}); err != nil {
			return err
		}
		text, err := json.MarshalIndent(about, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(fresh, modelFile), append(text, '\n'), 0o644)
	})
}

// saveEncoder writes the encoder and its tokenizer to fresh, or, where the encoder learns nothing, says where it lies
// from the run's folder.
func (r *Run) saveEncoder(fresh, run string) (encoderPlace, error) {
	saver, can := r.Model.Encoder.(encoders.Saver)
	_, tells := r.Model.Encoder.(encoders.Sourced)
	if r.encoderPath != "" && tells && (!can || r.Model.Frozen()) {
		if r.encoderSums == nil {
			sums, err := sumFiles(tokenizerFolder(r.encoderPath), readFrom(r.Model.Encoder, r.Tokenizer))
			if err != nil {
				return encoderPlace{}, err
			}
			r.encoderSums = sums
		}
		path, err := way(run, r.encoderPath)
		return encoderPlace{Folder: path, SHA256: r.encoderSums}, err
	}
	path := filepath.Join(fresh, encoderDir)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return encoderPlace{}, err
	}
	if err := saver.Save(path); err != nil {
		return encoderPlace{}, err
	}
	return encoderPlace{Folder: encoderDir}, r.Tokenizer.Save(path)
}

// way returns the path to a file or folder from a folder, with slashes; an absolute one where there is no other. Links
// are followed, so that it is the same by whatever name the folder is called.
func way(from, to string) (string, error) {
	from, err := real(from)
	if err != nil {
		return "", err
	}
	to, err = real(to)
	if err != nil {
		return "", err
	}
	if relative, err := filepath.Rel(from, to); err == nil {
		to = relative
	}
	return filepath.ToSlash(to), nil
}

// real returns the absolute path of what path names, links followed.
func real(path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(abs)
}

// ownParams lists the parameters that are not the encoder's.
func (r *Run) ownParams() []*nn.Param {
	return slices.DeleteFunc(r.Model.Params.All(), func(w *nn.Param) bool { return strings.HasPrefix(w.Name, "encoder.") })
}

// readCheckpoint reads the model.json of a checkpoint in a run's folder, and checks a frozen encoder's files against it.
func readCheckpoint(folder, run string) (checkpointModel, error) {
	path := filepath.Join(folder, modelFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return checkpointModel{}, err
	}
	var about checkpointModel
	if err := jsonfile.Unmarshal(path, text, &about); err != nil {
		return checkpointModel{}, err
	}
	if about.Format != checkpointFormat {
		return checkpointModel{}, fmt.Errorf("%s: format %d; this jenga reads %d", path, about.Format, checkpointFormat)
	}
	if about.Encoder.SHA256 == nil {
		about.Encoder.Folder = filepath.Join(folder, filepath.FromSlash(about.Encoder.Folder))
		return about, nil
	}

	encoder := filepath.FromSlash(about.Encoder.Folder)
	if !filepath.IsAbs(encoder) {
		if run, err = real(run); err != nil {
			return checkpointModel{}, err
		}
		encoder = filepath.Join(run, encoder)
	}
	about.Encoder.Folder = encoder
	about.Encoder.model = path
	if _, err := os.Stat(encoder); errors.Is(err, fs.ErrNotExist) {
		return checkpointModel{}, fmt.Errorf("%s: the frozen encoder it was trained with is not in %s; want it there", path, encoder)
	}
	for _, name := range slices.Sorted(maps.Keys(about.Encoder.SHA256)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return checkpointModel{}, fmt.Errorf("%s: its frozen encoder's file %q is out of its folder", path, name)
		}
		file := filepath.Join(tokenizerFolder(encoder), filepath.FromSlash(name))
		sum, err := sumFile(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return checkpointModel{}, fmt.Errorf("%s: its frozen encoder's file %s is not there", path, file)
		case err != nil:
			return checkpointModel{}, fmt.Errorf("%s: its frozen encoder: %w", path, err)
		case sum != about.Encoder.SHA256[name]:
			return checkpointModel{}, fmt.Errorf("%s: its frozen encoder's file %s is not the one it was trained with", path, file)
		}
	}
	return about, nil
}

// readFrom lists the files that an encoder and its tokenizer were opened from.
func readFrom(encoder encoders.Encoder, tokenizer corpus.Tokenizer) []string {
	files := slices.Clone(tokenizer.Files())
	if source, ok := encoder.(encoders.Sourced); ok {
		files = append(files, source.Files()...)
	}
	return files
}

// sumFiles gives the sha256 of files, by their paths from a folder.
func sumFiles(folder string, files []string) (map[string]string, error) {
	sums := map[string]string{}
	for _, file := range files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return nil, err
		}
		if sums[filepath.ToSlash(name)], err = sumFile(file); err != nil {
			return nil, err
		}
	}
	return sums, nil
}

func sumFile(path string) (string, error) {
	if info, err := os.Stat(path); err != nil {
		return "", err
	} else if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: not a file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	h := sha256.New()
	if _, err := io.Copy(h, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// check makes sure that the files that a frozen encoder was read from are those whose sums were compared: one that was
// not there in training may be read in the place of another.
func (p encoderPlace) check(files []string) error {
	for _, file := range files {
		name, err := filepath.Rel(tokenizerFolder(p.Folder), file)
		if err != nil {
			return err
		}
		// Sums were once of all files with these endings, so that of a graph's values in other files there may be none.
		summed := slices.Contains([]string{".json", ".txt", ".safetensors", ".onnx"}, filepath.Ext(name))
		if p.SHA256 != nil && p.SHA256[filepath.ToSlash(name)] == "" && summed {
			return fmt.Errorf("%s: its frozen encoder is read from %s, which it was not trained with", p.model, file)
		}
	}
	return nil
}

// replace makes a folder anew: write fills a fresh one beside it, which then takes its place.
func replace(folder string, write func(fresh string) error) error {
	fresh, old := folder+newSuffix, folder+oldSuffix
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
	if isThere(folder) { // else old is the whole one
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

// What stands beside a folder while it is replaced.
const (
	newSuffix = ".new"
	oldSuffix = ".old"
)

// whole is the folder, or what it replaces where a kill came between the two renames of replace.
func whole(folder string) string {
	if _, err := os.Stat(folder); err != nil {
		if _, err := os.Stat(folder + oldSuffix); err == nil {
			return folder + oldSuffix
		}
	}
	return folder
}

// link makes folder to a copy of from, of hard links where the file system has them.
func link(from, to string) error {
	return replace(to, func(fresh string) error {
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
			return copyFile(path, target)
		})
	})
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}
