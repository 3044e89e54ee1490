package run

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

// EncoderLocation is the location of a checkpoint's encoder: a folder of the checkpoint, or, if frozen, of the base
// model.
type EncoderLocation struct {
	Folder string `json:"folder"` // relative to the checkpoint's, a frozen encoder's to the run's
	// Sums of the files that a frozen encoder is read from, which are not copied, by their paths relative to its
	// folder. CRC-32C is fast, and finds damage; it is nil in checkpoints of earlier versions.
	SHA256 map[string]string `json:"sha256,omitempty"`
	CRC32C map[string]string `json:"crc32c,omitempty"`

	model string // path of this model.json
}

// fileSums are sums of files by their paths relative to a folder.
type fileSums struct{ sha256, crc32c map[string]string }

// copied reports whether the encoder and its tokenizer are in a folder of the checkpoint.
func (p EncoderLocation) copied() bool { return p.SHA256 == nil }

// OpenTokenizer opens the tokenizer beside the encoder.
func (p EncoderLocation) OpenTokenizer() (corpus.Tokenizer, error) {
	return corpus.OpenTokenizer(dataset.TokenizerFolder(p.Folder))
}

// checkFiles returns an error if a file of a frozen encoder is missing or has another CRC-32C than in training; another
// SHA-256 where the checkpoint has no CRC-32C.
func (p EncoderLocation) checkFiles() error {
	if _, err := os.Stat(p.Folder); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: the frozen encoder it was trained with is not found in %s; restore it there", p.model,
			p.Folder)
	}
	if p.CRC32C == nil {
		return p.CheckSHA256()
	}
	return p.compare(p.CRC32C, func(file string) (string, error) { return runfolder.CRC32C(file) })
}

// CheckSHA256 returns an error if a file of a frozen encoder has another SHA-256 than in training.
func (p EncoderLocation) CheckSHA256() error {
	return p.compare(p.SHA256, func(file string) (string, error) {
		sha, _, err := sumsOf(file)
		return sha, err
	})
}

// compare returns an error if sum gives another result for a file of a frozen encoder than in training.
func (p EncoderLocation) compare(sums map[string]string, sum func(file string) (string, error)) error {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		if !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("%s: its frozen encoder's file %q is out of its folder", p.model, name)
		}
		file := filepath.Join(dataset.TokenizerFolder(p.Folder), filepath.FromSlash(name))
		got, err := sum(file)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("%s: its frozen encoder's file %s does not exist", p.model, file)
		case err != nil:
			return fmt.Errorf("%s: its frozen encoder: %w", p.model, err)
		case got != sums[name]:
			return fmt.Errorf("%s: its frozen encoder's file %s is not the one it was trained with", p.model, file)
		}
	}
	return nil
}

// EncoderFiles lists the files that an encoder and its tokenizer were opened from.
func EncoderFiles(encoder encoders.Encoder, tokenizer corpus.Tokenizer) []string {
	return slices.Concat(tokenizer.Files(), encoder.Describe().Files)
}

// sumFiles returns the sums of files, by their paths relative to a folder.
func sumFiles(folder string, files []string) (fileSums, error) {
	sums := fileSums{map[string]string{}, map[string]string{}}
	for _, file := range files {
		name, err := filepath.Rel(folder, file)
		if err != nil {
			return fileSums{}, err
		}
		name = filepath.ToSlash(name)
		if sums.sha256[name], sums.crc32c[name], err = sumsOf(file); err != nil {
			return fileSums{}, err
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

// Check returns an error if a frozen encoder was read from a file without a sum: a file added since training may be
// read in place of another.
func (p EncoderLocation) Check(files []string) error {
	folder, err := runfolder.RealPath(dataset.TokenizerFolder(p.Folder))
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
		// Sums were once of all files with these endings, so that of a graph's values in other files there may be none.
		summed := slices.Contains([]string{".json", ".txt", ".safetensors", ".onnx"}, filepath.Ext(name))
		if p.SHA256 != nil && p.SHA256[filepath.ToSlash(name)] == "" && summed {
			return fmt.Errorf("%s: its frozen encoder is read from %s, which it was not trained with", p.model, file)
		}
	}
	return nil
}
