package run

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask/train"
)

// Numbers up to 20 beside labels: the gradients of their squared error leave those of the labels without effect.
func TestRawNumbersBesideLabelsGiveAWarning(t *testing.T) {
	var data strings.Builder
	for i := range 60 {
		fmt.Fprintf(&data, `{"text": "note %d %s", "labels": ["%c"], "value": %d}`+"\n", i,
			strings.Repeat("a ", i%5), 'a'+i%3, i%21)
	}
	for head, want := range map[string]bool{
		"type: linear":                  false,
		"type: regression":              false,
		"type: regression, scale: none": true,
	} {
		experiment := fmt.Sprintf("  - {name: codes, type: multi_label, data: {train: a.jsonl, dev: a.jsonl}}\n"+
			"  - {name: amount, type: regression, data: {same_as: codes}, heads: [{%s}]}\n", head)
		files := map[string]string{"a.jsonl": data.String()}

		// check
		checked, err := prepare(t, experiment, files)
		if err != nil {
			t.Fatal(err)
		}
		expected, tooLarge, err := checked.Expect(context.Background())
		if err != nil || tooLarge != nil {
			t.Fatal(err, tooLarge)
		}

		// check, where steps take too long for ten of them
		slow, err := prepare(t, experiment, files)
		if err != nil {
			t.Fatal(err)
		}
		short, _, err := slow.expect(context.Background(), 1)
		if err != nil || short.Measured != 1 {
			t.Fatalf("measured %d steps, %v; want 1", short.Measured, err)
		}

		// train
		trained, err := prepare(t, experiment, files)
		if err != nil {
			t.Fatal(err)
		}
		var warnings []train.Warning
		if _, err := trained.Train(context.Background(), filepath.Join(t.TempDir(), "run"), func(event train.Event) error {
			if warning, is := event.(train.Warning); is {
				warnings = append(warnings, warning)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}

		const begin, remedy = `task "amount": head "amount": its gradient at the shared states is `, "scale: standard"
		for from, got := range map[string][]train.Warning{"check": expected.Warnings, "train": warnings,
			"check by one step": short.Warnings} {
			if (len(got) == 1) != want || want && (!strings.HasPrefix(got[0].Text, begin) ||
				!strings.Contains(got[0].Text, remedy)) {
				t.Errorf("heads: [{%s}]: %s has the warnings %q, want one: %v", head, from, got, want)
			}
		}
	}
}
