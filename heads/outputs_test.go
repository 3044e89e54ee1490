package heads

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// label is the target of a label's number.
func label(id int) corpus.Target { return &outputs.LabelTarget{ID: id} }

// held is the target of the numbers of labels that hold.
func held(ids ...int) corpus.Target { return &outputs.LabelsTarget{IDs: append([]int{}, ids...)} }

// tagged is the target of words' tags.
func tagged(ids ...int) corpus.Target { return &outputs.TagsTarget{IDs: ids} }

// number is the target of a number.
func number(v float64) corpus.Target { return &outputs.NumberTarget{Value: v} }

// normalText and anomaly are targets of texts that are normal and that are not.
var normalText, anomaly corpus.Target = &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}

// distances are predictions of distances from normal texts.
func distances(all ...float64) []corpus.Prediction {
	predicted := make([]outputs.AnomalyPrediction, len(all))
	for i, d := range all {
		predicted[i].Distance = d
	}
	return outputs.Erase(predicted)
}

// alarmed tells whether a prediction raises an alarm.
func alarmed(p corpus.Prediction) bool {
	alarm := outputs.As[outputs.AnomalyPrediction](p).Alarm
	return alarm != nil && *alarm
}
