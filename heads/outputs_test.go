package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// label returns the target of the label with the id.
func label(id int) corpus.Target { return &outputs.LabelTarget{ID: id} }

// labelSet returns the target of the labels with the ids.
func labelSet(ids ...int) corpus.Target { return &outputs.LabelsTarget{IDs: append([]int{}, ids...)} }

// tagged returns the target of words with tags of the ids.
func tagged(ids ...int) corpus.Target { return &outputs.TagsTarget{IDs: ids} }

// number returns the target of a number.
func number(v float64) corpus.Target { return &outputs.NumberTarget{Value: v} }

// normalText and anomaly are the targets of a normal text and of an anomaly.
var normalText, anomaly corpus.Target = &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}

// distances returns predictions with these distances from normal texts.
func distances(all ...float64) []corpus.Prediction {
	predicted := make([]outputs.AnomalyPrediction, len(all))
	for i, d := range all {
		predicted[i].Distance = d
	}
	return outputs.Erase(predicted)
}

// alarmed reports whether a prediction has an alarm that is true.
func alarmed(p corpus.Prediction) bool {
	alarm := outputs.As[outputs.AnomalyPrediction](p).Alarm
	return alarm != nil && *alarm
}
