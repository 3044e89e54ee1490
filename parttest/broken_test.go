package parttest_test

import (
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
)

// broken lists heads that break one rule each, with the first words of the subtest that has to fail.
var broken = map[string]struct {
	rule  string
	spoil func(sound heads.Head, env heads.Env) heads.Head
}{
	"constant":  {"it_trains", func(h heads.Head, _ heads.Env) heads.Head { return constant{h} }},
	"twisted":   {"gradients_agree", func(h heads.Head, _ heads.Env) heads.Head { return twisted{h} }},
	"averaging": {"the_loss_is_a_sum", func(h heads.Head, _ heads.Env) heads.Head { return averaging{h} }},
	"eager":     {"unlabelled_texts_have", func(h heads.Head, _ heads.Env) heads.Head { return eager{h} }},
	"in_place":  {"the_loss_does_not_change", func(h heads.Head, _ heads.Env) heads.Head { return inPlace{h} }},
	"hoarding":  {"it_saves,_loads", hoard},
	"sociable":  {"predictions_do_not_depend", func(h heads.Head, _ heads.Env) heads.Head { return sociable{h} }},
	"short": {"predictions_are_of_the_required_kind",
		func(h heads.Head, _ heads.Env) heads.Head { return short{h} }},
	"heedless": {"it_reads_the_states", func(h heads.Head, _ heads.Env) heads.Head { return heedless{h} }},
	"narrow":   {"a_text_in_two_windows", func(h heads.Head, _ heads.Env) heads.Head { return narrow{h} }},
	"lazy": {"a_frozen_input", func(h heads.Head, env heads.Env) heads.Head {
		return lazy{h, env.Params.Zeros("shift", env.Width), 0}
	}},
	"distracted": {"a_frozen_input", func(h heads.Head, env heads.Env) heads.Head {
		return lazy{h, env.Params.Zeros("shift", env.Width), 1}
	}},
}

func init() {
	for name, b := range broken {
		heads.Register(name, struct{}{}, func(_ struct{}, env heads.Env) (heads.Head, error) {
			o := heads.LinearOptions{Pool: "mean", ObjectiveOptions: heads.PlainObjective}
			sound, err := heads.Registry().Build("linear", o, env)
			return b.spoil(sound, env), err
		}, outputs.Label)
	}
}

// constant ignores the text.
type constant struct{ heads.Head }

func (h constant) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	seen.States = nn.Scale(seen.States, 0)
	return h.Head.Logits(p, seen)
}

// twisted has a backward that is not its forward's.
type twisted struct{ heads.Head }

func (h twisted) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	seen.States = nn.Operation{
		Name: "square", Shape: seen.States.Shape(),
		Forward: func(in [][]float32, out []float32) {
			for i, x := range in[0] {
				out[i] = x * x
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, x := range in[0] {
				dIn[0][i] += dOut[i] * x
			}
		},
	}.Apply(seen.States)
	return h.Head.Logits(p, seen)
}

// lazy shifts states by a parameter. It passes no gradient where the one for an input, of two, is not required.
type lazy struct {
	heads.Head
	shift *nn.Param
	input int
}

func (h lazy) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	n := len(h.shift.Data)
	seen.States = nn.Operation{
		Name: "lazy", Shape: seen.States.Shape(), Params: []*nn.Param{h.shift},
		Forward: func(in [][]float32, out []float32) {
			for i, x := range in[0] {
				out[i] = x + in[1][i%n]
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := 0; i < len(dOut) && dIn[h.input] != nil; i++ {
				if dIn[0] != nil {
					dIn[0][i] += dOut[i]
				}
				if dIn[1] != nil {
					dIn[1][i%n] += dOut[i]
				}
			}
		},
	}.Apply(seen.States)
	return h.Head.Logits(p, seen)
}

// averaging gives the mean loss of a batch.
type averaging struct{ heads.Head }

func (h averaging) Loss(p *nn.Pass, scores heads.Logits, gold []corpus.Target) *nn.Node {
	if loss := h.Head.Loss(p, scores, gold); loss != nil {
		return nn.Scale(loss, 1/float32(h.Units(gold)))
	}
	return nil
}

// eager has a loss where nothing is labelled.
type eager struct{ heads.Head }

func (h eager) Loss(_ *nn.Pass, scores heads.Logits, gold []corpus.Target) *nn.Node {
	ids := make([]int, len(gold))
	for i, t := range outputs.AllAs[outputs.LabelTarget](gold) {
		if ids[i] = corpus.Unlabelled; t != nil {
			ids[i] = t.ID
		}
	}
	return nn.CrossEntropy(scores.Nodes[0], ids)
}

// inPlace turns its scores into differences from the gold.
type inPlace struct{ heads.Head }

func (h inPlace) Loss(p *nn.Pass, scores heads.Logits, gold []corpus.Target) *nn.Node {
	loss := h.Head.Loss(p, scores, gold)
	nn.Operation{
		Name: "in place", Shape: scores.Nodes[0].Shape(),
		Forward: func(in [][]float32, _ []float32) { in[0][0] -= 1 },
	}.Apply(scores.Nodes[0])
	return loss
}

// hoarding learns something that stands in no checkpoint.
type hoarding struct {
	heads.Head
	layer *nn.Linear
}

var hoards uint64

func hoard(h heads.Head, env heads.Env) heads.Head {
	hoards++
	return hoarding{h, nn.NewLinear(nn.NewParams(hoards), env.Width, env.Width)}
}

func (h hoarding) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	seen.States = nn.Sum(seen.States, h.layer.Apply(seen.States))
	return h.Head.Logits(p, seen)
}

// sociable scores a text by its batch: less the mean of all states.
type sociable struct{ heads.Head }

func (h sociable) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	all := nn.Hidden{States: seen.States, Rows: nn.Rows{Starts: []int{0, seen.Rows.Tokens()}}}
	seen.States = nn.AddRow(seen.States, nn.Scale(nn.MeanPool(all), -1))
	return h.Head.Logits(p, seen)
}

// short predicts no probabilities.
type short struct{ heads.Head }

func (h short) Predict(scores heads.Logits) []corpus.Prediction {
	predictions := h.Head.Predict(scores)
	for _, p := range outputs.AllAs[outputs.LabelPrediction](predictions) {
		p.Probabilities = nil
	}
	return predictions
}

// narrow is less sure of an example the more windows it has.
type narrow struct{ heads.Head }

func (h narrow) Predict(scores heads.Logits) []corpus.Prediction {
	predictions, windows := h.Head.Predict(scores), map[int]int{}
	for _, e := range scores.Rows.Example {
		windows[e]++
	}
	for e, p := range outputs.AllAs[outputs.LabelPrediction](predictions) {
		for c := range p.Probabilities {
			p.Probabilities[c] /= float32(windows[e])
		}
	}
	return predictions
}

// heedless names the first token of each text, but reads all.
type heedless struct{ heads.Head }

func (h heedless) Describe() heads.Description {
	d := h.Head.Describe()
	d.Reads = func(rows nn.Rows) []int { return rows.Starts[:rows.Texts()] }
	return d
}

// grasping finds anomalies, and has the encoder learn to make texts alike.
type grasping struct{ heads.Head }

func (h grasping) Logits(p *nn.Pass, seen nn.Hidden) heads.Logits {
	scores, pooled := h.Head.Logits(p, seen), nn.MeanPool(seen)
	return heads.LogitsOf(seen, nn.Sum(scores.Nodes[0], nn.SquaredError(pooled, nn.Scale(pooled, 2))))
}

// forgetful is fitted in a way that stands in no checkpoint.
type forgetful struct {
	heads.Head
	heads.Fitter
	fits *float64
}

func (h forgetful) Describe() heads.Description {
	d := h.Head.Describe()
	d.Fitter = h
	return d
}

func (h forgetful) Fit(features [][]float32) { *h.fits += float64(len(features)) }

func (h forgetful) Predict(scores heads.Logits) []corpus.Prediction {
	predictions := h.Head.Predict(scores)
	for _, p := range outputs.AllAs[outputs.AnomalyPrediction](predictions) {
		p.Distance += *h.fits
	}
	return predictions
}

func init() {
	heads.Register("grasping", struct{}{}, func(_ struct{}, env heads.Env) (heads.Head, error) {
		sound, err := heads.Registry().Build("reconstruction", heads.ReconstructionOptions{Pool: "mean"}, env)
		return grasping{sound}, err
	}, outputs.Anomaly)
	heads.Register("forgetful", struct{}{}, func(_ struct{}, env heads.Env) (heads.Head, error) {
		sound, err := heads.Registry().Build("attention_pattern", heads.AttentionPatternOptions{FitTexts: 9}, env)
		if err != nil {
			return nil, err
		}
		return forgetful{sound, sound.Describe().Fitter, new(float64)}, nil
	}, outputs.Anomaly)
}

// TestBroken is run in a process of its own by TestRulesAreHeld: it fails.
func TestBroken(t *testing.T) {
	kind, name, _ := strings.Cut(os.Getenv("JENGA_BROKEN"), " ")
	switch kind {
	case "":
		t.Skip("for TestRulesAreHeld")
	case "head":
		parttest.Head(t, name, "")
	case "fusion":
		parttest.Fusion(t, name, "")
	case "task":
		parttest.Task(t, name, "")
	case "encoder":
		parttest.Encoder(t, name, "")
	case "sampler":
		parttest.Sampler(t, name, "")
	case "weighting":
		parttest.Weighting(t, name, "")
	case "kind":
		spec := soundKind
		brokenKinds[name].spoil(&spec)
		k := outputs.Register(spec)
		parttest.AddSample(k, soundSample)
		parttest.Output(t, k)
	}
}

func TestRulesAreHeld(t *testing.T) {
	wants := map[string]string{ // part: what the failure says
		"head liner":     `did you mean "linear"?`,
		"head grasping":  "--- FAIL: TestBroken/an_anomaly_score/gradients_agree",
		"head forgetful": "--- FAIL: TestBroken/an_anomaly_score/it_saves",
		"fusion mixing":  "--- FAIL: TestBroken/before_a_head_of_one_label/predictions_do_not_depend",
		"fusion denying": "--- FAIL: TestBroken/a_token's_state",
		"fusion cutting": "--- FAIL: TestBroken/task_first_receives_the_rows",
		"task trusting":  "--- FAIL: TestBroken/no_record_makes_it_panic",
		"task hollow":    "a target is a *outputs.LabelTarget that is nil",
		"task dividing":  "--- FAIL: TestBroken/metrics_of_no_examples",
		"task lenient":   "--- FAIL: TestBroken/wrong_predictions",
		"task reversed":  "lower is better for the main metric, accuracy",
		"task sleepy":    "where one is wrong",
		"task blind":     "where a label does not occur in training",
		"task biased":    "--- FAIL: TestBroken/the_order_of_examples",
		"task grudging":  "--- FAIL: TestBroken/right_predictions",
		"task shifting":  "says it is of",
		"task reticent":  "no record has a target for any head",
		"task wordy":     "4 tags for 3 words",
		"task placeless": "the error does not begin with data.jsonl:1",
		"task mute":      "in field Task has SameFields, Tables, which the task's own lacks",
		"task terse":     "in field Task has SameFields, Tables, which the task's own lacks",
		"task private":   "in field inner has",
		"task traitless": "have the method Traits, which those of the part lack",
	}
	for name, b := range brokenKinds {
		wants["kind "+name] = "--- FAIL: TestBroken/" + b.rule
	}
	for name, b := range broken {
		wants["head "+name] = "--- FAIL: TestBroken/one_label/" + b.rule
	}
	for name, b := range brokenEncoders {
		wants["encoder "+name] = "--- FAIL: TestBroken/" + b.rule
	}
	for name, b := range brokenSamplers {
		wants["sampler "+name] = "--- FAIL: TestBroken/" + b.rule
	}
	for name, b := range brokenWeightings {
		wants["weighting "+name] = "--- FAIL: TestBroken/" + b.rule
	}
	for part, want := range wants {
		t.Run(part+" fails with the rule it breaks", func(t *testing.T) {
			command := exec.Command(os.Args[0], "-test.run=^TestBroken$")
			command.Env = append(os.Environ(), "JENGA_BROKEN="+part)
			out, err := command.CombinedOutput()
			if err == nil {
				t.Fatal("it passes")
			}
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		})
	}
}

// brokenSamplers and brokenWeightings break one rule each: the first words of the subtest that has to fail.
var brokenSamplers = map[string]struct {
	rule    string
	sampler func() samplers.Sampler
}{
	"outside":   {"as_many_different_groups", func() samplers.Sampler { return samplers.Sampler{Next: outside} }},
	"starving":  {"no_group_is_left_out", func() samplers.Sampler { return samplers.Sampler{Next: starving} }},
	"shared":    {"the_same_seed", func() samplers.Sampler { return counting(&sharedCount) }},
	"amnesic":   {"it_goes_on", func() samplers.Sampler { return counting(new(int)) }},
	"imprecise": {"its_probabilities", func() samplers.Sampler { return imprecise }},
}

var brokenWeightings = map[string]struct {
	rule  string
	weigh func() weigh
}{
	"boundless":  {"each_loss_has_a_finite_factor", func() weigh { return boundless }},
	"equal":      {"a_head_of_weight_0", func() weigh { return equal }},
	"common":     {"the_same_seed", func() weigh { return fading(&sharedSteps) }},
	"forgetting": {"it_goes_on", func() weigh { return fading(new(float64)) }},
}

// weigh is weightings.Weighting.Weigh.
type weigh = func(multitask.State, []multitask.Loss) []float64

func init() {
	for name, b := range brokenSamplers {
		samplers.Register(name, struct{}{},
			func(struct{}, samplers.Env) (samplers.Sampler, error) { return b.sampler(), nil })
	}
	for name, b := range brokenWeightings {
		weightings.Register(name, struct{}{},
			func(struct{}, weightings.Env) (weightings.Weighting, error) {
				return weightings.Weighting{Weigh: b.weigh()}, nil
			})
	}
}

// outside names a group that is not there.
func outside(s multitask.State) []int { return []int{s.Step % 4} }

// starving never draws the last group.
func starving(s multitask.State) []int { return []int{s.Rand.IntN(2)} }

// counting takes the groups in turn by a count that no state has.
func counting(n *int) samplers.Sampler {
	return samplers.Sampler{Next: func(multitask.State) []int {
		*n++
		return []int{*n % 3}
	}}
}

var sharedCount int

// imprecise draws all groups equally often, against its probabilities.
var imprecise = samplers.Sampler{
	Next: func(s multitask.State) []int { return []int{s.Rand.IntN(3)} },
	Probabilities: func(multitask.State) []samplers.Probability {
		terms := map[string]float64{"weight": 1}
		return []samplers.Probability{
			{Group: "first", Value: 0.5, Terms: terms}, {Group: "second", Value: 0.25, Terms: terms},
			{Group: "third", Value: 0.25, Terms: terms},
		}
	},
}

// boundless has factors that grow beyond all numbers.
func boundless(s multitask.State, losses []multitask.Loss) []float64 {
	factors := weightings.Weighting{}.Factors(s, losses)
	factors[0] *= math.Exp(100 * float64(s.Step))
	return factors
}

// equal ignores the heads' weights.
func equal(_ multitask.State, losses []multitask.Loss) []float64 {
	factors := make([]float64, len(losses))
	for i := range factors {
		factors[i] = 1
	}
	return factors
}

// fading has factors that fall by a number that no state has.
func fading(steps *float64) weigh {
	return func(s multitask.State, losses []multitask.Loss) []float64 {
		factors := weightings.Weighting{}.Factors(s, losses)
		*steps++
		factors[0] /= *steps
		return factors
	}
}

var sharedSteps float64

// mixing is a fusion that shows each text the mean of all.
type mixing struct{}

func (mixing) Describe() fusion.Description { return fusion.Description{} }

func (mixing) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden {
	all := nn.Hidden{States: shared.States, Rows: nn.Rows{Starts: []int{0, shared.Rows.Tokens()}}}
	shared.States = nn.AddRow(shared.States, nn.MeanPool(all))
	return shared
}

// denying is the same, and says that it mixes nothing.
type denying struct{ mixing }

func (denying) Describe() fusion.Description { return fusion.Description{PerToken: true} }

// cutting is a fusion that loses the last text.
type cutting struct{}

func (cutting) Describe() fusion.Description { return fusion.Description{} }

func (cutting) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden {
	seen := shared
	seen.Rows.Starts = shared.Rows.Starts[:len(shared.Rows.Starts)-1]
	return seen
}

func init() {
	fusion.Register("mixing", struct{}{}, func(struct{}, fusion.Env) (fusion.Fusion, error) { return mixing{}, nil })
	fusion.Register("denying", struct{}{}, func(struct{}, fusion.Env) (fusion.Fusion, error) { return denying{}, nil })
	fusion.Register("cutting", struct{}{}, func(struct{}, fusion.Env) (fusion.Fusion, error) { return cutting{}, nil })
}
