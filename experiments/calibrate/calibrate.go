package calibrate

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/predict"
)

// All fits all heads that have at least two examples. It returns an error if there is none, or if no head can have what
// the options want.
func All(all []predict.HeadLogits, o Options) (fitted []predict.HeadCalibration, warnings []string, err error) {
	one, many := false, false
	for _, l := range all {
		if len(l.Examples) < 2 {
			warnings = append(warnings, fmt.Sprintf("warning: task %q: head %q: %d labelled examples; it is not "+
				"calibrated", l.Task, l.Head, len(l.Examples)))
			continue
		}
		one, many = one || l.Calibrator.Exclusive(), many || !l.Calibrator.Exclusive()
		c, more := fit(l, o)
		fitted, warnings = append(fitted, c), append(warnings, more...)
	}
	switch {
	case len(fitted) == 0 && len(all) > 0:
		return nil, nil, fmt.Errorf("no head has two labelled examples to be calibrated by; want at least %d", few)
	case len(fitted) == 0:
		return nil, nil, errors.New("no head predicts labels with probabilities for labelled examples; other outputs " +
			"cannot be calibrated")
	case !one && (o.Abstain > 0 || o.Alpha > 0):
		return nil, nil, errors.New("no head predicts one label; abstention and sets are for those")
	case !many && o.F1:
		return nil, nil, errors.New("no head predicts several labels; thresholds by F1 are for those")
	}
	return fitted, warnings, nil
}

// Reports measures the heads that were fitted on examples that they were not fitted to.
func Reports(unseen []predict.HeadLogits, all []predict.HeadCalibration) []HeadReport {
	return reports(unseen, all, report)
}

// CrossReports measures the heads that were fitted by options, on the examples that they were fitted to.
func CrossReports(dev []predict.HeadLogits, all []predict.HeadCalibration, o Options) []HeadReport {
	return reports(dev, all, func(l predict.HeadLogits, c predict.HeadCalibration) HeadReport {
		return crossReport(l, c, o)
	})
}

func reports(logits []predict.HeadLogits, all []predict.HeadCalibration,
	of func(predict.HeadLogits, predict.HeadCalibration) HeadReport) (reports []HeadReport) {
	for _, c := range all {
		at := slices.IndexFunc(logits, func(l predict.HeadLogits) bool { return l.Task == c.Task && l.Head == c.Head })
		if at >= 0 && len(logits[at].Examples) > 0 {
			reports = append(reports, of(logits[at], c))
		}
	}
	return reports
}
