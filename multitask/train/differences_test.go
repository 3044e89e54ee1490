package train

import (
	"bytes"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/nn"
)

func TestDifferencesNameWhatASnapshotHasOtherwise(t *testing.T) {
	start := func(change func(data []multitask.Data, p *Plan)) *Training {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		change(data, &plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	first := start(func([]multitask.Data, *Plan) {})
	advance(t, first)
	s := mustSnapshot(t, first)
	s.Attached = []byte("a note")
	s = written(t, s)
	if !bytes.Equal(s.Attached, []byte("a note")) {
		t.Errorf("attached %q", s.Attached)
	}

	if got := snapshots.Differences(s.Settings, start(func([]multitask.Data, *Plan) {}).Settings()); len(got) > 0 {
		t.Errorf("differences from itself: %v", got)
	}
	other := start(func(data []multitask.Data, p *Plan) { p.Rate, data[2].Dev = 0.5, data[2].Dev[1:] })
	got := snapshots.Differences(s.Settings, other.Settings())
	if len(got) != 3 || got[0] != (snapshots.Difference{Key: "learning_rate", Was: "0.003",
		Now: "0.5"}) || got[2].Of != snapshots.OfData ||
		got[2].Key != `dev examples of task "mood", as number:checksum` || got[2].Was == got[2].Now {
		t.Errorf("differences are %v", got)
	}

	// a caller may accept them
	if err := other.Restore(s); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(other.host.Params()[0].Data, first.host.Params()[0].Data) {
		t.Error("the parameters are not those of the snapshot")
	}
	advance(t, other)
}

// TestParametersOfChangedOptionsKeepTheirNewValues resumes with other class weights, as an option makes them, and with
// thresholds that have been tuned since.
func TestParametersOfChangedOptionsKeepTheirNewValues(t *testing.T) {
	start := func(weights float32) (training *Training, weighed, tuned *nn.Param) {
		m, data := threeGroups(t, "none", 10)
		heads := multitask.HeadParams(m.Params, "mood", "mood")
		weighed, tuned = heads.Zeros("class_weights", 2), heads.Zeros("thresholds", 2)
		weighed.Frozen, tuned.Frozen = true, true
		weighed.Data[1] = weights
		training, err := New(m, data, smallPlan())
		if err != nil {
			t.Fatal(err)
		}
		return training, weighed, tuned
	}
	first, _, tuned := start(1)
	advance(t, first)
	tuned.Data[0] = 0.7
	s := written(t, mustSnapshot(t, first))
	for _, weights := range []float32{1, 5} {
		other, weighed, tuned := start(weights)
		if err := other.Restore(s); err != nil {
			t.Fatal(err)
		}
		if weighed.Data[1] != weights || tuned.Data[0] != 0.7 {
			t.Errorf("weights %v and thresholds %v, want %v and 0.7", weighed.Data, tuned.Data, weights)
		}
	}
}
