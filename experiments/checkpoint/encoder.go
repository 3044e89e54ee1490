package checkpoint

import (
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
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// Encoder is the location of a checkpoint's encoder: a folder of the checkpoint, or, if frozen, of the base model.
type Encoder struct {
	Folder string `json:"folder"` // relative to the checkpoint's, a frozen encoder's to the run's
	Sums          // of the files that a frozen encoder is read from, which are not copied

	model string // path of this model.json
}

// Sums are sums of files by their paths relative to a folder, with slashes. CRC-32C is fast, and finds damage.
type Sums struct {
	SHA256 map[string]string `json:"sha256,omitempty"`
	CRC32C map[string]string `json:"crc32c,omitempty"`
}

// Base is the base model that an encoder was trained from, which need not exist any more. Runs whose encoders have the
// same base can be merged.
type Base struct {
	Folder string            `json:"folder"` // relative to the run's
	CRC32C map[string]string `json:"crc32c"` // of the encoder's files, by their paths relative to its folder
}

// Copied reports whether the encoder and its tokenizer are in a folder of the checkpoint.
func (e Encoder) Copied() bool { return e.SHA256 == nil }

// OpenTokenizer opens the tokenizer beside the encoder.
func (e Encoder) OpenTokenizer() (corpus.Tokenizer, error) {
	return corpus.OpenTokenizer(dataset.TokenizerFolder(e.Folder))
}

// checkFiles returns an error if a file of a frozen encoder is missing or has another CRC-32C than in training.
func (e Encoder) checkFiles() error {
	if _, err := os.Stat(e.Folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the frozen encoder it was trained with is not found in %s; restore it there", e.model,
			e.Folder)
	}
	return e.compare(e.CRC32C, func(file string) (string, error) { return runfolder.CRC32C(file) })
}

// CheckSHA256 returns an error if a file of a frozen encoder has another SHA-256 than in training.
func (e Encoder) CheckSHA256() error {
	return e.compare(e.SHA256, func(file string) (string, error) {
		sha, _, err := sumsOf(file)
		return sha, err
	})
}

// compare returns an error if sum gives another result for a file of a frozen encoder than in training.
func (e Encoder) compare(sums map[string]string, sum func(file string) (string, error)) error {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%s: its frozen encoder's file %q is out of its folder", e.model, name)
		}
		file := filepath.Join(dataset.TokenizerFolder(e.Folder), filepath.FromSlash(name))
		got, err := sum(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: its frozen encoder's file %s does not exist", e.model, file)
		case err != nil:
			return fmt.Errorf("%s: its frozen encoder: %w", e.model, err)
		case got != sums[name]:
			return fmt.Errorf("%s: its frozen encoder's file %s is not the one it was trained with", e.model, file)
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

// EncoderFiles lists the files that an encoder and its tokenizer were opened from.
func EncoderFiles(encoder encoders.Encoder, tokenizer corpus.Tokenizer) []string {
	return slices.Concat(tokenizer.Files(), encoder.Describe().Files)
}

// SumFiles returns the sums of files, by their paths relative to a folder.
func SumFiles(folder string, files []string) (Sums, error) {
	sums := Sums{map[string]string{}, map[string]string{}}
	for _, file := range files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return Sums{}, err
		}
		name = filepath.ToSlash(name)
		if sums.SHA256[name], sums.CRC32C[name], err = sumsOf(file); err != nil {
			return Sums{}, err
		}
	}
	return sums, nil
}

// sumsOf returns the SHA-256 and the CRC-32C of a file.
func sumsOf(path string) (sha, crc string, err error) {
	h := sha256.New()
	crc, err = runfolder.CRC32C(path, h)
	return hex.EncodeToString(h.Sum(nil)), crc, err
}
