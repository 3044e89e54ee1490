package grade

import (
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

func init() {
	tasks.Register("grading", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		return grading{env.Heads}, nil
	})
}

// grading predicts the grade of a text, whose target is in the field grade of a record, or grade.HEAD. Its metrics are qwk, the kappa
// that weighs errors by the square of the distance of ranks (Cohen 1968), and mae, the mean distance of ranks.
type grading struct{ heads []string }

// Output returns the kind of outputs of the task's heads.
func (g grading) Output() *outputs.Kind { return Kind }

// Example makes an example of a record.
func (g grading) Example(r corpus.Record) (corpus.Example, error) {
	e, err := r.Example()
	if err != nil {
		return e, err
	}
	for _, head := range g.heads {
		field := "grade." + head // if data has {grade: {HEAD: COLUMN}}
		if _, own := r.Fields[field]; !own {
			field = "grade"
		}
		grade, ok, err := r.String(field)
		if err != nil {
			return e, err
		}
		var target corpus.Target
		if ok {
			target = &Target{Grade: grade}
		}
		e.Targets = append(e.Targets, target)
	}
	return e, nil
}

// Evaluate compares ranks. A grade that training does not have, whose rank is below 0, is wrong whatever is predicted.
func (g grading) Evaluate(targets []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
	targetRanks, predictedRanks := map[int]float64{}, map[int]float64{} // how often each occurs
	squares, distances, n := 0.0, 0.0, float64(len(targets))
	predictions := outputs.AllAs[Prediction](predicted)
	for i, t := range outputs.AllAs[Target](targets) {
		rank := predictions[i].Rank
		d := math.Abs(float64(t.Rank - rank))
		squares, distances = squares+d*d, distances+d
		targetRanks[t.Rank]++
		predictedRanks[rank]++
	}
	expected := 0.0 // of the squares, by chance: whole numbers, so that any order gives the same sum
	for a, x := range targetRanks {
		for b, y := range predictedRanks {
			expected += x * y * float64((a-b)*(a-b))
		}
	}
	kappa := 0.0
	if expected > 0 {
		kappa = math.Max(-1, 1-squares*n/expected)
	}
	return []tasks.Metric{{Name: "qwk", Value: kappa}, {Name: "mae", Value: distances / math.Max(1, n), Lower: true}}
}
