package cli

import "testing"

func TestErrorsSayWhatWouldWork(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, "untrained", "experiment.yaml", smallExperiment)
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"train"}, exitMistake,
			"experiment.yaml: no such file; name a file, or try jenga train experiments/quickstart.yaml\n"},
		{[]string{"train", ""}, exitMistake,
			"the name of the experiment file is empty; want a file such as experiment.yaml\n"},
		{[]string{"train", "untrained"}, exitMistake,
			"untrained is a folder; want an experiment file, such as untrained/experiment.yaml\n"},
		{[]string{"help", "trian"}, exitUsage, `no command "trian"; did you mean "train"? available: bench, ` +
			"calibrate, check, completion, embed, eval, explain, init, lr-find, merge, parts, predict, pull, " +
			"quantize, serve, tokenize, train, version\n"},
		{[]string{"predict", "untrained"}, exitMistake,
			"no best/ or last/ in untrained; train the experiment first\n"},
	} {
		status, out, log := call("", test.args...)
		if status != test.status || out != "" || log != test.want {
			t.Errorf("%q: status %d, %s%s\nwant %d, %s", test.args, status, out, log, test.status, test.want)
		}
	}
}
