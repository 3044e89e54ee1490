package heads

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// regressionIn makes a regression head with a range.
func regressionIn(limit ...float64) func(Env) (Head, error) {
	return func(s Env) (Head, error) {
		o := RegressionOptions{Loss: "mse", Pool: "cls", Range: limit, ScaleOptions: StandardScale}
		return Registry().Build("regression", o, s)
	}
}

func TestInvalidOptions(t *testing.T) {
	texts := Env{Task: "intent", Output: outputs.Label, Labels: []string{"a", "b"}, Width: 4, Dropout: 0.1}
	words := texts
	words.Output = outputs.Tags
	numbers := texts
	numbers.Output, numbers.Labels = outputs.Number, nil
	singleLabel := texts
	singleLabel.Labels = []string{"a"}
	linear := func(o LinearOptions) func(Env) (Head, error) {
		o.ObjectiveOptions = o.ObjectiveOptions.filled()
		return func(s Env) (Head, error) { return Registry().Build("linear", o, s) }
	}
	mlp := func(o MLPOptions) func(Env) (Head, error) {
		o.ObjectiveOptions = PlainObjective
		return func(s Env) (Head, error) { return Registry().Build("mlp", o, s) }
	}
	focus := func(change func(*FocusOptions)) func(Env) (Head, error) {
		o := focusDefaults
		change(&o)
		return func(s Env) (Head, error) { return Registry().Build("focus", o, s) }
	}
	for _, c := range []struct {
		build func(Env) (Head, error)
		env   Env
		want  string
	}{
		{linear(LinearOptions{Pool: "first"}), texts, `pool: want cls, mean, max or attention, have "first"`},
		{linear(LinearOptions{Pool: "mean"}), words, `pool "mean": a head that tags words does not pool`},
		{linear(LinearOptions{Pool: "cls"}), singleLabel, `want at least 2 labels, have ["a"]`},
		{linear(LinearOptions{Pool: "cls", Dropout: 1}), texts, "dropout: want a number in [-1, 1), have 1"},
		{linear(LinearOptions{Pool: "cls", Dropout: -0.5}), texts,
			"dropout is -0.5; want one in [0, 1), or -1 for the model's"},
		{mlp(MLPOptions{Pool: "cls", Activation: "relu"}), texts, `activation: want gelu or tanh, have "relu"`},
		{mlp(MLPOptions{Pool: "cls", Activation: "gelu", Hidden: -3}), texts,
			"hidden: want a whole number in [0, 65536], have -3"},
		{mlp(MLPOptions{Pool: "cls", Activation: "gelu", Hidden: 1 << 30}), texts, "in [0, 65536], have 1073741824"},
		{mlp(MLPOptions{Pool: "cls", Activation: "gelu", Dropout: 2}), texts,
			"dropout: want a number in [-1, 1), have 2"},
		{focus(func(o *FocusOptions) { o.LSTMLayers, o.LSTMHidden = 0, 17 }), texts,
			"lstm_hidden has no effect with lstm_layers: 0"},
		{focus(func(o *FocusOptions) { o.LSTMLayers, o.LSTMHidden = 16, 8192 }), texts,
			"lstm_layers is 16 of lstm_hidden 8192: they have 24697372672 parameters; at most 268435456 are possible"},
		{focus(func(o *FocusOptions) { o.MinAperture = 2 }), texts,
			"min_aperture: want a number in [0.0001, 1], have 2"},
		{focus(func(o *FocusOptions) { o.Pool = "cls" }), words, `pool "cls": a head that tags words does not pool`},
		{focus(func(o *FocusOptions) { o.Pool = "max" }), words, `pool "max": a head that tags words does not pool`},
		{linear(LinearOptions{Pool: "cls", ObjectiveOptions: ObjectiveOptions{ScaleOptions: ScaleOptions{"none"}}}), texts,
			"the output is one label; scale is for numbers"},
		{regressionIn(1, 1), numbers, "range is [1 1]; want [LEAST, MOST], from -1e+15 to 1e+15"},
		{regressionIn(0, 1e40), numbers, "range is [0 1e+40]; want [LEAST, MOST], from -1e+15 to 1e+15"},
	} {
		c.env.Params = nn.NewParams(1)
		if _, err := c.build(c.env); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}

func TestModelDropoutIsTheDefault(t *testing.T) {
	env := Env{Output: outputs.Label, Labels: []string{"a", "b"}, Width: 4}
	for _, c := range []struct{ own, model, want float64 }{{ModelDropout, 0.3, 0.3}, {0, 0.3, 0}, {0.2, 0.3, 0.2}} {
		env.Dropout = c.model
		got, err := dropoutRate(c.own, env)
		if err != nil || got != c.want {
			t.Errorf("dropout rate %v, model.dropout %v: %+v, error %v", c.own, c.model, got, err)
		}
	}
}

func TestBuildChecksOutputKind(t *testing.T) {
	Register("for one label", struct{}{}, func(struct{}, Env) (Head, error) { return &oneLabel{}, nil })
	env := Env{Task: "slots", Output: outputs.Tags, Labels: []string{"O", "B"}, Params: nn.NewParams(1)}
	_, err := Registry().Build("for one label", struct{}{}, env)
	if want := `its output is one label, but task "slots" requires a tag for each word`; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestCheckOutput(t *testing.T) {
	for _, c := range []struct {
		name string
		kind *outputs.Kind
		want string // the error; "" for none
	}{
		{"crf", outputs.Tags, ""},
		{"linear", outputs.Number, ""},
		{"unregistered", outputs.Number, ""}, // its kinds are unknown
		{"crf", outputs.Label, "its output is a tag for each word, but the task requires one label, the output of " +
			"focus, " +
			"linear, mlp"},
		{"mlp", outputs.Span, "its output is one label or any number of labels or a tag for each word or a number, but " +
			"the task requires a span of a context, the output of span"},
	} {
		err := CheckOutput(c.name, c.kind)
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s for a task of %s: error %v, want %q", c.name, c.kind, err, c.want)
		}
	}
}

type oneLabel struct{ OneClass }

func (*oneLabel) Logits(_ *nn.Pass, seen nn.Hidden) Logits { return LogitsOf(seen, nn.ClsPool(seen)) }

func TestOnlyMultiLabelHeadsHaveTuners(t *testing.T) {
	for name, options := range map[string]string{"linear": "", "mlp": "", "focus": "lstm_hidden: 4"} { // fast
		choice, err := Registry().FromString(name, options)
		if err != nil {
			t.Fatal(err)
		}
		for kind, want := range map[*outputs.Kind]bool{outputs.Label: false, outputs.Labels: true,
			outputs.Number: false} {
			env := Env{Output: kind, Labels: []string{"a", "b"}, Width: 8, Params: nn.NewParams(1),
				Training: Training{Deviation: 1}}
			h, err := choice.Build(env)
			if err != nil {
				t.Fatal(err)
			}
			if got := h.Describe().Tuner != nil; got != want {
				t.Errorf("%s of %s has a Tuner: %v, want %v", name, kind, got, want)
			}
		}
	}
}

func TestTunerOfAHeadWithAThreshold(t *testing.T) {
	choice, err := Registry().FromString("reconstruction", "")
	if err != nil {
		t.Fatal(err)
	}
	h, err := choice.Build(Env{Output: outputs.Anomaly, Width: 8, Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	if got := h.Describe().Tuner; got != h.(Tuner) {
		t.Errorf("the Tuner of %T is %T", h, got)
	}
}
