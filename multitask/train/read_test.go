package train

import (
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// reads records which rows an encoder's passes read, and computes all of them if it is to.
type reads struct {
	encoders.Encoder
	all   bool
	rows  [][]int
	train [][]int // of passes in training
}

func (r *reads) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if p.Training {
		r.train = append(r.train, mode.Read)
	} else {
		r.rows = append(r.rows, mode.Read)
	}
	if r.all {
		mode.Read = nil
	}
	return r.Encoder.Encode(p, tokens, mode)
}

// readModel is a small model with a fusion and an encoder that records.
func readModel(t *testing.T, f string) (*multitask.Model, *reads) {
	t.Helper()
	m := smallModel(t, "none", 0)
	choice, err := fusion.Registry().FromString(f, "")
	if err != nil {
		t.Fatal(err)
	}
	if m.Fusion, err = choice.Build(fusion.Env{Tasks: []string{"topic", "tags", "mood"}, Width: 12,
		Layers: m.Encoder.Describe().Layers, Params: m.Params.In("other fusion")}); err != nil {
		t.Fatal(err)
	}
	encoder := &reads{Encoder: m.Encoder}
	m.Encoder = encoder
	return m, encoder
}

func TestPredictionsComputeTheStatesThatHeadsRead(t *testing.T) {
	tests := []struct {
		name, fusion string
		group        int
		change       func(m *multitask.Model)
		want         func(rows nn.Rows) []int
	}{
		{"the first tokens of texts", "none", 1, nil, func(rows nn.Rows) []int { return rows.Starts[:rows.Texts()] }},
		{"behind an adapter", "adapter", 1, nil, func(rows nn.Rows) []int { return rows.Starts[:rows.Texts()] }},
		{"and those of words", "none", 0, nil, func(rows nn.Rows) []int {
			all := slices.Concat(rows.Starts[:rows.Texts()], rows.Words)
			slices.Sort(all)
			return all
		}},
		{"all for the attention fusion", "attention", 1, nil, func(nn.Rows) []int { return nil }},
		{"all for a mix of layers", "mix", 1, nil, func(nn.Rows) []int { return nil }},
		{"all for a mean", "none", 1, func(m *multitask.Model) {
			task := &m.Groups[1].Tasks[0]
			o := heads.LinearOptions{Pool: "mean", ObjectiveOptions: heads.PlainObjective}
			head, err := heads.Registry().Build("linear", o, heads.Env{Task: task.Name, Width: 12,
				Output: task.Type.Output(), Labels: smallLabels.Names(), Params: m.Params.In("mean")})
			if err != nil {
				t.Fatal(err)
			}
			task.Heads[0].Head = head
		}, func(nn.Rows) []int { return nil }},
		{"all for a head that does not say", "none", 1, func(m *multitask.Model) {
			of := &m.Groups[1].Tasks[0].Heads[0]
			of.Head = silent{of.Head}
		}, func(nn.Rows) []int { return nil }},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m, encoder := readModel(t, test.fusion)
			if test.change != nil {
				test.change(m)
			}
			examples, p := smallData(m, 9)[test.group].Train, nn.NewPass(1)
			got, err := m.Predict(p, &m.Groups[test.group], examples)
			if err != nil {
				t.Fatal(err)
			}
			want := test.want(corpus.Pack(examples).Tokens.Rows)
			if len(encoder.rows) != 1 || !slices.Equal(encoder.rows[0], want) {
				t.Errorf("rows %v are read, want %v", encoder.rows, want)
			}
			encoder.all = true
			whole, err := m.Predict(p, &m.Groups[test.group], examples)
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, whole) {
				t.Errorf("predictions %+v\nare %+v where all states are computed", got, whole)
			}
		})
	}
}

func TestTrainingReadsAllStatesAndEvaluationsThoseThatHeadsRead(t *testing.T) {
	m, encoder := readModel(t, "none")
	train(t, m, smallData(m, 8), smallPlan())
	if len(encoder.train) == 0 || slices.ContainsFunc(encoder.train, func(rows []int) bool { return rows != nil }) {
		t.Errorf("rows %v are read in training; want all", encoder.train)
	}
	if len(encoder.rows) == 0 || slices.ContainsFunc(encoder.rows, func(rows []int) bool { return rows == nil }) {
		t.Errorf("rows %v are read in evaluations; want some", encoder.rows)
	}
}

// silent is a head whose description does not say what it reads.
type silent struct{ heads.Head }

func (silent) Describe() heads.Description { return heads.Description{} }
