package parttest

import (
	"reflect"
	"testing"

	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Fusion checks the fusion registered as name, made with options written as YAML, before the default head of one label,
// for each kind of outputs that has this default.
func Fusion(t *testing.T, name, options string) {
	t.Helper()
	made := chosen(t, fusion.Registry(), name, options)
	tasks := []string{"first", "second"}
	build := func(seed uint64) (fusion.Fusion, nn.Params, error) {
		params := nn.NewParams(seed)
		f, err := made(fusion.Env{Tasks: tasks, Width: width, Layers: layers, Params: params.In("fusion")})
		return f, params, err
	}
	f, _, err := build(1)
	if err != nil {
		t.Fatal(err)
	}

	for _, task := range tasks {
		t.Run("task "+task+" receives the rows of the shared states", func(t *testing.T) { checkRows(t, f, task) })
	}
	if f.Describe().PerToken {
		t.Run("a token's state does not depend on other tokens", func(t *testing.T) { checkPerToken(t, f, tasks[0]) })
	}
	common := heads.Default(outputs.Label)
	madeHead := chosen(t, heads.Registry(), common, "")
	for _, kind := range sampled() {
		if heads.Default(kind) != common {
			continue // heads of other kinds may have no parameters, or change their input
		}
		before := func(seed uint64) (heads.Head, nn.Params, error) {
			f, params, err := build(seed)
			if err != nil {
				return nil, params, err
			}
			env := headEnv(kind, params)
			env.Task = tasks[1]
			head, err := madeHead(env)
			return &fused{head, f, f.Describe().Layers}, params, err
		}
		t.Run("before a head of "+kind.String(), func(t *testing.T) { checkHead(t, kind, before) })
	}
}

type fused struct {
	heads.Head
	fusion fusion.Fusion
	wanted nn.LayerSet
}

// Describe leaves out which states the head reads: a fusion may make each of them of all.
func (f *fused) Describe() heads.Description {
	d := f.Head.Describe()
	d.Reads = nil
	return d
}

func (f *fused) Logits(p *nn.Pass, shared nn.Hidden) heads.Logits {
	return f.Head.Logits(p, f.fusion.Fuse(p, shared, "second"))
}

// fuse returns a batch's shared states, and those that a fusion makes of them for a task.
func fuse(t *testing.T, f fusion.Fusion, task string, b batch) (shared, seen nn.Hidden) {
	t.Helper()
	p := nn.NewPass(1)
	shared = nn.Hidden{States: p.Input(b.states, b.rows.Tokens(), width), Rows: b.rows}
	if f.Describe().Layers == nn.AllLayers {
		shared.Layers = []*nn.Node{p.Input(b.states, b.rows.Tokens(), width), p.Input(b.states, b.rows.Tokens(), width),
			shared.States}
	}
	seen = f.Fuse(p, shared, task)
	if err := p.Forward(); err != nil {
		t.Fatalf("forward: %v", err)
	}
	return shared, seen
}

func checkPerToken(t *testing.T, f fusion.Fusion, task string) {
	b := pack(labelledTexts(outputs.Tags)...)
	_, want := fuse(t, f, task, b)
	for _, row := range []int{0, b.rows.Tokens() - 1} {
		alone := b
		alone.states = leftOut(b.states, []int{row})
		_, got := fuse(t, f, task, alone)
		from, to := row*width, (row+1)*width
		if !sameBits(nn.Values(got.States)[from:to], nn.Values(want.States)[from:to]) {
			t.Errorf("the state of token %d is another where all others are NaN", row)
		}
	}
}

func checkRows(t *testing.T, f fusion.Fusion, task string) {
	b := pack(labelledTexts(outputs.Tags)...)
	shared, seen := fuse(t, f, task, b)
	if got, want := seen.States.Shape(), shared.States.Shape(); !got.Eq(want) {
		t.Errorf("the states seen have the shape %v, those shared %v", got, want)
	}
	if !reflect.DeepEqual(seen.Rows, b.rows) {
		t.Errorf("the rows seen are %+v, those shared %+v", seen.Rows, b.rows)
	}
	if got := nn.Values(shared.States); !sameBits(got, b.states) {
		t.Error("the shared states were changed")
	}
}
