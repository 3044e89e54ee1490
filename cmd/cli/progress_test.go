package cli

import (
	"testing"
	"time"
)

func TestABarNeedsATerminalThatFits(t *testing.T) {
	for columns, want := range map[int]bool{0: false, 32: false, 40: false, 80: true} {
		if got := showsBars(columns, "xterm"); got != want {
			t.Errorf("bars in %d columns: %v, want %v", columns, got, want)
		}
	}
	if showsBars(80, "dumb") {
		t.Error("a bar on a terminal that cannot redraw its line")
	}
}

func TestABarsDescriptionFitsTheRoom(t *testing.T) {
	for room, want := range map[int]string{-3: "", 10: "", 11: "loss 0.1234", 24: "loss 0.1234",
		25: "loss 0.1234  987 tokens/s", 99: "loss 0.1234  987 tokens/s  epoch 1.5"} {
		if got := fitting(room, "loss 0.1234", "987 tokens/s", "epoch 1.5"); got != want {
			t.Errorf("fitting(%d) = %q, want %q", room, got, want)
		}
	}
}

func TestABarLabelsItsTimes(t *testing.T) {
	notes := []string{"loss 0.1234", "987 tokens/s"}
	for _, test := range []struct {
		room, done int
		want       string
	}{
		{99, 0, "dev  elapsed 1m40s  loss 0.1234  987 tokens/s"},
		{99, 25, "dev  elapsed 1m40s  remaining 5m0s  loss 0.1234  987 tokens/s"},
		{50, 25, "dev  elapsed 1m40s  remaining 5m0s  loss 0.1234"},
		{35, 25, "dev  elapsed 1m40s  remaining 5m0s"},
		{33, 25, "elapsed 1m40s  remaining 5m0s"},
		{20, 25, "elapsed 1m40s"},
		{99, 101, "dev  elapsed 1m40s  remaining 0s  loss 0.1234  987 tokens/s"}, // more than planned
		{99, 100, "dev  elapsed 1m40s  remaining 0s  loss 0.1234  987 tokens/s"},
	} {
		if got := description(test.room, "dev", 100*time.Second, test.done, 100, notes); got != test.want {
			t.Errorf("%d done, in %d characters: %q, want %q", test.done, test.room, got, test.want)
		}
	}
}
