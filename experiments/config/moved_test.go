package config

import "testing"

func TestABaseRunThatIsGoneIsOneMistake(t *testing.T) {
	baseFiles(t)
	_, err := grown(t, "{base_model: gone, keep_tasks: all}", "training: {rehearse: 0.2}\n")
	const want = `exp.yaml:1:21: model: base_model: no run "gone": model.keep_tasks is of a run, whose weights and ` +
		"options are read again from its folder, also by --resume; put the folder back, or name its new place as " +
		"model.base_model"
	if err == nil || err.Error() != want {
		t.Errorf("error %v\nwant %s", err, want)
	}
}
