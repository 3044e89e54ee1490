package run

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// The thresholds of a head of many labels are its objective's, those of an alarm are the head's own.
func TestCheckpointListsThresholds(t *testing.T) {
	const data = `{"text": "so good", "label": "normal", "labels": ["good", "loud"]}` + "\n" +
		`{"text": "so bad", "label": "odd", "labels": ["bad"]}` + "\n"
	r, err := prepare(t, "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: mood, type: sentiment, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: moods, type: multi_label, data: {train: a.jsonl, dev: a.jsonl, label: labels}}\n",
		map[string]string{"a.jsonl": data}, "training.num_epochs=1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Train(context.Background(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	about, err := checkpoint.Read(t.Context(), filepath.Join("run", runfolder.BestDir), "run")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []int{1, 0, 3} {
		if got := len(about.Tasks[i].Heads[0].Thresholds); got != want {
			t.Errorf("task %q has %d thresholds, want %d", about.Tasks[i].Name, got, want)
		}
	}
}
