package calibration

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"
)

// reference is testdata/calibration.json, by scripts/fixtures/calibration.py.
type reference struct {
	OneLabel []struct {
		Name                               string
		Logits                             [][][]float32
		Gold                               []int
		Temperature, Loss, ECE, Brier, NLL float64
		Sets                               []struct {
			Alpha float64
			Least *float64
		}
	} `json:"one_label"`
	ManyLabels []struct {
		Name                  string
		Logits                [][]float32
		Holds                 [][]int
		A, B, ECE, Brier, NLL float64
	} `json:"many_labels"`
}

func readReference(t *testing.T) (r reference) {
	t.Helper()
	text, err := os.ReadFile("testdata/calibration.json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil || len(r.OneLabel) == 0 || len(r.ManyLabels) == 0 {
		t.Fatal(err, r)
	}
	return r
}

func always() bool { return true }

type decision struct {
	logits []float32 // one for each window
	holds  bool
}

func platt(decisions []decision) Sigmoid {
	var examples []Example
	for _, d := range decisions {
		e := Example{}
		for _, z := range d.logits {
			e.Logits = append(e.Logits, []float32{z})
		}
		if d.holds {
			e.Gold = []int{0}
		}
		examples = append(examples, e)
	}
	return Platt(examples, []int{0}, always)
}

func near(t *testing.T, what string, got, want, within float64) {
	t.Helper()
	if !(math.Abs(got-want) <= within) {
		t.Errorf("%s: %v, want %v within %v", what, got, want, within)
	}
}

// softmaxes returns the probabilities of examples, the mean over windows.
func softmaxes(logits [][][]float32) [][]float32 {
	all := make([][]float32, len(logits))
	for i, windows := range logits {
		all[i] = make([]float32, len(windows[0]))
		for _, z := range windows {
			for c := range z {
				log, _, _ := logSoftmax(z, c, 1)
				all[i][c] += float32(math.Exp(log) / float64(len(windows)))
			}
		}
	}
	return all
}

// alone returns lists of one label each.
func alone(labels []int) (all [][]int) {
	for _, label := range labels {
		all = append(all, []int{label})
	}
	return all
}

func TestOneLabelAgreesWithSciPy(t *testing.T) {
	for _, c := range readReference(t).OneLabel {
		var examples []Example
		for i, windows := range c.Logits {
			examples = append(examples, Example{windows, []int{c.Gold[i]}})
		}
		temperature := Temperature(examples, always)
		near(t, c.Name+": temperature", temperature, c.Temperature, 1e-4*c.Temperature) // two minimisers
		near(t, c.Name+": loss", softmaxLoss(examples, 1/temperature), c.Loss, 1e-8)

		p := softmaxes(c.Logits)
		m := Measure(p, alone(c.Gold), true)
		near(t, c.Name+": ECE", m.ECE, c.ECE, 1e-6)
		near(t, c.Name+": Brier score", m.Brier, c.Brier, 1e-6)
		near(t, c.Name+": NLL", *m.NLL, c.NLL, 1e-5)
		for _, s := range c.Sets {
			least, ok := SetThreshold(Golds(p, c.Gold), s.Alpha)
			if ok != (s.Least != nil) {
				t.Errorf("%s: alpha %v: a threshold %v, want it %v", c.Name, s.Alpha, ok, s.Least != nil)
			} else if ok {
				near(t, c.Name+": threshold of sets", float64(least), *s.Least, 1e-6)
			}
		}
	}
}

func TestManyLabelsAgreeWithScikitLearn(t *testing.T) {
	for _, c := range readReference(t).ManyLabels {
		var decisions []decision
		p, gold := make([][]float32, len(c.Logits)), make([][]int, len(c.Logits))
		for i, row := range c.Logits {
			for l, z := range row {
				decisions = append(decisions, decision{[]float32{z}, c.Holds[i][l] == 1})
				p[i] = append(p[i], float32(1/(1+math.Exp(-float64(z)))))
				if c.Holds[i][l] == 1 {
					gold[i] = append(gold[i], l)
				}
			}
		}
		s := platt(decisions)
		near(t, c.Name+": slope", s.A, c.A, 1e-4)
		near(t, c.Name+": offset", s.B, c.B, 1e-4)
		m := Measure(p, gold, false)
		near(t, c.Name+": ECE", m.ECE, c.ECE, 1e-6)
		near(t, c.Name+": Brier score", m.Brier, c.Brier, 1e-6)
		near(t, c.Name+": NLL", *m.NLL, c.NLL, 1e-5)
	}
}

// The loss falls without end where all examples are right, and grows from the first step where all are wrong.
func TestTemperatureHasBounds(t *testing.T) {
	example := func(gold int) []Example { return []Example{{[][]float32{{3, 0}}, []int{gold}}} }
	near(t, "all right", Temperature(example(0), always), LeastTemperature, 1e-6)
	near(t, "all wrong", Temperature(example(1), always), MostTemperature, 1e-6)
	near(t, "no label that is known", Temperature(example(-1), always), 1, 0)
	near(t, "no examples", Temperature(nil, always), 1, 0)
	large := []Example{{[][]float32{{1e30, -1e30}}, []int{1}}, {[][]float32{{1e30, -1e30}}, []int{0}}}
	if got := Temperature(large, always); !(got >= LeastTemperature && got <= MostTemperature) {
		t.Errorf("of huge logits the temperature is %v", got)
	}
	before := example(0)
	Temperature(append(before, Example{[][]float32{{1, 2}}, []int{-1}}), always)
	if !slices.Equal(before[0].Gold, []int{0}) {
		t.Errorf("the examples have changed: %v", before)
	}
}

func TestPlattHasBounds(t *testing.T) {
	of := func(holds ...bool) (all []decision) {
		for i, h := range holds {
			all = append(all, decision{[]float32{float32(i)}, h})
		}
		return all
	}
	for name, decisions := range map[string][]decision{
		"none": nil, "one": of(true), "all hold": of(true, true, true), "none holds": of(false, false),
		"separable": of(false, false, true, true), "the wrong way round": of(true, true, false, false),
		"equal logits": {{[]float32{2}, true}, {[]float32{2}, false}, {[]float32{2}, false}},
		"far apart":    {{[]float32{1e6}, true}, {[]float32{-1e6}, false}, {[]float32{1e6}, false}},
	} {
		s := platt(decisions)
		if !(s.A >= LeastSlope && s.A <= MostSlope) || math.IsNaN(s.B) || math.IsInf(s.B, 0) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	// of equal logits the probability is the mean of the targets, 2/3 and twice 1/4
	s := platt([]decision{{[]float32{2}, true}, {[]float32{2}, false}, {[]float32{2}, false}})
	near(t, "of equal logits", 1/(1+math.Exp(-2*s.A-s.B)), (2./3+2./4)/3, 1e-6)
}

// A text in windows of equal logits is one with one of them.
func TestEqualWindowsAreOne(t *testing.T) {
	var once, thrice []decision
	for i := range 40 {
		z := float32(i%7) - 3
		d := decision{[]float32{z}, i%3 == 0 || z > 1}
		once, thrice = append(once, d), append(thrice, decision{[]float32{z, z, z}, d.holds})
	}
	a, b := platt(once), platt(thrice)
	near(t, "slope", b.A, a.A, 1e-6)
	near(t, "offset", b.B, a.B, 1e-6)
}

// An example whose label the head does not know is wrong, with all its probability.
func TestUnknownLabelsCountAsWrong(t *testing.T) {
	m := Measure([][]float32{{0.75, 0.25}}, [][]int{{-1}}, true)
	near(t, "ECE", m.ECE, 0.75, 1e-9)
	near(t, "Brier score", m.Brier, 1+0.75*0.75+0.25*0.25, 1e-9)
	if m.NLL != nil {
		t.Errorf("NLL %v of no known label, want none", *m.NLL)
	}
}
