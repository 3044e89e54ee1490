package resume

import (
	"reflect"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
)

func TestDifferencesAreByKeys(t *testing.T) {
	for _, c := range []struct {
		was, now string
		want     []difference
	}{
		{"{base_model: a, encoder: {type: transformer, layers: 4}}", "{base_model: a}",
			[]difference{{of: "experiment", what: "model.encoder.layers", was: "4", now: "none"},
				{of: "experiment", what: "model.encoder.type", was: "transformer", now: "none"}}},
		{"{encoder: {type: transformer, layers: 4}}", "{encoder: {type: transformer, layers: 3}}",
			[]difference{{of: "experiment", what: "model.encoder.layers", was: "4", now: "3"}}},
	} {
		got, err := experimentDifferences([]byte("model: "+c.was), []byte("model: "+c.now))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s, then %s: %v, %v; want %v", c.was, c.now, got, err, c.want)
		}
	}
}

func TestShardsOfACheckpointThatAreNoPowerOfTwo(t *testing.T) {
	for _, shards := range []string{"3", "-2", "many"} {
		p := &Point{Checkpoint: "run/last", State: State{Experiment: "training: {shards: " + shards + "}\n"}}
		want := `run/last: its experiment has "` + shards + `" shards; want a power of two`
		if err := p.TakeShards(&config.Experiment{}); err == nil || err.Error() != want {
			t.Errorf("TakeShards = %v, want %s", err, want)
		}
	}
}
