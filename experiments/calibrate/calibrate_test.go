package calibrate

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// oneLabel draws examples of a head with one label, whose logits are those of the right probabilities times a factor.
func oneLabel(n int, factor float64, seed uint64) HeadLogits {
	random := rand.New(rand.NewPCG(seed, 1))
	l := HeadLogits{Task: "topic", Head: "topic", Labels: []string{"a", "b", "c"},
		Calibrator: &heads.OneClass{}}
	for range n {
		z, p, sum := make([]float32, 3), make([]float64, 3), 0.0
		for c := range z {
			logit := 2 * random.NormFloat64()
			z[c], p[c] = float32(factor*logit), math.Exp(logit)
			sum += p[c]
		}
		gold, at := 0, random.Float64()*sum
		for at -= p[0]; at > 0 && gold < 2; at -= p[gold] {
			gold++
		}
		l.Examples = append(l.Examples, calibration.Example{Logits: [][]float32{z}, Gold: []int{gold}})
	}
	return l
}

// manyLabels draws examples of a head with two labels, a frequent and a rare one, whose logits are a·z + b of the right
// ones z.
func manyLabels(n int, a, b float64, seed uint64) HeadLogits {
	random := rand.New(rand.NewPCG(seed, 2))
	l := HeadLogits{Task: "topics", Head: "topics", Labels: []string{"often", "rare"},
		Calibrator: &heads.ManyClasses{}, Thresholds: []float32{0.5, 0.5}}
	for range n {
		e := calibration.Example{Logits: [][]float32{nil}, Gold: []int{}}
		for c, mean := range []float64{-1, -4} {
			z := mean + 2*random.NormFloat64()
			e.Logits[0] = append(e.Logits[0], float32(a*z+b))
			if random.Float64() < 1/(1+math.Exp(-z)) {
				e.Gold = append(e.Gold, c)
			}
		}
		l.Examples = append(l.Examples, e)
	}
	return l
}

func TestOneLabelIsCalibrated(t *testing.T) {
	dev, unseen := oneLabel(2000, 2, 1), oneLabel(4000, 2, 2)
	o := Options{Abstain: 0.2, Alpha: 0.1}
	c, warnings := fit(quiet(), dev, o)
	if len(warnings) > 0 || math.Abs(c.Temperature-2) > 0.15 || c.Examples != 1000 || c.Sets.Examples != 1000 {
		t.Fatalf("%+v, %q; want a temperature of about 2 from one half, sets from the other", c, warnings)
	}
	for name, r := range map[string]HeadReport{"unseen": report(unseen, c), "cross": crossReport(quiet(), dev, c, o)} {
		// of 4,000 or 2,000 examples in 15 bins chance alone makes an ECE of about 0.02
		if r.Before.ECE < 0.06 || r.After.ECE > 0.03 || *r.After.NLL >= *r.Before.NLL ||
			r.After.Brier >= r.Before.Brier {
			t.Errorf("%s: before %+v, after %+v; want all lower after", name, r.Before, r.After)
		}
		if math.Abs(r.Answered.Coverage-0.8) > 0.03 || *r.Answered.Accuracy <= *r.Curve[0].Accuracy {
			t.Errorf("%s: %v are answered, %v of them right, of all %v; want 0.8 and more right", name,
				r.Answered.Coverage, *r.Answered.Accuracy, *r.Curve[0].Accuracy)
		}
		if math.Abs(r.Sets.Halves-0.9) > 0.01 || (r.Sets.Coverage == nil) != (name == "cross") || r.Sets.Size < 0.9 {
			t.Errorf("%s: %+v; want a coverage of 0.9", name, r.Sets)
		}
	}
	if coverage := *report(unseen, c).Sets.Coverage; math.Abs(coverage-0.9) > 0.03 {
		t.Errorf("coverage %v on unseen examples, want 0.9", coverage)
	}
}

// What is fitted to one half must not depend on the other.
func TestSetsAndTemperatureAreOfDifferentExamples(t *testing.T) {
	dev := oneLabel(200, 2, 3)
	before, _ := fit(quiet(), dev, Options{Alpha: 0.1, Abstain: 0.1})
	first, second := calibration.Halves(200)
	change := func(of []int) checkpoint.HeadCalibration {
		other := dev
		other.Examples = slices.Clone(dev.Examples)
		for _, i := range of {
			other.Examples[i].Gold = []int{0}
		}
		c, _ := fit(quiet(), other, Options{Alpha: 0.1, Abstain: 0.1})
		return c
	}
	c := change(second)
	if c.Temperature != before.Temperature || c.MinProbability != before.MinProbability || *c.Sets == *before.Sets {
		t.Errorf("other labels of the half for sets: %+v, %+v; want other sets alone", c, before)
	}
	if change(first).Temperature == before.Temperature {
		t.Error("other labels of the half for the temperature do not change it")
	}
}

func TestPrecisionIsReached(t *testing.T) {
	dev := oneLabel(3000, 1, 4)
	c, _ := fit(quiet(), dev, Options{AtPrecision: 0.9})
	answered := report(dev, c).Answered
	if answered == nil || *answered.Accuracy < 0.9 || answered.Coverage < 0.3 || c.MinProbability == 0 {
		t.Errorf("least probability %v: %+v; want a precision of 0.9", c.MinProbability, answered)
	}
	many := manyLabels(3000, 1.7, 3, 5)
	fitted, warnings := fit(quiet(), many, Options{AtPrecision: 0.8})
	if after := report(many, fitted).LabelsAfter; after.Precision < 0.8 || after.Recall < 0.1 || len(warnings) > 0 {
		t.Errorf("%+v, %q; want a precision of 0.8", after, warnings)
	}
}

func TestManyLabelsAreCalibrated(t *testing.T) {
	dev, unseen := manyLabels(10000, 1.7, 3, 6), manyLabels(4000, 1.7, 3, 7)
	c, warnings := fit(quiet(), dev, Options{F1: true})
	if len(warnings) > 0 || c.Sigmoids[0] == c.Sigmoids[1] {
		t.Fatalf("%+v, %q; want a sigmoid for each label", c, warnings)
	}
	for l, s := range c.Sigmoids { // the inverse of 1.7·z + 3
		if math.Abs(s.A-1/1.7) > 0.06 || math.Abs(s.B+3/1.7) > 0.25 {
			t.Errorf("label %d: %+v, want about %v and %v", l, s, 1/1.7, -3/1.7)
		}
	}
	for name, r := range map[string]HeadReport{
		"unseen": report(unseen, c), "cross": crossReport(quiet(), dev, c, Options{F1: true}),
	} {
		if r.Before.ECE < 0.05 || r.After.ECE > 0.02 || r.After.Brier >= r.Before.Brier ||
			*r.After.NLL >= *r.Before.NLL {
			t.Errorf("%s: before %+v, after %+v; want all lower after", name, r.Before, r.After)
		}
		if r.LabelsAfter.F1 <= r.LabelsBefore.F1 || r.LabelsAfter.MacroF1 <= r.LabelsBefore.MacroF1 {
			t.Errorf("%s: F1 %+v, before %+v; want more", name, r.LabelsAfter, r.LabelsBefore)
		}
	}
}

// Without thresholds to fit, those of training are those of the same logits: the labels of an example of one window
// stay.
func TestThresholdsOfTrainingAreKept(t *testing.T) {
	dev := manyLabels(500, 0.5, 2, 8)
	dev.Thresholds = []float32{0.3, 0.9}
	c, _ := fit(quiet(), dev, Options{})
	r := report(dev, c)
	if *r.LabelsBefore != *r.LabelsAfter || c.Thresholds[0] == 0.3 {
		t.Errorf("labels %+v, before %+v, by thresholds %v; want the same", r.LabelsAfter, r.LabelsBefore, c.Thresholds)
	}
	dev.Thresholds = []float32{0, 1}
	if c, _ = fit(quiet(), dev, Options{}); c.Thresholds[0] != 0 || c.Thresholds[1] != 1 {
		t.Errorf("thresholds %v, want 0 and 1", c.Thresholds)
	}
}

// Of three texts a holds and is right in the first, b holds in two and is right in one, in the third a label is right
// that the head does not have, and c does not occur: it is not in the mean over labels, as in scikit-learn's f1_score
// without a list of labels.
func TestLabelFigures(t *testing.T) {
	l := HeadLogits{Labels: []string{"a", "b", "c"}, Unknown: []string{"d"}}
	thresholds := slices.Repeat([][]float32{{0.5, 0.5, 0.5}}, 3)
	got := figuresOf(l, [][]float32{{1, 0.5, 0}, {0.2, 0.5, 0}, {0, 0, 0}}, thresholds, [][]int{{0, 1}, {}, {-1}})
	for name, figure := range map[string][2]float64{
		"precision": {got.Precision, 2. / 3}, "recall": {got.Recall, 2. / 3}, "f1_micro": {got.F1, 2. / 3},
		"f1_macro": {got.MacroF1, (1 + 2./3) / 3},
	} {
		if math.Abs(figure[0]-figure[1]) > 1e-9 {
			t.Errorf("%s %v, want %v", name, figure[0], figure[1])
		}
	}
}

func TestRareLabelsShare(t *testing.T) {
	dev := manyLabels(200, 1, 0, 9) // the rare label holds about 20 times
	if groups := groupLabels(dev); len(groups) != 2 || !slices.Equal(groups[1], []int{1}) {
		t.Errorf("groups %v, want the frequent label alone", groups)
	}
	c, _ := fit(quiet(), manyLabels(60, 1, 0, 9), Options{})
	if c.Sigmoids[0] != c.Sigmoids[1] {
		t.Errorf("of 60 examples: %+v, want one sigmoid", c.Sigmoids)
	}
}

func TestWarnings(t *testing.T) {
	right := oneLabel(60, 1, 10)
	for i, e := range right.Examples {
		right.Examples[i].Gold = []int{floats.Largest(e.Logits[0])}
	}
	wrong := manyLabels(60, 1, 0, 11)
	for i := range wrong.Examples {
		wrong.Examples[i].Gold = []int{}
	}
	unlabelled := oneLabel(60, 1, 12)
	for i := range unlabelled.Examples {
		unlabelled.Examples[i].Gold = []int{-1}
	}
	for _, c := range []struct {
		l    HeadLogits
		o    Options
		want []string
	}{
		{oneLabel(8, 1, 10), Options{Alpha: 0.1}, []string{"4 examples to fit it to; want at least 50",
			"4 examples are too few for sets of 0.9"}},
		{oneLabel(6, 1, 10), Options{Alpha: 0.1, Abstain: 0.2}, []string{"3 examples have no probability that leaves " +
			"0.2 of them without an answer; all texts have one"}},
		{right, Options{}, []string{"the examples determine no temperature, as where all are " +
			"right: the best is at the bound of 0.1; it stays 1"}},
		{wrong, Options{AtPrecision: 0.9}, []string{`no example to fit it to has "often", "rare"`,
			`no threshold has a precision of 0.9 for "often", "rare"`}},
		{unlabelled, Options{AtPrecision: 0.9}, []string{`has "a", "b", "c"`, "no threshold has a precision of 0.9;"}},
	} {
		fitted, warnings := fit(quiet(), c.l, c.o)
		text := strings.Join(plugin.Lines(warnings), "\n")
		for _, want := range c.want {
			if !strings.Contains(text, want) || !strings.Contains(text, `warning: task "topic`) {
				t.Errorf("warnings %s\nwant %s", text, want)
			}
		}
		nll := report(c.l, fitted).After.NLL
		if known := !slices.Equal(c.l.Examples[0].Gold, []int{-1}); (nll != nil) != known ||
			known && (math.IsNaN(*nll) || math.IsInf(*nll, 0)) {
			t.Errorf("NLL %v, want one that is finite: %v", nll, known)
		}
	}
}

// What is fitted to few examples may fit others worse: then probabilities, and thresholds, are those of before.
func TestWhatDoesNotHelpIsNotFitted(t *testing.T) {
	for _, c := range []struct {
		l     HeadLogits
		helps bool
	}{
		{oneLabel(2000, 2, 1), true}, {oneLabel(60, 1, 11), false},
		{manyLabels(2000, 1.7, 3, 6), true}, {manyLabels(60, 1, 0, 15), false},
	} {
		fitted, warnings, err := All(t.Context(), []HeadLogits{c.l}, Options{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		cross := measure(quiet(), halves(quiet(), c.l, Options{}, fitScale), c.l, fitted[0], false)
		if helps := *cross.After.NLL < *cross.Before.NLL; helps != c.helps {
			t.Fatalf("%s, %d examples: NLL %v, %v without; the test wants other data", c.l.Task, len(c.l.Examples),
				*cross.After.NLL, *cross.Before.NLL)
		}
		text := strings.Join(plugin.Lines(warnings), "")
		if fitted[0].AsTrained() == c.helps || strings.Contains(text, "does not lower the NLL") == c.helps {
			t.Errorf("%s, %d examples: %+v, %q; want it fitted: %v", c.l.Task, len(c.l.Examples), fitted, text, c.helps)
		}
		if (len(Changed(fitted, Options{})) == 1) != c.helps {
			t.Errorf("%s, %d examples: what is written is not what has changed", c.l.Task, len(c.l.Examples))
		}
		reports, err := Reports(t.Context(), []HeadLogits{c.l}, fitted, Options{}, true, nil)
		if err != nil || !c.helps && (*reports[0].After.NLL != *reports[0].Before.NLL ||
			!slices.Equal(fitted[0].Thresholds, c.l.Thresholds)) {
			t.Errorf("%s, %d examples: %+v of %+v, %v; want the same as before", c.l.Task, len(c.l.Examples),
				reports[0], fitted, err)
		}
	}

	// decisions are kept all the same
	one, many := Options{Abstain: 0.1}, Options{F1: true}
	few, _ := fit(quiet(), oneLabel(60, 1, 11), one)
	rare, _ := fit(quiet(), manyLabels(60, 1, 0, 15), many)
	if len(Changed([]checkpoint.HeadCalibration{few}, one)) != 1 ||
		len(Changed([]checkpoint.HeadCalibration{rare}, many)) != 1 || !few.AsTrained() || !rare.AsTrained() {
		t.Errorf("%+v, %+v; want them written for what is decided", few, rare)
	}
}

// Of 150 samples each: of probabilities that are right nearly none is fitted, though a third would lower the NLL of
// held-out halves; of logits that are twice too large most are, of 60 examples, and all of more.
func TestFitsThatAreNotNeeded(t *testing.T) {
	const samples = 150
	for _, c := range []struct{ n, most, least int }{{60, 6, 90}, {300, 6, samples}, {2000, 6, samples}} {
		if testing.Short() && c.n > 300 {
			continue
		}
		fits := func(factor float64) (kept int) {
			for seed := range uint64(samples) {
				fitted, _ := fit(quiet(), oneLabel(c.n, factor, 1000+seed), Options{})
				if !fitted.AsTrained() {
					kept++
				}
			}
			return kept
		}
		if kept := fits(1); kept > c.most {
			t.Errorf("%d examples, the right probabilities: %d of %d are fitted, want at most %d", c.n, kept, samples,
				c.most)
		}
		if kept := fits(2); kept < c.least {
			t.Errorf("%d examples, a temperature of 2: %d of %d are fitted, want %d", c.n, kept, samples, c.least)
		}
	}
}

// The thresholds of training stay the same numbers where the probabilities do.
func TestThresholdsThatStayAreTheSameNumbers(t *testing.T) {
	l := manyLabels(60, 1, 0, 15)
	for i := range 1000 {
		l.Thresholds = []float32{float32(i) / 1000, 1 - float32(i)/7919}
		c := checkpoint.HeadCalibration{}
		asTrained(quiet(), &c, l)
		decideMany(&c, l, Options{})
		if !slices.Equal(c.Thresholds, l.Thresholds) {
			t.Fatalf("%v, want %v", c.Thresholds, l.Thresholds)
		}
		if &c.Thresholds[0] == &l.Thresholds[0] {
			t.Fatal("the thresholds are those of the head itself, want a copy")
		}
	}
}

// Of 8 examples up to 0, 0, 0, 1, 2 and 4 have no answer.
func TestACurveHasEachProbabilityOnce(t *testing.T) {
	if c, _ := fit(quiet(), oneLabel(8, 1, 10), Options{}); len(c.Curve) != 4 {
		t.Errorf("curve %+v, want 4 points", c.Curve)
	}
}

func TestWhatCannotBeFittedIsAnError(t *testing.T) {
	one, many := oneLabel(100, 1, 13), manyLabels(100, 1, 0, 14)
	empty := one
	empty.Examples = nil
	for _, c := range []struct {
		all  []HeadLogits
		o    Options
		want string
	}{
		{nil, Options{}, "no head predicts labels"},
		{[]HeadLogits{empty}, Options{},
			"no head has two labelled examples to be calibrated by; want at least 50"},
		{[]HeadLogits{many}, Options{Alpha: 0.1}, "no head predicts one label"},
		{[]HeadLogits{one}, Options{F1: true}, "no head predicts several labels"},
		{[]HeadLogits{one, many, empty}, Options{F1: true, Alpha: 0.1}, ""},
	} {
		fitted, warnings, err := All(t.Context(), c.all, c.o, nil)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
		text := strings.Join(plugin.Lines(warnings), "")
		if err == nil && (len(fitted) != 2 || !strings.Contains(text, "it is not calibrated")) {
			t.Errorf("%d heads are fitted, %q; want two, and a warning", len(fitted), warnings)
		}
	}
}

func TestALogitThatIsNotFiniteIsAnErrorWithItsPlace(t *testing.T) {
	folder := trained.Run(t, sample.Small(t, ""), filepath.Join(t.TempDir(), "run"), "training.num_epochs=1")
	run, err := predict.OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	logits, err := Logits(t.Context(), run, config.Dev, nil)
	if err != nil || len(logits) != 1 || len(logits[0].Examples) != 8 || len(logits[0].Examples[0].Logits[0]) != 2 {
		t.Fatalf("%+v, %v; want the logits of team for 8 examples", logits, err)
	}
	nan := float32(0)
	for _, w := range run.Model.Params.In("heads").In("team").All() {
		w.Data[0] = nan / nan
		w.Changed()
	}
	_, err = Logits(t.Context(), run, config.Dev, nil)
	if err == nil || !strings.Contains(err.Error(), "mails.jsonl:") ||
		!strings.Contains(err.Error(), `head "team": the logit of label "billing" is not a finite number`) {
		t.Errorf("error %v, want one with the place of the text", err)
	}
}

// report measures a calibration on examples that it was not fitted to.
func report(l HeadLogits, c checkpoint.HeadCalibration) HeadReport {
	all, err := Reports(context.Background(), []HeadLogits{l}, []checkpoint.HeadCalibration{c}, Options{}, false, nil)
	if err != nil {
		panic(err)
	}
	return all[0]
}

func quiet() *work { return &work{ctx: context.Background()} }

// A fit over many labels ends where its context does, and says how far it is.
func TestFitsEndWithTheirContext(t *testing.T) {
	dev, many := oneLabel(200, 2, 1), manyLabels(200, 1, 0, 2)
	all := []HeadLogits{dev, many}
	ctx, cancel := context.WithCancel(t.Context())
	most := 0
	fitted, _, err := All(ctx, all, Options{}, func(done, of int) {
		if most = max(most, done); done > of || of != 15 {
			t.Errorf("%d of %d labels are done, want at most all 15", done, of)
		}
	})
	if err != nil || most == 0 {
		t.Fatalf("%v, the most that was done is %d", err, most)
	}
	reached := 0
	stop := func(int, int) {
		if reached++; reached == 3 {
			cancel()
		}
	}
	if _, err := Reports(ctx, all, fitted, Options{}, true, stop); !errors.Is(err, context.Canceled) || reached > 8 {
		t.Errorf("reports: %v after %d calls, want an end soon after the third", err, reached)
	}
	if _, _, err := All(ctx, all, Options{}, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("All: %v, want that it has ended", err)
	}
}
