package cli

import (
	"strings"
	"testing"
)

func TestMinProbability(t *testing.T) {
	trainMails(t)
	for _, test := range []struct {
		flags     string
		abstained bool
	}{
		{"", false}, {"--min-probability 1", true}, {"--min-probability 0", false},
		{"--min-probability team=1", true}, {"--min-probability 1 --min-probability team.team=0", false},
		{"--min-probability 1,team.team=0", false}, {"--min-probability 0,team=1 --task team,team", true},
	} {
		flags := append([]string{"predict", "runs/mails"}, strings.Fields(test.flags)...)
		status, out, log := call("the card\n", flags...)
		if status != 0 || strings.Contains(out, `,"abstained":true`) != test.abstained ||
			!strings.Contains(out, `{"label":"`) {
			t.Errorf("%s: %d, %s%s", test.flags, status, out, log)
		}
	}
	status, out, log := call("the card\n", "predict", "runs/mails", "--format", "csv", "--min-probability", "1")
	if status != 0 || !strings.HasSuffix(out, "the card,\n") {
		t.Errorf("as csv: %d, %s%s\nwant an empty cell for the team", status, out, log)
	}
	for flags, want := range map[string]string{
		"--min-probability 2":                     `--min-probability "2": want a number from 0 to 1, or TASK=NUMBER`,
		"--min-probability NaN":                   `--min-probability "NaN": want a number from 0 to 1`,
		"--min-probability 0.5,team=2":            `--min-probability "team=2": want a number from 0 to 1`,
		"--min-probability=":                      `--min-probability "": want a number from 0 to 1`,
		"--task=":                                 `--task: no task ""; `,
		"--task team,tem":                         `--task: no task "tem"; did you mean "team"?`,
		"--min-probability =1":                    `--min-probability "=1": want a number from 0 to 1`,
		"--min-probability team=":                 `--min-probability "team=": want a number from 0 to 1`,
		"--min-probability tem=1":                 `--min-probability: no task with labels "tem"; did you mean "team"?`,
		"--min-probability team.tem=1":            `no task with labels "team.tem"; did you mean "team.team"?`,
		"--min-probability 1 --min-probability 0": `--min-probability "0": there is one before it; want one`,
	} {
		status, out, log := call("the card\n", append([]string{"predict", "runs/mails"}, strings.Fields(flags)...)...)
		if status == 0 || out != "" || !strings.Contains(log, want) {
			t.Errorf("%s: %d, %s%s\nwant %s", flags, status, out, log, want)
		}
	}
}
