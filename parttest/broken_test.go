package parttest_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
	"github.com/jenga-nlp/jenga/tasks"
)

// broken lists heads that break one rule each, and how the name of the subtest begins that has to say so.
var broken = map[string]struct {
	rule  string
	spoil func(sound heads.Head, site heads.Site) heads.Head
}{
	"constant":  {"it_trains", func(h heads.Head, _ heads.Site) heads.Head { return constant{h} }},
	"twisted":   {"gradients_agree", func(h heads.Head, _ heads.Site) heads.Head { return twisted{h} }},
	"averaging": {"the_loss_is_a_sum", func(h heads.Head, _ heads.Site) heads.Head { return averaging{h} }},
	"eager":     {"where_nothing_is_labelled", func(h heads.Head, _ heads.Site) heads.Head { return eager{h} }},
	"in_place":  {"the_loss_leaves_the_scores", func(h heads.Head, _ heads.Site) heads.Head { return inPlace{h} }},
	"hoarding":  {"it_saves,_loads", hoard},
	"sociable":  {"order_and_company", func(h heads.Head, _ heads.Site) heads.Head { return sociable{h} }},
	"short":     {"predictions_are_of_the_kind", func(h heads.Head, _ heads.Site) heads.Head { return short{h} }},
	"narrow":    {"a_text_in_two_windows", func(h heads.Head, _ heads.Site) heads.Head { return narrow{h} }},
}

func init() {
	for name, b := range broken {
		heads.Register(name, struct{}{}, func(_ struct{}, site heads.Site) (heads.Head, error) {
			if site.Output != outputs.Label {
				return nil, site.Refuse(outputs.Label)
			}
			sound, err := heads.NewLinear(heads.LinearOptions{Pool: "mean"}, site)
			return b.spoil(sound, site), err
		})
	}
}

// constant scores without looking at the text.
type constant struct{ heads.Head }

func (h constant) Scores(p *nn.Pass, seen nn.Hidden) heads.Scores {
	seen.States = nn.Scale(seen.States, 0)
	return h.Head.Scores(p, seen)
}

// twisted has a backward that is not its forward's.
type twisted struct{ heads.Head }

func (h twisted) Scores(p *nn.Pass, seen nn.Hidden) heads.Scores {
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
	return h.Head.Scores(p, seen)
}

// averaging gives the mean loss of a batch.
type averaging struct{ heads.Head }

func (h averaging) Loss(p *nn.Pass, scores heads.Scores, gold []corpus.Target) *nn.Node {
	if loss := h.Head.Loss(p, scores, gold); loss != nil {
		return nn.Scale(loss, 1/float32(h.Units(gold)))
	}
	return nil
}

// eager has a loss where nothing is labelled.
type eager struct{ heads.Head }

func (h eager) Loss(_ *nn.Pass, scores heads.Scores, gold []corpus.Target) *nn.Node {
	ids := make([]int, len(gold))
	for i, t := range outputs.Targets[outputs.LabelTarget](gold) {
		if ids[i] = corpus.Unlabelled; t != nil {
			ids[i] = t.ID
		}
	}
	return nn.CrossEntropy(scores.Nodes[0], ids)
}

// inPlace turns its scores into differences from the gold.
type inPlace struct{ heads.Head }

func (h inPlace) Loss(p *nn.Pass, scores heads.Scores, gold []corpus.Target) *nn.Node {
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

func hoard(h heads.Head, site heads.Site) heads.Head {
	hoards++
	return hoarding{h, nn.NewLinear(nn.NewParams(hoards), site.Width, site.Width)}
}

func (h hoarding) Scores(p *nn.Pass, seen nn.Hidden) heads.Scores {
	seen.States = nn.Sum(seen.States, h.layer.Apply(seen.States))
	return h.Head.Scores(p, seen)
}

// sociable scores a text by its batch: less the mean of all states.
type sociable struct{ heads.Head }

func (h sociable) Scores(p *nn.Pass, seen nn.Hidden) heads.Scores {
	all := nn.Hidden{States: seen.States, Rows: nn.Rows{Starts: []int{0, seen.Rows.Tokens()}}}
	seen.States = nn.AddRow(seen.States, nn.Scale(nn.MeanPool(all), -1))
	return h.Head.Scores(p, seen)
}

// short predicts no probabilities.
type short struct{ heads.Head }

func (h short) Predict(scores heads.Scores) []corpus.Prediction {
	predictions := h.Head.Predict(scores)
	for _, p := range outputs.Predictions[outputs.LabelPrediction](predictions) {
		p.Probabilities = nil
	}
	return predictions
}

// narrow is less sure of an example the more windows it has.
type narrow struct{ heads.Head }

func (h narrow) Predict(scores heads.Scores) []corpus.Prediction {
	predictions, windows := h.Head.Predict(scores), map[int]int{}
	for _, e := range scores.Rows.Example {
		windows[e]++
	}
	for e, p := range outputs.Predictions[outputs.LabelPrediction](predictions) {
		for c := range p.Probabilities {
			p.Probabilities[c] /= float32(windows[e])
		}
	}
	return predictions
}

// grasping finds anomalies, and has the encoder learn to make texts alike.
type grasping struct{ heads.Head }

func (h grasping) Scores(p *nn.Pass, seen nn.Hidden) heads.Scores {
	scores, pooled := h.Head.Scores(p, seen), nn.MeanPool(seen)
	return heads.ScoresOf(seen, nn.Sum(scores.Nodes[0], nn.SquaredError(pooled, nn.Scale(pooled, 2))))
}

// forgetful is fitted in a way that stands in no checkpoint.
type forgetful struct {
	heads.Head
	heads.Fitter
	heads.Watcher
	fits *float64
}

func (h forgetful) Fit(features [][]float32) { *h.fits += float64(len(features)) }

func (h forgetful) Predict(scores heads.Scores) []corpus.Prediction {
	predictions := h.Head.Predict(scores)
	for _, p := range outputs.Predictions[outputs.AnomalyPrediction](predictions) {
		p.Distance += *h.fits
	}
	return predictions
}

func init() {
	heads.Register("grasping", struct{}{}, func(_ struct{}, site heads.Site) (heads.Head, error) {
		sound, err := heads.NewReconstruction(heads.ReconstructionOptions{Pool: "mean"}, site)
		return grasping{sound}, err
	}, outputs.Anomaly)
	heads.Register("forgetful", struct{}{}, func(_ struct{}, site heads.Site) (heads.Head, error) {
		sound, err := heads.NewAttentionPattern(heads.AttentionPatternOptions{FitTexts: 9}, site)
		if err != nil {
			return nil, err
		}
		return forgetful{sound, sound.(heads.Fitter), sound.(heads.Watcher), new(float64)}, nil
	}, outputs.Anomaly)
}

// brokenEncoders lists encoders likewise.
var brokenEncoders = map[string]struct {
	rule  string
	spoil func(sound bilstm) encoders.Encoder
}{
	"boasting":   {"it_describes", func(e bilstm) encoders.Encoder { return boasting{e} }},
	"shallow":    {"it_gives_the_states", func(e bilstm) encoders.Encoder { return shallow{e} }},
	"sociable":   {"order_and_company", func(e bilstm) encoders.Encoder { return sociableEncoder{e} }},
	"trusting":   {"what_it_has_no_embedding_for", func(e bilstm) encoders.Encoder { return trusting{e} }},
	"halving":    {"gradients_agree", func(e bilstm) encoders.Encoder { return halving{e} }},
	"restless":   {"what_is_frozen", func(e bilstm) encoders.Encoder { return restless{e} }},
	"weightless": {"it_counts_the_memory", func(e bilstm) encoders.Encoder { return weightless{e} }},
	"forgetful":  {"saved_and_opened", nil}, // it is opened with other weights
}

// bilstm is what is sound of them.
type bilstm interface {
	encoders.Trainable
	encoders.Saver
	encoders.MemoryEstimator
}

func init() {
	for name, b := range brokenEncoders {
		encoders.Register(name, struct{}{}, func(_ struct{}, site encoders.Site) (encoders.Encoder, error) {
			if b.spoil == nil {
				site.Model = ""
			}
			sound, err := encoders.NewBiLSTM(encoders.BiLSTMOptions{Embedding: 6, Layers: 2, Hidden: 5}, site)
			if err != nil || b.spoil == nil {
				return sound, err
			}
			return b.spoil(sound.(bilstm)), nil
		})
	}
}

// boasting names a parameter as its word embeddings that is none of its own.
type boasting struct{ bilstm }

func (e boasting) Describe() encoders.Description {
	d := e.bilstm.Describe()
	d.WordEmbeddings = nn.NewParams(1).Table("words", 1, 20, d.Width)
	return d
}

// shallow gives the last layer alone, whatever is asked for.
type shallow struct{ bilstm }

func (e shallow) Encode(p *nn.Pass, tokens corpus.Tokens, _ nn.Wanted) ([][]float32, error) {
	return e.bilstm.Encode(p, tokens, nn.LastLayer)
}

// sociableEncoder adds to each text's states the first of the batch.
type sociableEncoder struct{ bilstm }

func (e sociableEncoder) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.Wanted) ([][]float32, error) {
	states, err := e.bilstm.Encode(p, tokens, layers)
	for _, x := range states {
		first := x[0]
		for i := range x {
			x[i] += first
		}
	}
	return states, err
}

// trusting reads any token outside the vocabulary as the first one.
type trusting struct{ bilstm }

func (e trusting) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.Wanted) ([][]float32, error) {
	tokens.IDs = slices.Clone(tokens.IDs)
	for i, id := range tokens.IDs {
		if id < 0 || id >= 20 {
			tokens.IDs[i] = 0
		}
	}
	return e.bilstm.Encode(p, tokens, layers)
}

// halving gives half of each gradient.
type halving struct{ bilstm }

func (e halving) Backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	half := make([][]float32, len(at))
	for l, d := range at {
		for _, v := range d {
			half[l] = append(half[l], v/2)
		}
	}
	e.bilstm.Backward(p, half, into)
}

// restless drops states in training, frozen or not.
type restless struct{ bilstm }

func (e restless) Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.Wanted) ([][]float32, error) {
	states, err := e.bilstm.Encode(p, tokens, layers)
	if p.Training {
		for _, x := range states {
			x[0] = 0
		}
	}
	return states, err
}

// weightless takes no memory, it says.
type weightless struct{ bilstm }

func (weightless) Memory(encoders.Load) int64 { return 0 }

// mixing is a fusion that shows each text the mean of all.
type mixing struct{}

func (mixing) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden {
	all := nn.Hidden{States: shared.States, Rows: nn.Rows{Starts: []int{0, shared.Rows.Tokens()}}}
	shared.States = nn.AddRow(shared.States, nn.MeanPool(all))
	return shared
}

// cutting is a fusion that loses the last text.
type cutting struct{}

func (cutting) Fuse(_ *nn.Pass, shared nn.Hidden, _ string) nn.Hidden {
	seen := shared
	seen.Rows.Starts = shared.Rows.Starts[:len(shared.Rows.Starts)-1]
	return seen
}

// spoiltTask is a classification with one method replaced.
type spoiltTask struct {
	tasks.Task
	example func(corpus.Record) (corpus.Example, error)
	judge   func([]corpus.Target, []corpus.Prediction) []tasks.Metric
}

func (s spoiltTask) Example(r corpus.Record) (corpus.Example, error) {
	if s.example == nil {
		return s.Task.Example(r)
	}
	return s.example(r)
}

func (s spoiltTask) Judge(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
	if s.judge == nil {
		return s.Task.Judge(gold, predicted)
	}
	return s.judge(gold, predicted)
}

func accuracy(gold []corpus.Target, predicted []corpus.Prediction) float64 {
	right := 0.0
	labels := outputs.Predictions[outputs.LabelPrediction](predicted)
	for i, g := range outputs.Targets[outputs.LabelTarget](gold) {
		if g.Label == labels[i].Label {
			right++
		}
	}
	return right / float64(len(gold))
}

func init() {
	fusion.Register("mixing", struct{}{}, func(struct{}, fusion.Site) (fusion.Fusion, error) { return mixing{}, nil })
	fusion.Register("cutting", struct{}{}, func(struct{}, fusion.Site) (fusion.Fusion, error) { return cutting{}, nil })
	for name, spoil := range map[string]func(sound tasks.Task) tasks.Task{
		"trusting": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
				return corpus.Example{Place: r.Place, Targets: make([]corpus.Target, 2), Text: r.Fields["text"].(string)}, nil
			}}
		},
		"hollow": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, example: func(r corpus.Record) (corpus.Example, error) {
				var target *outputs.LabelTarget // of no label
				if label, ok, err := r.String("label"); err == nil && ok && label != "" {
					target = &outputs.LabelTarget{Label: label}
				}
				return corpus.Example{Place: r.Place, Targets: []corpus.Target{target, target}}, nil
			}}
		},
		"dividing": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, judge: func(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
				return []tasks.Metric{{Name: "accuracy", Value: accuracy(gold, predicted)}}
			}}
		},
		"lenient": func(sound tasks.Task) tasks.Task {
			return spoiltTask{Task: sound, judge: func(gold []corpus.Target, _ []corpus.Prediction) []tasks.Metric {
				return []tasks.Metric{{Name: "accuracy", Value: min(1, float64(len(gold)))}}
			}}
		},
	} {
		tasks.Register(name, struct{}{}, func(_ struct{}, site tasks.Site) (tasks.Task, error) {
			return spoil(tasks.NewClassification(site)), nil
		})
	}
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
	}
}

func TestRulesAreHeld(t *testing.T) {
	wants := map[string]string{ // part: what the failure says
		"head liner":     `did you mean "linear"?`,
		"head grasping":  "--- FAIL: TestBroken/how_unlike_normal_texts_a_text_is/gradients_agree",
		"head forgetful": "--- FAIL: TestBroken/how_unlike_normal_texts_a_text_is/it_saves",
		"fusion mixing":  "--- FAIL: TestBroken/before_a_head_of_one_label/order_and_company",
		"fusion cutting": "--- FAIL: TestBroken/task_first_sees_the_rows",
		"task trusting":  "--- FAIL: TestBroken/no_record_stops_it",
		"task hollow":    "a target is a *outputs.LabelTarget that is nil",
		"task dividing":  "--- FAIL: TestBroken/nothing_to_judge",
		"task lenient":   "--- FAIL: TestBroken/what_is_wrong",
	}
	for name, b := range broken {
		wants["head "+name] = "--- FAIL: TestBroken/one_label/" + b.rule
	}
	for name, b := range brokenEncoders {
		wants["encoder "+name] = "--- FAIL: TestBroken/" + b.rule
	}
	for part, want := range wants {
		t.Run(part+" fails and is told why", func(t *testing.T) {
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
