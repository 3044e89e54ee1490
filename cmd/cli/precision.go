package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/nn"
)

// precisionFlag is the flag --precision, a name of an nn.Precision; "" is that of the encoder: int8 of a quantized one,
// else float32.
type precisionFlag string

// precisions are the names, in the order of their values.
var precisions = []string{nn.Float32.String(), nn.BFloat16.String(), nn.Int8.String()}

// flag adds the flag to a command. note follows its description.
func (f *precisionFlag) flag(cmd *cobra.Command, note string) {
	cmd.Flags().StringVar((*string)(f), "precision", "", "`PRECISION` of the encoder's products"+note+": "+
		strings.Join(precisions, ", ")+" (default float32, of a quantized run int8, which has no other)")
}

// check returns an error if the flag is not a name.
func (f precisionFlag) check() error {
	if f == "" {
		return nil
	}
	return checkOneOf("precision", string(f), precisions...)
}

// openRun opens a run whose encoder multiplies in the precision.
func (f precisionFlag) openRun(folder string) (*predict.Opened, error) {
	return f.openBy(predict.OpenRun, folder)
}

// openBy is openRun by a function that opens runs.
func (f precisionFlag) openBy(open func(string) (*predict.Opened, error), folder string) (*predict.Opened, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	opened, err := open(folder)
	if err != nil {
		return nil, err
	}
	if err := f.set(opened.SetPrecision); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// openEmbedder opens the encoder of a model or run, which multiplies in the precision.
func (f precisionFlag) openEmbedder(name string, maxLength int) (*predict.Embedder, error) {
	if err := f.check(); err != nil {
		return nil, err
	}
	embedder, err := predict.OpenEmbedder(name, maxLength)
	if err != nil {
		return nil, err
	}
	if err := f.set(embedder.SetPrecision); err != nil {
		embedder.Close()
		return nil, err
	}
	return embedder, nil
}

// lower returns the name of a precision, "" for float32.
func lower(precision nn.Precision) string {
	if precision == nn.Float32 {
		return ""
	}
	return precision.String()
}

// set passes the precision, if one is named, to a function that returns an error if it is not available.
func (f precisionFlag) set(to func(nn.Precision) error) error {
	if f == "" {
		return nil
	}
	if err := to(nn.Precision(slices.Index(precisions, string(f)))); err != nil {
		return fmt.Errorf("--precision %s: %w", f, err)
	}
	return nil
}
