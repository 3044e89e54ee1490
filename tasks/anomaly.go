package tasks

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() { Register("anomaly", AnomalyOptions{Normal: "normal"}, NewAnomaly) }

// AnomalyOptions are the keys that may stand beside `type: anomaly`.
type AnomalyOptions struct {
	Normal string `yaml:"normal" takes:"a label" doc:"label of normal texts; any other label marks an anomaly"`
}

// anomaly is anomaly detection: the prediction is the distance of a text from normal texts. Training uses normal texts
// alone; anomalies are for evaluation on dev and test. Its metrics are auroc, the probability that the distance of an
// anomaly is above that of a normal text (Hanley & McNeil 1982), and average_precision, both as defined by
// scikit-learn; recall, the fraction of anomalies that raise an alarm; and specificity, the fraction of normal texts
// that do not.
type anomaly struct {
	heads  []string
	normal string
}

// NewAnomaly makes a task whose heads each predict a distance. A record has its label in the field label, or label.HEAD
// for a head of its own.
func NewAnomaly(o AnomalyOptions, env Env) (Task, error) {
	if o.Normal == "" {
		return nil, errors.New("normal is empty; it names the label of normal texts")
	}
	return anomaly{env.Heads, o.Normal}, nil
}

func (a anomaly) Output() *outputs.Kind { return outputs.Anomaly }

func (a anomaly) Describe() Description {
	return Description{CheckTargets: a.checkTargets, Undefined: a.undefined}
}

func (a anomaly) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, a.heads, nil, func(_ corpus.Example, head string) (corpus.Target, error) {
		label, labelled, err := r.String(fieldOf(r, head, outputs.Anomaly, nil))
		if err != nil || !labelled {
			return nil, err
		}
		return &outputs.AnomalyTarget{Anomalous: label != a.normal}, nil
	})
}

func (a anomaly) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	var scores []float64
	var anomalous []bool
	var alarms, of [2]float64 // of normal texts, of anomalies
	for g, p := range pairs[outputs.AnomalyTarget, outputs.AnomalyPrediction](gold, predicted) {
		scores, anomalous = append(scores, p.Distance), append(anomalous, g.Anomalous)
		kind := 0
		if g.Anomalous {
			kind = 1
		}
		of[kind]++
		if p.Alarm != nil && *p.Alarm {
			alarms[kind]++
		}
	}
	return []Metric{
		{Name: "auroc", Value: auroc(scores, anomalous)},
		{Name: "average_precision", Value: averagePrecision(scores, anomalous)},
		{Name: "recall", Value: alarms[1] / max(1, of[1])},
		{Name: "specificity", Value: (of[0] - alarms[0]) / max(1, of[0])},
	}
}

func (a anomaly) checkTargets(gold []corpus.Target, split, head string, tunes bool) []string {
	anomalies, normal := countAnomalies(gold)
	const noNormal = "%s has no normal text: auroc and specificity of head %q are undefined"
	const noAnomaly = "%s has no anomaly: auroc, average_precision and recall of head %q are undefined"
	switch {
	case normal == 0 && anomalies > 0 && tunes:
		return []string{fmt.Sprintf(noNormal+"; it has no threshold of alarms", split, head)}
	case normal == 0 && anomalies > 0:
		return []string{fmt.Sprintf(noNormal, split, head)}
	case normal > 0 && anomalies == 0:
		return []string{fmt.Sprintf(noAnomaly, split, head)}
	}
	return nil
}

// countAnomalies counts the anomalies and the normal texts; a text without a label is neither.
func countAnomalies(gold []corpus.Target) (anomalies, normal int) {
	for _, t := range outputs.AllAs[outputs.AnomalyTarget](gold) {
		switch {
		case t == nil:
		case t.Anomalous:
			anomalies++
		default:
			normal++
		}
	}
	return anomalies, normal
}

// auroc is the area under the ROC curve, by the ranks of scores; 0 if no score or all are of positives.
func auroc(scores []float64, positive []bool) float64 {
	n, sum := 0.0, 0.0
	for i, rank := range ranks(scores) {
		if positive[i] {
			n++
			sum += rank
		}
	}
	rest := float64(len(scores)) - n
	if n == 0 || rest == 0 {
		return 0
	}
	return (sum - n*(n+1)/2) / (n * rest)
}

// averagePrecision is Σ (R_k - R_k-1)·P_k over the scores, highest first, as thresholds; 0 if there are no positives.
func averagePrecision(scores []float64, positive []bool) float64 {
	order := make([]int, len(scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(scores[j], scores[i]) })
	all, right, before, sum := 0.0, 0.0, 0.0, 0.0
	for k, i := range order {
		if positive[i] {
			right++
		}
		all++
		if k+1 < len(order) && scores[order[k+1]] == scores[i] {
			continue // both are above the threshold or neither is
		}
		sum += (right - before) * right / all
		before = right
	}
	if right == 0 {
		return 0
	}
	return sum / right
}

func (a anomaly) undefined(gold []corpus.Target, metric string) bool {
	anomalies, normal := countAnomalies(gold)
	switch metric {
	case "auroc":
		return anomalies == 0 || normal == 0
	case "specificity":
		return normal == 0
	}
	return anomalies == 0
}
