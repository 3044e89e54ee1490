package parttest

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// Output checks a kind of outputs by its own sample.
func Output(t *testing.T, kind *outputs.Kind) {
	t.Helper()
	if kind.Sample() == nil {
		t.Fatalf("outputs of kind %q have no Sample to test them with", kind.Name())
	}
	gold, right := judgedTexts(kind)
	t.Run("targets and predictions survive as bytes", func(t *testing.T) {
		for i := range gold {
			checkTargetBytes(t, kind, gold[i])
			checkPredictionBytes(t, kind, right[i])
		}
		checkTargetBytes(t, kind, nil)
	})
	t.Run("labels can be listed, renamed and numbered", func(t *testing.T) { checkNames(t, kind) })
	t.Run("Right tells right from wrong predictions", func(t *testing.T) {
		for i := range gold {
			if kind.Discrete() && !kind.Right(gold[i], right[i]) {
				t.Errorf("target %+v: %+v is not right", gold[i], right[i])
			}
			if wrong := wrongOf(kind, right[i]); kind.Discrete() && kind.Right(gold[i], wrong) {
				t.Errorf("target %+v: %+v is right", gold[i], wrong)
			}
		}
	})
	t.Run("predictions are written as JSON objects", func(t *testing.T) {
		for i, p := range right {
			checkJSON(t, kind, p, Input(t, i))
		}
	})
}

// Input is the input of the predictions of a kind's sample number i: an example of as many words, with a pair, whose
// tokens are its words.
func Input(t *testing.T, i int) outputs.Input {
	t.Helper()
	words := slices.Repeat([]string{"word"}, lengths[i])
	e, err := corpus.Record{Fields: map[string]any{"words": words, "pair": "a red kite"}}.Example()
	if err != nil {
		t.Fatal(err)
	}
	tokenizer, err := corpus.TrainWordPiece(slices.Values([]string{"word", "a red kite"}), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	e.Windows = corpus.Windowing{}.Encode(tokenizer, &e)
	return outputs.Input{Example: &e, Labels: corpus.NewLabels(labels), Tokenizer: tokenizer}
}

func checkTargetBytes(t *testing.T, kind *outputs.Kind, target corpus.Target) {
	t.Helper()
	got, err := kind.UnmarshalTarget(kind.MarshalTarget(target))
	if err != nil || !reflect.DeepEqual(got, target) {
		t.Errorf("target %+v is read back as %+v, %v", target, got, err)
	}
}

func checkPredictionBytes(t *testing.T, kind *outputs.Kind, p corpus.Prediction) {
	t.Helper()
	got, err := kind.UnmarshalPrediction(kind.MarshalPrediction(p))
	if err != nil || !reflect.DeepEqual(got, p) {
		t.Errorf("prediction %s is read back as %s, %v", show(p), show(got), err)
	}
}

// checkNames renames the labels of targets, and numbers them.
func checkNames(t *testing.T, kind *outputs.Kind) {
	set := corpus.NewLabels(labels)
	for i, words := range lengths {
		target, _ := kind.Sample().Text(i, words, set)
		named := 0
		kind.Names(target, func(name *string) {
			named++
			if set.ID(*name) < 0 {
				t.Errorf("label %q is not one of the sample's", *name)
			}
			*name = "renamed"
		})
		kind.Names(target, func(name *string) {
			if *name != "renamed" {
				t.Errorf("label %q stays where it is renamed", *name)
			}
		})
		kind.AssignIDs(target, set)
		if unknown := kind.Unknown(target); named > 0 && len(unknown) == 0 || len(unknown) > named {
			t.Errorf("of %d labels that do not occur in training Unknown lists %q", named, unknown)
		}
		if named > 0 && !kind.HasLabels {
			t.Error("targets name labels, but the kind has none")
		}
	}
}

func checkJSON(t *testing.T, kind *outputs.Kind, p corpus.Prediction, in outputs.Input) {
	t.Helper()
	text, err := json.Marshal(kind.JSON(p, in))
	if err != nil || !strings.HasPrefix(string(text), "{") {
		t.Errorf("prediction %s is written as %s, %v; want an object", show(p), text, err)
	}
}
