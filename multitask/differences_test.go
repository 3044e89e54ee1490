package multitask

import (
	"bytes"
	"slices"
	"testing"
)

func TestDifferencesNameWhatASnapshotHasOtherwise(t *testing.T) {
	start := func(change func(data []Data, p *Plan)) *Training {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		change(data, &plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	first := start(func([]Data, *Plan) {})
	advance(t, first)
	s := mustSnapshot(t, first)
	s.Attach([]byte("a note"))
	s = written(t, s)
	if !bytes.Equal(s.Attached(), []byte("a note")) {
		t.Errorf("attached %q", s.Attached())
	}

	if got := start(func([]Data, *Plan) {}).Differences(s); len(got) > 0 {
		t.Errorf("differences from itself: %v", got)
	}
	other := start(func(data []Data, p *Plan) { p.Rate, data[2].Dev = 0.5, data[2].Dev[1:] })
	got := other.Differences(s)
	if len(got) != 3 || got[0] != (Difference{"learning_rate", "0.003", "0.5", OfSetting}) || got[2].Of != OfDevData ||
		got[2].Name != `dev examples of task "mood", as number:checksum` || got[2].Was == got[2].Now {
		t.Errorf("differences are %v", got)
	}

	// a caller may accept them
	if err := other.Restore(s); err == nil {
		t.Error("Restore of a snapshot with another learning rate is no error")
	}
	if err := other.RestoreDespite(s); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(other.host.Params()[0].Data, first.host.Params()[0].Data) {
		t.Error("the parameters are not those of the snapshot")
	}
	advance(t, other)
}
