package report

import (
	"strings"
	"testing"
)

func TestTheStateOfARunIsInItsMetrics(t *testing.T) {
	const (
		steps = `{"event":"step","step":10,"of":80}` + "\n" + `{"event":"step","step":20,"of":80}` + "\n"
		eval  = `{"event":"eval","split":"dev","step":24,"tasks":{}}` + "\n"
	)
	for _, test := range []struct {
		name, metrics, want string
	}{
		{"done", steps + `{"event":"done","best":null}` + "\n", "done"},
		{"interrupted", steps + eval + `{"event":"interrupted","step":27,"of":80,"checkpoint":null}` + "\n",
			"training of this run was interrupted after step 27 of 80"},
		{"error", steps + `{"event":"error","step":21,"of":80,"error":"disk full\nand more"}` + "\n",
			"training of this run ended with an error after step 21 of 80: disk full"},
		{"killed", steps, "training of this run was interrupted after step 20 of 80"},
		{"killed after an evaluation", steps + eval, "training of this run was interrupted after step 24 of 80"},
		{"killed while a line was written", steps + eval + `{"event":"step","step":3`,
			"training of this run was interrupted after step 24 of 80"},
		{"killed, of an earlier version", `{"event":"step","step":10}` + "\n",
			"training of this run was interrupted after step 10"},
		{"continued after an interruption", `{"event":"interrupted","step":9,"of":80}` + "\n" + steps,
			"training of this run was interrupted after step 20 of 80"},
		{"continued with fewer steps", steps + `{"event":"interrupted","step":27,"of":40}` + "\n",
			"training of this run was interrupted after step 27 of 40"},
		{"empty", "", "training of this run was interrupted before the first step"},
		{"damaged", `{"event":"step","step":x}` + "\n",
			`the last line of event "step": invalid character 'x' looking for beginning of value`},
		{"a long line", steps + `{"event":"eval","step":30,"x":"` + strings.Repeat("x", 1<<18) + `"}` + "\n",
			"training of this run was interrupted after step 30 of 80"},
	} {
		state, err := ReadState(strings.NewReader(test.metrics))
		got := state.String()
		if err != nil {
			got = err.Error()
		} else if state.Ended == "done" {
			got = "done"
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func FuzzReadState(f *testing.F) {
	f.Add(`{"event":"step","step":10,"of":80}` + "\n" + `{"event":"done"}` + "\n")
	f.Add(`{"event":"error","error":"x"}` + "\n" + `{"event":"`)
	f.Fuzz(func(t *testing.T, metrics string) {
		state, err := ReadState(strings.NewReader(metrics))
		if err == nil && state.String() == "" {
			t.Error("no description")
		}
	})
}
