package tasks

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() { Register("regression", RegressionOptions{}, NewRegression) }

// RegressionOptions are the keys that may stand beside `type: regression`.
type RegressionOptions struct {
	Range []float64 `yaml:"range" takes:"[LEAST, MOST]" doc:"of the gold numbers; none: any number"`
}

// regression predicts a number for a text, or for a pair of texts, which a record has in the field value, label or
// score. Its metrics are the correlations pearson (Pearson 1895) and spearman (Spearman 1904, of ranks), and the errors
// rmse, root mean square, and mae, mean absolute, in the unit of the numbers.
type regression struct {
	heads []string
	limit []float64
}

// NewRegression makes a task whose heads each predict a number. A record has it in the field value, or label, or score,
// or value.HEAD for a head of its own.
func NewRegression(o RegressionOptions, env Env) (Task, error) {
	if n := len(o.Range); n != 0 && (n != 2 || !(o.Range[0] < o.Range[1])) {
		return nil, fmt.Errorf("range is %v; want [LEAST, MOST]", o.Range)
	}
	return regression{env.Heads, o.Range}, nil
}

func (t regression) Output() *outputs.Kind { return outputs.Number }

// numberFields are the fields of a number beside that of its kind.
var numberFields = []string{"label", "score"}

func (t regression) Describe() Description {
	return Description{SameFields: numberFields, Undefined: t.undefined}
}

func (t regression) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, t.heads, nil, func(_ corpus.Example, head string) (corpus.Target, error) {
		field := fieldOf(r, head, outputs.Number, numberFields)
		text, ok, err := r.String(field)
		if err != nil || !ok {
			return nil, err
		}
		v, isNumber := floats.Parse(text)
		switch {
		case !isNumber:
			return nil, &corpus.ValueError{Place: r.Place, Field: field, Value: text, Want: "number"}
		case math.Abs(v) > outputs.LargestNumber:
			return nil, fmt.Errorf("%s: field %q is %q; want a number from -%[4]g to %[4]g: rescale the numbers",
				r.Place, field, text, outputs.LargestNumber)
		case len(t.limit) > 0 && (v < t.limit[0] || v > t.limit[1]):
			return nil, fmt.Errorf("%s: field %q is %v; range is %v to %v", r.Place, field, v, t.limit[0], t.limit[1])
		}
		return &outputs.NumberTarget{Value: v}, nil
	})
}

func (t regression) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	var want, got []float64
	for g, p := range pairs[outputs.NumberTarget, outputs.NumberPrediction](gold, predicted) {
		want, got = append(want, g.Value), append(got, p.Value)
	}
	return judgeNumbers(want, got)
}

// judgeNumbers compares numbers. The correlations are 0 if all numbers of one side are equal.
func judgeNumbers(want, got []float64) []Metric {
	squares, distances := 0.0, 0.0
	for i, w := range want {
		squares += (got[i] - w) * (got[i] - w)
		distances += math.Abs(got[i] - w)
	}
	n := float64(max(1, len(want)))
	return []Metric{
		{Name: "pearson", Value: correlation(want, got)},
		{Name: "spearman", Value: correlation(ranks(want), ranks(got))},
		{Name: "rmse", Value: math.Sqrt(squares / n), Lower: true},
		{Name: "mae", Value: distances / n, Lower: true},
	}
}

// correlation is Pearson's coefficient; 0 if all numbers of one side are equal.
func correlation(x, y []float64) float64 {
	mx, my := mean(x), mean(y)
	var xx, yy, xy float64
	for i := range x {
		dx, dy := x[i]-mx, y[i]-my
		xx += dx * dx
		yy += dy * dy
		xy += dx * dy
	}
	if allEqual(x) || allEqual(y) || xx == 0 || yy == 0 {
		return 0
	}
	return max(-1, min(1, xy/math.Sqrt(xx)/math.Sqrt(yy)))
}

// allEqual reports whether all numbers are equal; by rounding their mean may differ from them.
func allEqual(x []float64) bool { return len(x) == 0 || slices.Min(x) == slices.Max(x) }

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(max(1, len(x)))
}

// ranks returns the rank of each number, from 1; equal numbers have the mean of their ranks.
func ranks(x []float64) []float64 {
	order := make([]int, len(x))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(x[i], x[j]) })
	ranks := make([]float64, len(x))
	for from := 0; from < len(order); {
		to := from
		for to < len(order) && x[order[to]] == x[order[from]] {
			to++
		}
		to = max(to, from+1) // NaN equals no number
		for _, i := range order[from:to] {
			ranks[i] = float64(from+1+to) / 2
		}
		from = to
	}
	return ranks
}

// undefined: equal numbers correlate with nothing. Equal predictions of different numbers
// are a fault of the model, and their correlation is 0.
func (t regression) undefined(gold []corpus.Target, metric string) bool {
	var numbers []float64
	for _, g := range outputs.AllAs[outputs.NumberTarget](gold) {
		numbers = append(numbers, g.Value)
	}
	return (metric == "pearson" || metric == "spearman") && allEqual(numbers)
}

func init() { Register("similarity", RegressionOptions{}, NewSimilarity) }

// similarity predicts the similarity of the two texts of a pair, a number. Unlike in a regression, they are encoded
// separately, so that texts encoded before can be compared. It reads the fields of a regression and has its metrics,
// of which STS benchmarks report pearson and spearman (Cer et al. 2017).
type similarity struct{ regression }

// NewSimilarity makes a task whose heads each predict a number for a pair. A record has the fields text, pair, and
// value, or label, or score, or value.HEAD for a head of its own.
func NewSimilarity(o RegressionOptions, env Env) (Task, error) {
	task, err := NewRegression(o, env)
	if err != nil {
		return nil, err
	}
	return similarity{task.(regression)}, nil
}

func (s similarity) Output() *outputs.Kind { return outputs.Similarity }

func (s similarity) Example(r corpus.Record) (corpus.Example, error) {
	e, err := s.regression.Example(r)
	if err == nil && !e.Paired {
		return corpus.Example{}, fmt.Errorf("%s: a text without its pair; data: {pair: FIELD} names the field that "+
			"holds it", r.Place)
	}
	return e, err
}
