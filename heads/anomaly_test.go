package heads

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func anomalyEnv() Env {
	return Env{Task: "odd", Output: outputs.Anomaly, Width: 8, Params: nn.NewParams(1), Attention: Attention{1, 1},
		Training: Training{Units: 4, Mean: 0.25}}
}

func TestTuneChoosesAlarmThreshold(t *testing.T) {
	a, err := newAlarm(AlarmOptions{0.2}, anomalyEnv())
	if err != nil {
		t.Fatal(err)
	}
	var gold []corpus.Target
	var predicted []corpus.Prediction
	for i := range 10 { // distances of normal texts are 1 to 10, of anomalies 1.5 to 10.5
		gold = append(gold, normalText, anomaly)
		predicted = append(predicted, distances(float64(i+1), float64(i)+1.5)...)
	}
	gold, predicted = append(gold, nil), append(predicted, distances(math.NaN())...)
	if a.Thresholds() != nil {
		t.Error("there is a threshold before Tune")
	}
	decided := func(p corpus.Prediction) bool { return outputs.As[outputs.AnomalyPrediction](p).Alarm != nil }
	if slices.ContainsFunc(a.predict([]float64{1, 2}), decided) {
		t.Error("a prediction has an alarm before Tune")
	}
	a.Tune(gold, predicted)
	if got := a.Thresholds(); len(got) != 1 || got[0] != 8 {
		t.Errorf("threshold %v, want 8: two of ten normal texts are above it", got)
	}
	for i, p := range outputs.AllAs[outputs.AnomalyPrediction](predicted) {
		if p.Alarm == nil || *p.Alarm != (p.Distance > 8) {
			t.Errorf("prediction %d, distance %v: alarm %v", i, p.Distance, p.Alarm)
		}
	}
	a.Tune([]corpus.Target{anomaly}, predicted[:1])
	if a.Thresholds()[0] != 8 {
		t.Error("Tune without normal texts changed the threshold")
	}
}

func TestFalseAlarmsAreCountedInTexts(t *testing.T) {
	var gold []corpus.Target
	var predicted []corpus.Prediction
	for i := range 100 {
		gold, predicted = append(gold, normalText), append(predicted, distances(float64(i))...)
	}
	for percent := range 101 { // 0.29 of 100 is less than 29 in floating point
		a, err := newAlarm(AlarmOptions{float64(percent) / 100}, anomalyEnv())
		if err != nil {
			t.Fatal(err)
		}
		a.Tune(gold, predicted)
		alarms := 0
		for _, p := range predicted {
			if alarmed(p) {
				alarms++
			}
		}
		if alarms != percent {
			t.Errorf("false_alarms %v: %d alarms for 100 normal texts", a.falseAlarms, alarms)
		}
	}
	untuned, err := newAlarm(AlarmOptions{0.05}, anomalyEnv())
	if err != nil {
		t.Fatal(err)
	}
	predictions := untuned.predict([]float64{math.Inf(1), 1e300})
	if alarmed(predictions[0]) || alarmed(predictions[1]) {
		t.Error("a prediction has an alarm before Tune")
	}
}

func TestInvalidEnvsOfAnomalyHeads(t *testing.T) {
	for name, c := range map[string]struct {
		want   string
		change func(*Env)
		head   func(Env) (Head, error)
	}{
		"no normal text": {"no training text is normal", func(s *Env) { s.Training.Mean = 1 },
			func(s Env) (Head, error) {
				return newReconstruction(ReconstructionOptions{Pool: "mean"}, s)
			}},
		"no attention": {"the encoder has no attention maps", func(s *Env) { s.Attention = Attention{} },
			func(s Env) (Head, error) {
				return newAttentionPattern(AttentionPatternOptions{FitTexts: 5}, s)
			}},
		"another kind of output": {"its output is an anomaly score, but the task requires",
			func(s *Env) { s.Output = outputs.Number }, func(s Env) (Head, error) {
				return Registry().Build("attention_pattern", AttentionPatternOptions{FitTexts: 5}, s)
			}},
		"a learned pool": {`pool: want cls, mean or max, have "attention"`, func(*Env) {}, func(s Env) (Head, error) {
			return Registry().Build("reconstruction", ReconstructionOptions{Pool: "attention"}, s)
		}},
		"a fraction above 1": {"false_alarms: want a number in [0, 1], have 2", func(*Env) {},
			func(s Env) (Head, error) {
				o := ReconstructionOptions{Pool: "mean", AlarmOptions: AlarmOptions{2}}
				return Registry().Build("reconstruction", o, s)
			}},
	} {
		t.Run(name, func(t *testing.T) {
			env := anomalyEnv()
			c.change(&env)
			if _, err := c.head(env); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %q …", err, c.want)
			}
		})
	}
}

func TestFeaturesOfAttentionMaps(t *testing.T) {
	const tokens = 4
	const size = tokens * tokens
	even, diagonal, first := make([]float32, size), make([]float32, size), make([]float32, size)
	for i := range tokens {
		for j := range tokens {
			even[i*tokens+j] = 1. / tokens
		}
		diagonal[i*tokens+i], first[i*tokens] = 1, 1
	}
	for name, c := range map[string]struct {
		weights []float32
		want    [perMap]float32 // entropy, distance, first, separators, diagonal
	}{
		"uniform":        {even, [perMap]float32{1, 1.25 / 3, 0.25, 0.5, 0.25}},
		"diagonal":       {diagonal, [perMap]float32{0, 0, 0.25, 0.5, 1}},
		"to first token": {first, [perMap]float32{0, 1.5 / 3, 1, 0, 0.25}},
	} {
		var got [perMap]float32
		describeMap(got[:], c.weights, tokens, []int{1, 3})
		for k := range got {
			if !(math.Abs(float64(got[k]-c.want[k])) <= 1e-6) {
				t.Errorf("%s: features %v, want %v", name, got, c.want)
				break
			}
		}
	}
	var one [perMap]float32
	describeMap(one[:], []float32{1}, 1, []int{0})
	if one != [perMap]float32{0, 0, 1, 1, 1} {
		t.Errorf("features %v of a single token", one)
	}
	if got := separatorsOf(nn.Rows{Starts: []int{0, 1, 6}, Segment: []int8{0, 0, 0, 1, 1, 1}}, 1); !slices.Equal(got,
		[]int{1, 4}) {
		t.Errorf("separators %v, want the last tokens of the segments", got)
	}
}

// Lenses over the same texts have features, too, which are set when the head of the lens is computed.
func TestFeaturesOfLenses(t *testing.T) {
	env := anomalyEnv()
	env.Attention, env.Lenses = Attention{}, []Lenses{{"heads.a.b.focus", 1}, {"heads.a.c.focus", 2}}
	head, err := newAttentionPattern(AttentionPatternOptions{FitTexts: 5}, env)
	if err != nil {
		t.Fatal(err)
	}
	h := head.(*attentionPattern)
	rows := nn.Rows{Starts: []int{0, 2, 3}, Segment: make([]int8, 3), Example: []int{0, 1}}
	p := nn.NewPass(1)
	h.observe(p, rows)
	logits := h.Logits(p, nn.Hidden{Rows: rows})
	p.Emit(nn.FocusCentre("heads.a.b.focus"), 0, []int{2, 1}, []float32{0.2, 0.4})
	p.Emit(nn.FocusAperture("heads.a.b.focus"), 1, []int{1, 1}, []float32{0.7})
	// two lenses with different centres
	p.Emit(nn.FocusCentre("heads.a.c.focus"), 0, []int{2, 2}, []float32{0, 1, 0.5, 1})
	p.Emit(nn.FocusAperture("heads.a.c.focus"), 1, []int{1, 2}, []float32{0.6, 0.9})
	got, want := h.Features(logits), [][]float32{{0.3, 0, 0.25, 0, 1, 0}, {0, 0.7, 0, 0.6, 0, 0.9}}
	for b := range want {
		if !slices.EqualFunc(got[b], want[b], func(x, y float32) bool { return math.Abs(float64(x-y)) <= 1e-6 }) {
			t.Errorf("features %v, want %v", got, want)
			break
		}
	}
}

// An autoencoder that is trained on normal texts, which are in a plane, reconstructs others badly. The encoder has no
// gradient from it.
func TestReconstructionSeparatesAnomalies(t *testing.T) {
	env := anomalyEnv()
	head, err := newReconstruction(ReconstructionOptions{Hidden: 2, Pool: "mean", AlarmOptions: AlarmOptions{0.05}},
		env)
	if err != nil {
		t.Fatal(err)
	}
	const texts = 24
	states, gold := make([]float32, texts*8), make([]corpus.Target, texts)
	rows := nn.Rows{Starts: []int{0}}
	for b := range texts {
		row := states[b*8 : (b+1)*8]
		angle := float64(b)
		row[0], row[1] = float32(math.Cos(angle)), float32(math.Sin(angle))
		row[2], row[3] = row[0]+row[1], row[0]-row[1]
		gold[b] = normalText
		if b%6 == 0 { // of the same length, but not in the plane
			row[2], row[3], gold[b] = -row[2], -row[3], anomaly
		}
		rows.Starts, rows.Example = append(rows.Starts, b+1), append(rows.Example, b)
	}
	params := env.Params.All()
	optimizer, p := nn.NewAdamW(0), nn.NewPass(1)
	var predicted []corpus.Prediction
	for range 400 {
		p.Reset(0)
		at := p.Input(states, texts, 8)
		logits := head.Logits(p, nn.Hidden{States: at, Rows: rows})
		loss := head.Loss(p, logits, gold)
		if err := p.Forward(); err != nil {
			t.Fatal(err)
		}
		into, dAt := nn.NewGradients(params), [][]float32{make([]float32, len(states))}
		if err := p.Backward(loss, 1./texts, into, []*nn.Node{at}, dAt); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(dAt[0], func(v float32) bool { return v != 0 }) {
			t.Fatal("the encoder has a gradient")
		}
		optimizer.Step(params, into, 1, 0.02)
		predicted = head.Predict(logits)
	}
	farthestNormal, nearestAnomaly := 0.0, math.Inf(1)
	for b, p := range outputs.AllAs[outputs.AnomalyPrediction](predicted) {
		if normal(gold[b]) {
			farthestNormal = max(farthestNormal, p.Distance)
		} else {
			nearestAnomaly = min(nearestAnomaly, p.Distance)
		}
	}
	if !(nearestAnomaly > 2*farthestNormal) {
		t.Errorf("anomalies have distances from %v on, normal texts up to %v", nearestAnomaly, farthestNormal)
	}
}

func TestChooseTakesNormalTextsEvenly(t *testing.T) {
	unusual, usual := &outputs.AnomalyTarget{Anomalous: true}, &outputs.AnomalyTarget{}
	targets := []corpus.Target{unusual, usual, nil, usual, usual, unusual, usual, usual, usual}
	for _, c := range []struct {
		most int
		want []int
	}{{9, []int{1, 3, 4, 6, 7, 8}}, {3, []int{1, 4, 7}}, {2, []int{1, 6}}} {
		h := &attentionPattern{fitTexts: c.most}
		if got := h.Choose(targets); !slices.Equal(got, c.want) {
			t.Errorf("at most %d: %v, want %v", c.most, got, c.want)
		}
	}
}
