package fusion

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

// golden is testdata/attention.json or concat.json, which scripts/fixtures/fusion.py writes from the formulas in
// PyTorch.
type golden struct {
	Width, Hidden int
	Starts        []int
	H, Weights    []float32            // hidden states, and a loss's weights of what is seen
	Params        map[string][]float32 // e, w [H D+H], b, v, c, g
	Scales        map[string]values
	values        // of testdata/concat.json, whose w is [D D+H]
}

// values are what a fusion gives, and the loss's gradients.
type values struct {
	Out, Attention, DH []float32
	DParams            map[string][]float32
}

// readGolden reads a file of testdata.
func readGolden(t *testing.T, name string) (g golden) {
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g golden) rows() nn.Rows { return nn.Rows{Starts: g.Starts} }

// named maps the formula's parameters to ours: W is kept as the columns for h and those for e, each transposed.
func (g golden) named(params map[string][]float32) map[string][]float32 {
	w, rows := params["w"], len(params["b"])
	forStates, forTask := make([]float32, g.Width*rows), make([]float32, g.Hidden*rows)
	for i := range rows {
		for j := range g.Width + g.Hidden {
			v := w[i*(g.Width+g.Hidden)+j]
			if j < g.Width {
				forStates[j*rows+i] = v
			} else {
				forTask[(j-g.Width)*rows+i] = v
			}
		}
	}
	return map[string][]float32{
		"tasks.intent": params["e"], "states.weight": forStates, "task.weight": forTask, "task.bias": params["b"],
		"score.weight": params["v"], "score.bias": params["c"], "gates.intent": params["g"],
	}
}

func TestAttentionEqualsItsFormula(t *testing.T) {
	g := readGolden(t, "attention.json")
	got := slices.Sorted(maps.Keys(g.Scales))
	if !slices.Equal(got, []string{"exact", "gated", "length", "residual"}) {
		t.Fatalf("goldens of the scales %q", got)
	}
	for scale, want := range g.Scales {
		t.Run(scale, func(t *testing.T) {
			checkFormula(t, g, want, func(env Env) (Fusion, error) {
				return newAttention(AttentionOptions{HiddenSize: g.Hidden, Scale: scale}, env)
			})
		})
	}
}

func TestConcatEqualsItsFormula(t *testing.T) {
	g := readGolden(t, "concat.json")
	checkFormula(t, g, g.values, func(env Env) (Fusion, error) { return newConcat(ConcatOptions{g.Hidden}, env) })
}

// checkFormula compares the states, the attention and the gradients of a fusion for the task intent with a golden.
func checkFormula(t *testing.T, g golden, want values, build func(Env) (Fusion, error)) {
	params := nn.NewParams(1)
	f, err := build(Env{Tasks: []string{"slots", "intent"}, Width: g.Width, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	set := g.named(g.Params)
	for _, w := range params.All() {
		copy(w.Data, set[w.Name])
	}

	p := nn.NewPass(1)
	var attention []float32
	p.Observe(AttentionOf("intent"),
		func(_ int, _ []int, values []float32) { attention = append(attention, values...) })
	h := p.Input(g.H, g.Starts[len(g.Starts)-1], g.Width)
	seen := f.Fuse(p, nn.Hidden{States: h, Rows: g.rows()}, "intent")
	loss := weighted(seen.States, g.Weights)
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	into, dh := nn.NewGradients(params.All()), make([]float32, len(g.H))
	if err := p.Backward(loss, 1, into, []*nn.Node{h}, [][]float32{dh}); err != nil {
		t.Fatal(err)
	}

	compare(t, "states seen", nn.Values(seen.States), want.Out)
	compare(t, "attention", attention, want.Attention)
	compare(t, "gradient at the states", dh, want.DH)
	gradients := g.named(want.DParams)
	for _, w := range params.All() {
		got := into.Of(w)
		if strings.HasSuffix(w.Name, ".slots") {
			compare(t, "gradient of another task", got, make([]float32, w.Size()))
			continue
		}
		compare(t, "gradient of "+w.Name, got, gradients[w.Name])
	}
}

// weighted returns Σ weights·x.
func weighted(x *nn.Node, weights []float32) *nn.Node {
	return nn.Operation{
		Name: "weighted",
		Forward: func(in [][]float32, out []float32) {
			for i, v := range in[0] {
				out[0] += v * weights[i]
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, w := range weights {
				dIn[0][i] += dOut[0] * w
			}
		},
	}.Apply(x)
}

func compare(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range want {
		if !(math.Abs(float64(got[i]-want[i])) <= 1e-5) {
			t.Errorf("%s at %d = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestFlatAttentionOfScaleLengthChangesNothing(t *testing.T) {
	params := nn.NewParams(1)
	f, err := newAttention(AttentionOptions{Scale: "length"}, Env{Tasks: []string{"a"}, Width: 2, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range params.All() {
		clear(w.Data)
	}
	p := nn.NewPass(1)
	h := []float32{1, 2, 3, 4, 5, 6}
	seen := f.Fuse(p, nn.Hidden{States: p.Input(h, 3, 2), Rows: nn.Rows{Starts: []int{0, 3}}}, "a")
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	compare(t, "states seen", nn.Values(seen.States), h)
}

func TestAttentionWarningsOnWordsThatItHides(t *testing.T) {
	for scale, want := range map[string]int{"exact": 1, "length": 0, "residual": 0, "gated": 0} {
		for _, tagged := range [][]string{{"slots"}, nil} {
			f, err := newAttention(AttentionOptions{Scale: scale},
				Env{Tasks: []string{"intent", "slots"}, Tagged: tagged, Width: 4, Params: nn.NewParams(1)})
			if err != nil {
				t.Fatal(err)
			}
			said := f.Describe().Warnings
			if len(said) != want*len(tagged) {
				t.Errorf("%s, tasks %q tag words: warnings %q", scale, tagged, said)
			}
			if len(said) > 0 && !strings.Contains(said[0], `"slots"`) {
				t.Errorf("%q does not name the task", said[0])
			}
		}
	}
}

func TestAGateIsOfItsTaskAlone(t *testing.T) {
	params := nn.NewParams(1)
	f, err := newAttention(AttentionOptions{Scale: "gated"},
		Env{Tasks: []string{"closed", "open", "new"}, Width: 2, Params: params})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range params.All() {
		clear(w.Data) // attention is uniform
		switch w.Name {
		case "gates.closed":
			w.Data[0] = -90
		case "gates.open":
			w.Data[0] = 90
		}
	}
	for task, want := range map[string]struct {
		sigma float32
		seen  []float32
	}{
		"closed": {0, []float32{3, 6, 9, 12}},
		"open":   {1, []float32{1.5, 3, 4.5, 6}},
		"new":    {0.5, []float32{2.25, 4.5, 6.75, 9}},
	} {
		p := nn.NewPass(1)
		shared := nn.Hidden{States: p.Input([]float32{3, 6, 9, 12}, 2, 2), Rows: nn.Rows{Starts: []int{0, 2}}}
		seen := f.Fuse(p, shared, task)
		if err := p.Forward(); err != nil {
			t.Fatal(err)
		}
		compare(t, "states of "+task, nn.Values(seen.States), want.seen)
		compare(t, "gate of "+task, f.Describe().Figures()[task], []float32{want.sigma})
	}
}

func TestAttentionOptions(t *testing.T) {
	env := Env{Tasks: []string{"a"}, Width: 4}
	for _, c := range []struct {
		AttentionOptions
		want string
	}{
		{AttentionOptions{Scale: "exct"}, `scale: want exact, length, residual or gated, have "exct"`},
		{AttentionOptions{Scale: "exact", HiddenSize: -1}, "hidden_size: want a whole number in [0, 16384], have -1"},
		{AttentionOptions{Scale: "exact", HiddenSize: 1 << 40},
			"hidden_size: want a whole number in [0, 16384], have 1099511627776"},
	} {
		env.Params = nn.NewParams(1)
		_, err := Registry().Build("attention", c.AttentionOptions, env)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.AttentionOptions, err, c.want)
		}
	}
}
