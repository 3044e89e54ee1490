package checkpoint

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Encoder is the location of an encoder: a folder of the checkpoint, or that of a base model, which a frozen encoder is
// unchanged, and another was trained from. Runs whose encoders have the same base model can be merged.
type Encoder struct {
	Folder string `json:"folder"` // relative to the checkpoint's, of a base model to the run's
	// Sums of a base model's files, by their paths relative to its folder, with slashes. CRC-32C is fast, and finds
	// damage. An encoder that is trained may outlive its base model, of which there is no SHA-256.
	SHA256 map[string]string `json:"sha256,omitempty"`
	CRC32C map[string]string `json:"crc32c,omitempty"`
	// Layers of a base model that the encoder was made of, numbered from 0, in this order; none: all.
	Layers []int `json:"layers,omitempty"`

	model string // path of this model.json
}

// Copied reports whether the encoder and its tokenizer are in a folder of the checkpoint.
func (e Encoder) Copied() bool { return e.SHA256 == nil }

// OpenTokenizer opens the tokenizer beside the encoder.
func (e Encoder) OpenTokenizer() (corpus.Tokenizer, error) {
	return corpus.OpenTokenizer(dataset.TokenizerFolder(e.Folder))
}

// checkFiles returns an error if a file of a frozen encoder is missing or has another CRC-32C than in training.
func (e Encoder) checkFiles(ctx context.Context) error {
	if _, err := os.Stat(e.Folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the frozen encoder it was trained with is not found in %s; restore it there", e.model,
			e.Folder)
	}
	if err := e.CheckCRC32C(ctx); err != nil {
		return fmt.Errorf("%s: its frozen encoder's %w", e.model, err)
	}
	return nil
}

// CheckSHA256 returns an error if a file of a frozen encoder has another SHA-256 than in training.
func (e Encoder) CheckSHA256(ctx context.Context) error {
	err := e.compare(e.SHA256, func(file string) (string, error) {
		sha := sha256.New()
		_, err := runfolder.CRC32C(ctx, file, sha)
		return hex.EncodeToString(sha.Sum(nil)), err
	})
	if err != nil {
		return fmt.Errorf("%s: its frozen encoder's %w", e.model, err)
	}
	return nil
}

// CheckCRC32C returns an error if a file of a base model is missing or has another CRC-32C than in training.
func (e Encoder) CheckCRC32C(ctx context.Context) error {
	return e.compare(e.CRC32C, func(file string) (string, error) { return runfolder.CRC32C(ctx, file) })
}

func (e Encoder) compare(sums map[string]string, sum func(file string) (string, error)) error {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("file %q is out of its folder", name)
		}
		file := filepath.Join(dataset.TokenizerFolder(e.Folder), filepath.FromSlash(name))
		got, err := sum(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("file %s does not exist", file)
		case err != nil:
			return fmt.Errorf("files: %w", err)
		case got != sums[name]:
			return fmt.Errorf("file %s is not the one it was trained with: its sum is %s, not %s", file, got,
				sums[name])
		}
	}
	return nil
}

// CheckRead returns an error if a frozen encoder was read from a file without a sum: a file added since training may be
// read in place of another.
func (e Encoder) CheckRead(files []string) error {
	folder, err := runfolder.RealPath(dataset.TokenizerFolder(e.Folder))
	if err != nil {
		return err
	}
	for _, file := range files {
		at, err := runfolder.RealPath(filepath.Dir(file)) // the file may be a link out of the folder
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, filepath.Join(at, filepath.Base(file)))
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !e.Copied() && (e.SHA256[name] == "" || e.CRC32C[name] == "") {
			return fmt.Errorf("%s: its frozen encoder is read from %s, which it was not trained with", e.model, file)
		}
	}
	return nil
}

// EncoderParams returns the parameters that the encoder of an experiment has in a folder, whose tokenizer has so many
// tokens, of these layers (nil: all), and what closes it, after which their values must not be used.
func EncoderParams(e *config.Experiment, folder string, tokens int, layers []int) (
	all []*nn.Param, closer func() error, err error,
) {
	choice, err := e.EncoderIn(folder)
	if err != nil {
		return nil, nil, err
	}
	tree := nn.NewParams(e.Seed)
	encoder, err := choice.Build(encoders.Env{
		Model: folder, Vocabulary: tokens, MaxLength: e.Tokenizer.MaxLength, Freeze: encoders.FreezeAll,
		Layers: layers, Params: multitask.EncoderParams(tree),
	})
	if err != nil {
		return nil, nil, err
	}
	return multitask.EncoderParams(tree).All(), func() error { return encoders.Close(encoder) }, nil
}

// EncoderFiles lists the files that an encoder and its tokenizer were opened from.
func EncoderFiles(encoder encoders.Encoder, tokenizer corpus.Tokenizer) []string {
	return slices.Concat(tokenizer.Files(), encoder.Describe().Files)
}

// SumFiles returns an encoder in a folder with the CRC-32C of files, and with their SHA-256 if it is frozen.
func SumFiles(ctx context.Context, folder string, files []string, frozen bool) (Encoder, error) {
	e := Encoder{Folder: folder, CRC32C: map[string]string{}}
	if frozen {
		e.SHA256 = map[string]string{}
	}
	for _, file := range files {
		name, err := filepath.Rel(dataset.TokenizerFolder(folder), file)
		if err != nil {
			return Encoder{}, err
		}
		name = filepath.ToSlash(name)
		if !frozen {
			e.CRC32C[name], err = runfolder.CRC32C(ctx, file)
		} else {
			sha := sha256.New()
			e.CRC32C[name], err = runfolder.CRC32C(ctx, file, sha)
			e.SHA256[name] = hex.EncodeToString(sha.Sum(nil))
		}
		if err != nil {
			return Encoder{}, err
		}
	}
	return e, nil
}
