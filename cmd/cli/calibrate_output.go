package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/calibrate"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/plugin"
)

// calibrationLine is the JSON of jenga calibrate.
type calibrationLine struct {
	Split    string `json:"split"`     // that is measured: a split, or the files that are read in its place
	FittedTo string `json:"fitted_to"` // the same of what was fitted to
	// CrossFitted says that each half of the split was measured by what was fitted to the other.
	CrossFitted bool                      `json:"cross_fitted"`
	File        string                    `json:"file"`
	Fitted      []predict.HeadCalibration `json:"fitted"`
	Heads       []calibrate.HeadReport    `json:"heads"`
}

// write writes the report as text.
func (l calibrationLine) write(w io.Writer) error {
	var text strings.Builder
	how := "by what was fitted to " + l.FittedTo
	if l.CrossFitted {
		how = "each half by what was fitted to the other"
	}
	fmt.Fprintf(&text, "%s, %s; ECE in %%:\n", l.Split, how)
	rows := [][]string{{"task", "head", "examples", "ECE", "after", "Brier", "after", "NLL", "after"}}
	for _, r := range l.Heads {
		rows = append(rows, []string{r.Task, r.Head, fmt.Sprint(r.Examples),
			hundredths(r.Before.ECE), hundredths(r.After.ECE), fmt.Sprintf("%.4f", r.Before.Brier),
			fmt.Sprintf("%.4f", r.After.Brier), nllText(r.Before.NLL), nllText(r.After.NLL)})
	}
	writeLines(&text, aligned(rows))
	for _, c := range l.Fitted {
		fmt.Fprintf(&text, "\n%s, %s: %s, fitted to %s\n", c.Task, c.Head, scaling(c),
			plugin.Count(c.Examples, "example"))
		of := func(r calibrate.HeadReport) bool { return r.Task == c.Task && r.Head == c.Head }
		if at := slices.IndexFunc(l.Heads, of); at >= 0 {
			writeDecisions(&text, c, l.Heads[at])
		}
	}
	fmt.Fprintf(&text, "\nwritten to %s\n", l.File)
	_, err := io.WriteString(w, text.String())
	return err
}

// nllText formats a negative log likelihood, - if there is none.
func nllText(nll *float64) string {
	if nll == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *nll)
}

// scaling describes what was fitted to the logits of a head.
func scaling(c predict.HeadCalibration) string {
	if c.Temperature > 0 {
		return fmt.Sprintf("temperature %.4g", c.Temperature)
	}
	different := map[predict.LabelSigmoid]bool{}
	for _, s := range c.Sigmoids {
		different[s] = true
	}
	if len(different) == 1 {
		return fmt.Sprintf("sigmoid of %.4g·z %+.4g", c.Sigmoids[0].A, c.Sigmoids[0].B)
	}
	return fmt.Sprintf("%d sigmoids of %d labels", len(different), len(c.Sigmoids))
}

// writeDecisions writes what a head's report says of its answers.
func writeDecisions(text *strings.Builder, c predict.HeadCalibration, r calibrate.HeadReport) {
	if before, after := r.LabelsBefore, r.LabelsAfter; before != nil {
		rows := [][]string{{"labels, in %", "precision", "recall", "f1_micro", "f1_macro"}}
		for _, f := range []struct {
			name string
			*calibrate.LabelFigures
		}{{"before", before}, {"after", after}} {
			rows = append(rows, []string{f.name, hundredths(f.Precision), hundredths(f.Recall), hundredths(f.F1),
				hundredths(f.MacroF1)})
		}
		writeLines(text, aligned(rows))
		return
	}
	rows := [][]string{{"answered in %", "from probability", "accuracy in %"}}
	for _, p := range r.Curve {
		rows = append(rows, pointRow(p))
	}
	writeLines(text, aligned(rows))
	if p := r.Answered; p != nil {
		row := pointRow(*p)
		fmt.Fprintf(text, "below probability %s there is no answer\nby the fit reported here, %s %% are answered, "+
			"%s %% of them right\n", row[1], row[0], row[2])
	}
	if s := r.Sets; s != nil {
		fmt.Fprintf(text, "sets of probability %.4g from %s: ", 1-s.Alpha,
			plugin.Count(c.Sets.Examples, "example"))
		if s.Coverage != nil {
			fmt.Fprintf(text, "%s %% have the right label, ", inPercent(s.Coverage))
		}
		fmt.Fprintf(text, "%.2f labels each, %s %% have none\n", s.Size, hundredths(s.Empty))
		fmt.Fprintf(text, "over %d random halves %s %% have it, standard deviation %s\n", calibrate.RandomHalves,
			hundredths(s.Halves), hundredths(s.Deviation))
	}
}

// pointRow formats a point of a curve: coverage, least probability, accuracy.
func pointRow(p predict.CurvePoint) []string {
	return []string{hundredths(p.Coverage), fmt.Sprintf("%.4f", p.MinProbability), inPercent(p.Accuracy)}
}

// hundredths writes a fraction in per cent, with two decimals.
func hundredths(fraction float64) string { return fmt.Sprintf("%.2f", 100*fraction) }
