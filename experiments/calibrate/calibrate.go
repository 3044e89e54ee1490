// Package calibrate fits the probabilities of a trained run, and the decisions that are made from them, to examples
// that it was not trained on, and measures both.
package calibrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/plugin"
)

// All fits all heads that have at least two examples, and reports to progress how many of their labels are done. It
// returns an error if there is none, if no head can have what the options want, or if ctx ends.
func All(ctx context.Context, all []HeadLogits, o Options, progress func(done, of int)) (
	fitted []checkpoint.HeadCalibration, warnings []plugin.Warning, err error) {
	w := work{ctx: ctx, progress: progress}
	for _, l := range all {
		w.of += 3 * len(l.Labels) // of all examples, and of each half
	}
	one, many := false, false
	for _, l := range all {
		if len(l.Examples) < 2 {
			warnings = append(warnings, plugin.Warn(plugin.Place{}, "task %q: head %q: %d labelled examples; it is "+
				"not calibrated", l.Task, l.Head, len(l.Examples)))
			continue
		}
		one, many = one || l.Calibrator.Exclusive(), many || !l.Calibrator.Exclusive()
		c, more := fit(&w, l, o)
		fitted, warnings = append(fitted, c), append(warnings, more...)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, ctx.Err()
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

// Reports measures the heads that were fitted by options on the logits of a split: one that they were not fitted to,
// or, crossFitted, the one that they were. It is as All otherwise.
func Reports(ctx context.Context, logits []HeadLogits, all []checkpoint.HeadCalibration, o Options, crossFitted bool,
	progress func(done, of int)) (reports []HeadReport, err error) {
	w := work{ctx: ctx, progress: progress}
	if crossFitted {
		for _, c := range all {
			w.of += 2 * len(c.Labels)
		}
	}
	for _, c := range all {
		at := slices.IndexFunc(logits, func(l HeadLogits) bool { return l.Task == c.Task && l.Head == c.Head })
		switch {
		case !w.more():
			return nil, ctx.Err()
		case at < 0 || len(logits[at].Examples) == 0:
		case crossFitted:
			reports = append(reports, crossReport(&w, logits[at], c, o))
		default:
			reports = append(reports, measure(&w, []fitted{{logits[at], c}}, logits[at], c, true))
		}
	}
	return reports, ctx.Err()
}

// work is what is done of the labels that are to be fitted.
type work struct {
	ctx      context.Context
	progress func(done, of int) // nil: none
	done, of int
}

// more reports whether the work goes on. It is called before each pass over examples, so that a bar shows the time.
func (w *work) more() bool {
	if w.progress != nil {
		w.progress(w.done, w.of)
	}
	return w.ctx.Err() == nil
}

// Options are what is fitted besides probabilities.
type Options struct {
	F1 bool // thresholds of many labels, by the best F1
	// AtPrecision is the precision wanted of the answers of one label, and of each of many labels; 0: none is.
	AtPrecision float64
	Abstain     float64 // the fraction of examples without an answer, of heads with one label; 0: all have one
	Alpha       float64 // sets have the right label with a probability of 1 - Alpha; 0: there are none
}

// enough is how many examples must have a label, and how many not, so that it has a sigmoid and a threshold of its own.
const enough = 50

// few is the number of examples below which a fit is little better than none.
const few = 50

// Changed lists the heads that answer otherwise than without what options have fitted.
func Changed(all []checkpoint.HeadCalibration, o Options) []checkpoint.HeadCalibration {
	return slices.DeleteFunc(slices.Clone(all), func(c checkpoint.HeadCalibration) bool {
		thresholds := len(c.Sigmoids) > 0 && (o.F1 || o.AtPrecision > 0)
		return c.AsTrained() && c.MinProbability == 0 && c.Sets == nil && !thresholds
	})
}

// fit fits a head to examples. Sets, where there are any, are those of a half of them, and all else is fitted to the
// other half, or to all. There must be at least two examples. Warnings say what the examples do not suffice for.
func fit(w *work, l HeadLogits, o Options) (c checkpoint.HeadCalibration, warnings []plugin.Warning) {
	ofSets := HeadLogits{}
	if o.Alpha > 0 && l.Calibrator.Exclusive() {
		first, second := calibration.Halves(len(l.Examples))
		l, ofSets = l.only(first), l.only(second)
	}
	c, texts := fitAll(w, l, o, fitWhereItHelps)
	if n := len(ofSets.Examples); n > 0 && w.more() {
		p := ofSets.probabilities(c.Fitted())
		least, ok := calibration.SetThreshold(calibration.Golds(p, ofSets.gold()), o.Alpha)
		if !ok {
			texts = append(texts, fmt.Sprintf("%d examples are too few for sets of %v; all labels are in each",
				n, 1-o.Alpha))
		}
		c.Sets = &checkpoint.ConformalSets{Alpha: o.Alpha, MinProbability: least, Examples: n}
	}
	for _, text := range texts {
		warnings = append(warnings, plugin.Warn(plugin.Place{}, "task %q: head %q: %s", l.Task, l.Head, text))
	}
	return c, warnings
}

// fitAll fits a head by a scale.
func fitAll(w *work, l HeadLogits, o Options, by scale) (c checkpoint.HeadCalibration, warnings []string) {
	n := len(l.Examples)
	c = checkpoint.HeadCalibration{Task: l.Task, Head: l.Head, Labels: l.Labels, Examples: n}
	if n < few {
		warnings = append(warnings, fmt.Sprintf("%s to fit it to; want at least %d", plugin.Count(n, "example"), few))
	}
	var missing []string
	for label, holding := range l.holding() {
		if holding == 0 {
			missing = append(missing, strconv.Quote(l.Labels[label]))
		}
	}
	if len(missing) > 0 {
		warnings = append(warnings, "no example to fit it to has "+listed(missing))
	}
	if warnings = append(warnings, by(w, &c, l)...); !w.more() {
		return c, warnings
	}
	if l.Calibrator.Exclusive() {
		return c, append(warnings, decideOne(&c, l, o)...)
	}
	return c, append(warnings, decideMany(&c, l, o)...)
}

// scale sets by what the probabilities of a head are computed from its logits. It returns warnings.
type scale func(w *work, c *checkpoint.HeadCalibration, l HeadLogits) (warnings []string)

// standardErrors is how many standard errors the NLL of held-out halves has to fall by. Of 150 heads whose
// probabilities are right, 1 lets at most 3 fits pass, where 0 lets a third pass; of as many whose logits are twice too
// large, 106 with 60 examples, and all with 300. With 2 it would be 13 of them with 60 examples. The simulation is
// TestFitsThatAreNotNeeded.
const standardErrors = 1

// fitWhereItHelps is fitScale where what is fitted to each half of the examples lowers the NLL of the other by more
// than chance may, else asTrained.
func fitWhereItHelps(w *work, c *checkpoint.HeadCalibration, l HeadLogits) (warnings []string) {
	warnings = fitScale(w, c, l)
	if c.AsTrained() || !w.more() {
		w.done += 2 * len(l.Labels)
		return warnings
	}
	lower, deviation, n := gain(halves(w, l, Options{}, fitScale))
	if n == 0 || lower > standardErrors*deviation || !w.more() {
		return warnings
	}
	asTrained(w, c, l)
	return append(warnings, fmt.Sprintf("what is fitted to half of the examples does not lower the NLL of the other "+
		"half by more than chance may, by %.4f with a standard error of %.4f: the probabilities stay as they are",
		lower, deviation))
}

// gain returns by how much the fits of parts lower the NLL of their examples, a mean over the n that have one, and the
// standard error of that mean. The two NLLs of an example are paired.
func gain(parts []fitted) (mean, deviation float64, n int) {
	var lower []float64
	for _, part := range parts {
		one := part.Calibrator.Exclusive()
		for _, e := range part.Examples {
			nll := func(c heads.Calibration) *float64 {
				p := [][]float32{part.Calibrator.Probabilities(e.Logits, c)}
				return calibration.Measure(p, [][]int{e.Gold}, one).NLL
			}
			if before, after := nll(heads.Calibration{}), nll(part.by.Fitted()); before != nil {
				lower = append(lower, *before-*after)
			}
		}
	}
	if n = len(lower); n == 0 {
		return 0, 0, 0
	}
	for _, d := range lower {
		mean += d / float64(n)
	}
	squares := 0.0
	for _, d := range lower {
		squares += (d - mean) * (d - mean)
	}
	return mean, math.Sqrt(squares / float64(max(1, n-1)) / float64(n)), n
}

// asTrained leaves the probabilities as they are.
func asTrained(_ *work, c *checkpoint.HeadCalibration, l HeadLogits) []string {
	if l.Calibrator.Exclusive() {
		c.Temperature = 1
	} else {
		c.Sigmoids = slices.Repeat([]calibration.Sigmoid{{A: 1}}, len(l.Labels))
	}
	return nil
}

// fitScale fits a temperature or sigmoids.
func fitScale(w *work, c *checkpoint.HeadCalibration, l HeadLogits) (warnings []string) {
	if l.Calibrator.Exclusive() {
		return fitTemperature(w, c, l)
	}
	c.Sigmoids = make([]calibration.Sigmoid, len(l.Labels))
	for _, labels := range groupLabels(l) {
		s := calibration.Platt(l.Examples, labels, w.more)
		w.done += len(labels)
		for _, label := range labels {
			c.Sigmoids[label] = s
		}
	}
	return nil
}

func listed(names []string) string {
	const most = 5
	if len(names) > most {
		return strings.Join(names[:most], ", ") + " and " + plugin.Count(len(names)-most, "other label")
	}
	return strings.Join(names, ", ")
}

func fitTemperature(w *work, c *checkpoint.HeadCalibration, l HeadLogits) (warnings []string) {
	c.Temperature = calibration.Temperature(l.Examples, w.more)
	w.done += len(l.Labels)
	if c.Temperature <= calibration.LeastTemperature*1.001 || c.Temperature >= calibration.MostTemperature*0.999 {
		right := "right"
		if c.Temperature > 1 {
			right = "wrong"
		}
		warnings = append(warnings, fmt.Sprintf("the examples determine no temperature, as where all are %s: the best "+
			"is at the bound of %.3g; it stays 1", right, c.Temperature))
		c.Temperature = 1
	}
	return warnings
}

// decideOne fits the least probability of an answer, of a head with one label.
func decideOne(c *checkpoint.HeadCalibration, l HeadLogits, o Options) (warnings []string) {
	tops := calibration.Tops(l.probabilities(c.Fitted()), l.gold())
	switch {
	case o.Abstain > 0:
		if c.MinProbability = calibration.Abstention(tops, o.Abstain); c.MinProbability == 0 {
			warnings = append(warnings, fmt.Sprintf("%s %s no probability that leaves %v of them without an answer; "+
				"all texts have one", plugin.Count(len(tops), "example"), plugin.Agree(len(tops), "has", "have"),
				o.Abstain))
		}
	case o.AtPrecision > 0:
		least, ok := calibration.AtPrecision(tops, o.AtPrecision)
		if c.MinProbability = least; !ok {
			warnings = append(warnings, unreached(o.AtPrecision, ""))
		}
	}
	c.Curve = curve(tops)
	return warnings
}

func unreached(precision float64, label string) string {
	return fmt.Sprintf("no threshold has a precision of %v%s; the one of the best precision is used", precision, label)
}

var abstentions = []float64{0, 0.05, 0.1, 0.2, 0.3, 0.5}

// curve returns coverage and accuracy where more and more examples have no answer, once for each probability: of few
// examples several fractions have the same.
func curve(tops []calibration.Decision) []calibration.Point {
	var points []calibration.Point
	for _, fraction := range abstentions {
		least := calibration.Abstention(tops, fraction)
		if n := len(points); n == 0 || points[n-1].MinProbability != least {
			points = append(points, calibration.Answered(tops, least))
		}
	}
	return points
}

// decideMany fits the thresholds of a head with many labels.
func decideMany(c *checkpoint.HeadCalibration, l HeadLogits, o Options) (warnings []string) {
	if c.Thresholds = slices.Clone(l.Thresholds); !c.AsTrained() {
		c.Thresholds = mapped(l, *c)
	}
	if !o.F1 && o.AtPrecision == 0 {
		return nil
	}
	p := l.probabilities(c.Fitted())
	for _, labels := range groupLabels(l) {
		var decisions []calibration.Decision
		for i, e := range l.Examples {
			for _, label := range labels {
				holds := slices.Contains(e.Gold, label)
				decisions = append(decisions, calibration.Decision{Probability: p[i][label], Holds: holds})
			}
		}
		threshold, ok := calibration.BestF1(decisions)
		if o.AtPrecision > 0 {
			if threshold, ok = calibration.AtPrecision(decisions, o.AtPrecision); !ok {
				var names []string
				for _, label := range labels {
					names = append(names, strconv.Quote(l.Labels[label]))
				}
				warnings, ok = append(warnings, unreached(o.AtPrecision, " for "+listed(names))), true
			}
		}
		for _, label := range labels {
			if ok {
				c.Thresholds[label] = threshold
			}
		}
	}
	return warnings
}

// mapped returns the thresholds of training for the probabilities of c: the same logits have them, so that an example
// of one window has the same labels.
func mapped(l HeadLogits, c checkpoint.HeadCalibration) []float32 {
	logits := make([]float32, len(l.Thresholds))
	for i, t := range l.Thresholds {
		logits[i] = float32(math.Log(float64(t)) - math.Log1p(-float64(t))) // infinite for 0 and 1
	}
	return l.Calibrator.Probabilities([][]float32{logits}, c.Fitted())
}

// groupLabels divides the labels: each that has enough examples is alone, and the others share what is fitted.
func groupLabels(l HeadLogits) (groups [][]int) {
	var others []int
	for label, n := range l.holding() {
		if n >= enough && len(l.Examples)-n >= enough {
			groups = append(groups, []int{label})
		} else {
			others = append(others, label)
		}
	}
	if others != nil {
		groups = append(groups, others)
	}
	return groups
}
