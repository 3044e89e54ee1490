package cli

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func TestPrecisionOfACommand(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	texts := strings.ReplaceAll("the card is too high and a window hangs again", " ", "\n")
	if status, _, log := call("", "train", "--set", "training.num_epochs=15"); status != 0 {
		t.Fatal(log)
	}
	for _, command := range [][]string{{"predict", "runs/mails", "--top", "2"}, {"embed", "runs/mails"},
		{"eval", "runs/mails", "--json"}, {"eval", "runs/mails"}} {
		_, exact, _ := call(texts, command...)
		for _, precision := range []nn.Precision{nn.BFloat16, nn.Int8} {
			status, out, log := call(texts, append(command, "--precision", precision.String())...)
			if err := precision.Check(); err != nil {
				want := "--precision " + precision.String() + ": " + err.Error()
				if !strings.Contains(log, want) || status != exitMistake {
					t.Errorf("%v: status %d, want %d and %s\n%s", command, status, exitMistake, want, log)
				}
				continue
			}
			if status != 0 || out == exact {
				t.Errorf("%v in %v: status %d, and the output of float32\n%s%s", command, precision, status, out, log)
			}
			if command[0] == "eval" && !strings.Contains(out, precision.String()) {
				t.Errorf("%v in %v: the output does not say so\n%s", command, precision, out)
			}
		}
	}
}
