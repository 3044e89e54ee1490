package events

import (
	"slices"
	"testing"
)

func TestTasksThatAreKeptBesideAnEncoderThatLearnsSaySo(t *testing.T) {
	for learns, want := range map[bool]string{
		false: "  task team: kept, its intent",
		true:  "  task team: kept and not rehearsed beside an encoder that learns, its intent",
	} {
		g := Growth{Run: "run", Fusion: "none", Learns: learns,
			Tasks: []GrownTask{{Task: "team", From: "intent", State: Kept}}}
		if got := g.Lines(); !slices.Contains(got, want) {
			t.Errorf("encoder learns: %v: %q, want %q", learns, got, want)
		}
	}
}
