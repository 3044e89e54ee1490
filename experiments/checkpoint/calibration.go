package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"math"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// calibrationFile is the content of a calibration.json: what was fitted to a checkpoint, whose folder it is in.
type calibrationFile struct {
	Format     int    `json:"format"`     // of this file
	Checkpoint string `json:"checkpoint"` // the CRC-32C of the checkpoint's list of checksums
	// Precision is that of the encoder's products when it was fitted; "": float32.
	Precision string            `json:"precision,omitempty"`
	Heads     []HeadCalibration `json:"heads"`
	CRC32C    string            `json:"crc32c"` // of this object without indents, with "" here
}

// HeadCalibration is what was fitted to a head's logits.
type HeadCalibration struct {
	Task     string   `json:"task"`
	Head     string   `json:"head"`
	Labels   []string `json:"labels"`
	Examples int      `json:"examples"` // that it was fitted to, those of Sets apart
	// Temperature divides the logits of a head with one label; 0: not fitted.
	Temperature float64 `json:"temperature,omitempty"`
	// Sigmoids are those of each of many labels.
	Sigmoids []calibration.Sigmoid `json:"sigmoids,omitempty"`
	// Thresholds are the least probabilities at which each of many labels holds; empty: those of training.
	Thresholds []float32 `json:"thresholds,omitempty"`
	// MinProbability is the least probability of an answer, of a head with one label; 0: there is none.
	MinProbability float32             `json:"min_probability,omitempty"`
	Curve          []calibration.Point `json:"curve,omitempty"` // of abstention, for information
	Sets           *ConformalSets      `json:"sets,omitempty"`
}

// ConformalSets are sets of labels that have the right one with a probability of 1 - Alpha.
type ConformalSets struct {
	Alpha          float64 `json:"alpha"`
	MinProbability float32 `json:"min_probability"` // of the labels in a set
	Examples       int     `json:"examples"`
}

const (
	calibrationFormat = 1
	// maxCalibrationFile bounds the size in bytes of a calibration.json, which has numbers for each label.
	maxCalibrationFile = 256 << 20
)

// AsTrained reports whether probabilities are those without a calibration.
func (c HeadCalibration) AsTrained() bool {
	changed := func(s calibration.Sigmoid) bool { return s != calibration.Sigmoid{A: 1} }
	return (c.Temperature == 0 || c.Temperature == 1) && !slices.ContainsFunc(c.Sigmoids, changed)
}

// Fitted returns the calibration as the head takes it.
func (c HeadCalibration) Fitted() heads.Calibration {
	fitted := heads.Calibration{Thresholds: c.Thresholds, MinProbability: c.MinProbability}
	if c.Temperature > 0 {
		fitted.Scale = []float32{float32(1 / c.Temperature)}
	}
	for _, s := range c.Sigmoids {
		fitted.Scale, fitted.Offset = append(fitted.Scale, float32(s.A)), append(fitted.Offset, float32(s.B))
	}
	if c.Sets != nil {
		fitted.Sets, fitted.SetMinProbability = true, c.Sets.MinProbability
	}
	return fitted
}

func (c HeadCalibration) check() error {
	isProbability := func(p float32) bool { return p >= 0 && p <= 1 }
	switch n := len(c.Labels); {
	case c.Temperature != 0 &&
		!(c.Temperature >= calibration.LeastTemperature && c.Temperature <= calibration.MostTemperature):
		return fmt.Errorf("temperature is %v; want a number from %v to %v", c.Temperature,
			calibration.LeastTemperature, calibration.MostTemperature)
	case len(c.Sigmoids) != 0 && len(c.Sigmoids) != n || len(c.Thresholds) != 0 && len(c.Thresholds) != n:
		return fmt.Errorf("%d sigmoids and %d thresholds of %s; want one of each label, or none", len(c.Sigmoids),
			len(c.Thresholds), plugin.Count(n, "label"))
	case c.Temperature != 0 && len(c.Sigmoids) != 0:
		return errors.New("temperature and sigmoids; want one of them")
	case slices.ContainsFunc(c.Thresholds, func(p float32) bool { return !isProbability(p) }),
		!isProbability(c.MinProbability), c.Sets != nil && !isProbability(c.Sets.MinProbability):
		return errors.New("a threshold is no probability; want numbers from 0 to 1")
	}
	for _, s := range c.Sigmoids {
		if !(s.A >= calibration.LeastSlope && s.A <= calibration.MostSlope) || math.IsInf(s.B, 0) {
			return fmt.Errorf("a of a sigmoid is %v; want a number from %v to %v", s.A, calibration.LeastSlope,
				calibration.MostSlope)
		}
	}
	return nil
}

// sum returns the CRC-32C of the content, as CRC32C has it.
func (c calibrationFile) sum() string {
	c.CRC32C = ""
	text, err := json.Marshal(c)
	if err != nil {
		panic("checkpoint: " + err.Error()) // numbers are finite
	}
	return fmt.Sprintf("%08x", crc32.Checksum(text, files.CRC32C))
}

// ReadCalibration reads the calibration of the checkpoint in a folder, whose list of checksums has a CRC-32C. stale is
// true if it belongs to other weights. The error wraps fs.ErrNotExist if there is none.
func ReadCalibration(folder, sum string) (of []HeadCalibration, stale bool, err error) {
	var c calibrationFile
	path := filepath.Join(folder, runfolder.CalibrationFile)
	if err := files.ReadJSON(path, maxCalibrationFile, &c); err != nil {
		return nil, false, err
	}
	switch {
	case c.Format != calibrationFormat:
		return nil, false, fmt.Errorf("%s: format %d; this jenga reads %d", path, c.Format,
			calibrationFormat)
	case c.CRC32C != c.sum():
		return nil, false, fmt.Errorf("%s: its CRC-32C is %s, not %s as when it was written: the file "+
			"is damaged or was changed", path, c.sum(), c.CRC32C)
	}
	for _, head := range c.Heads {
		if err := head.check(); err != nil {
			return nil, false, fmt.Errorf("%s: task %q: head %q: %w", path, head.Task, head.Head, err)
		}
	}
	return c.Heads, c.Checkpoint != sum, nil
}

// copyCalibration copies the calibration of the checkpoint in a folder, if it has one that belongs to it, to another
// one with the same weights of the heads that rename keeps, by the names of their tasks.
func copyCalibration(ctx context.Context, from, to string, rename func(task string) (name string, kept bool)) error {
	sum, err := runfolder.CRC32C(ctx, filepath.Join(from, runfolder.ChecksumsFile))
	if err != nil {
		return err
	}
	all, stale, err := ReadCalibration(from, sum)
	if errors.Is(err, fs.ErrNotExist) || stale {
		return nil
	}
	if err != nil {
		return err
	}
	var kept []HeadCalibration
	for _, head := range all {
		if name, is := rename(head.Task); is {
			head.Task = name
			kept = append(kept, head)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	var was calibrationFile // whose heads are read
	err = files.ReadJSON(filepath.Join(from, runfolder.CalibrationFile), maxCalibrationFile, &was)
	if err == nil {
		sum, err = runfolder.CRC32C(ctx, filepath.Join(to, runfolder.ChecksumsFile))
	}
	if err != nil {
		return err
	}
	_, err = writeCalibration(to, calibrationFile{Checkpoint: sum, Precision: was.Precision, Heads: kept})
	return err
}

// WriteCalibration writes the calibration of heads into the checkpoint in a folder, whose list of checksums has a
// CRC-32C, in place of an earlier one, and returns the file. The run's folder must be locked.
func WriteCalibration(folder, sum string, precision nn.Precision, of []HeadCalibration) (path string, err error) {
	c := calibrationFile{Checkpoint: sum, Heads: of}
	if precision != nn.Float32 {
		c.Precision = precision.String()
	}
	return writeCalibration(folder, c)
}

func writeCalibration(folder string, c calibrationFile) (path string, err error) {
	c.Format = calibrationFormat
	c.CRC32C = c.sum()
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return "", err
	}
	path = filepath.Join(folder, runfolder.CalibrationFile)
	return path, runfolder.WriteFile(path, append(text, '\n'))
}
