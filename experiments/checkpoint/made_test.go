package checkpoint

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// The lock beside files, which a kill has left, distinguishes what a command has left of a run from files of a user.
func TestARunMadeOfOthersReplacesNoFilesOfAUser(t *testing.T) {
	const (
		lock   = runfolder.LockFile
		others = " holds files, but no run, as "
		left   = " holds what a command has left of a run"
	)
	for _, test := range []struct {
		names  string
		want   string // the error without force
		forced string // and with it
	}{
		{"best.new/a encoder/a", others + "best.new:", others + "best.new:"},
		{"best.new/a encoder/a " + lock, "", ""},
		{"best/model.json", others + "best:", others + "best:"},
		{"best/model.json " + lock, left, ""},
		{"best/model.json notes.txt", others + "notes.txt:", others + "notes.txt:"},
		{"best/model.json notes.txt " + lock, others + "notes.txt:", others + "notes.txt:"},
		{"tasks/team/model.json " + lock, others + "tasks:", others + "tasks:"},
		{"best.new/a checkpoints/a " + lock, others + "checkpoints:", others + "checkpoints:"},
	} {
		check := func(err error, force bool, want string) {
			t.Helper()
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q, force %v: %v, want %q", test.names, force, err, want)
			}
		}
		files := map[string]string{}
		for _, name := range strings.Fields(test.names) {
			files[name] = ""
		}
		folder := sample.Folder(t, files)
		for i, want := range []string{test.want, test.forced} {
			force := i > 0
			check(CheckMade(folder, force, nil), force, want)
			if want != "" {
				check(writeMade(folder, force, nil, func() error { return nil }), force, want)
			}
			if now := sample.Files(t, folder); !maps.Equal(now, files) {
				t.Errorf("%q, force %v: the folder holds %q", test.names, force, now)
			}
		}
		if test.forced != "" {
			continue
		}
		if err := writeMade(folder, test.want != "", nil, func() error { return nil }); err != nil {
			t.Errorf("writeMade to %q: %v", test.names, err)
		}
		if now := sample.Files(t, folder); len(now) > 0 {
			t.Errorf("%q: the new run is beside %q", test.names, now)
		}
	}
}

func TestAFolderThatCannotBeReadIsAnError(t *testing.T) {
	folder := sample.Folder(t, map[string]string{runfolder.LockFile: "", "notes.txt": ""})
	if err := os.Chmod(folder, 0o333); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(folder, 0o755)
	if _, err := os.ReadDir(folder); err == nil {
		t.Skip("this user reads every folder")
	}
	for _, force := range []bool{false, true} {
		if err := CheckMade(folder, force, nil); err == nil || !strings.HasPrefix(err.Error(), "run folder: open ") {
			t.Errorf("CheckMade, force %v: %v", force, err)
		}
	}
}

// The experiment makes a folder a run: it comes after the best model, as that of a quantized run.
func TestTheExperimentOfAJoinedRunIsWrittenLast(t *testing.T) {
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, runfolder.ExperimentFile), 0o755); err != nil { // no file replaces it
		t.Fatal(err)
	}
	experiment, err := config.Read(t.Context(), sample.Small(t, ""), nil)
	if err != nil {
		t.Fatal(err)
	}
	joined := Made{Experiment: experiment}
	if err := joined.writeFiles(t.Context(), folder); err == nil {
		t.Fatal("a folder is replaced by the experiment")
	}
	if !runfolder.HasBest(folder) || !runfolder.Exists(filepath.Join(folder, runfolder.MetricsFile)) {
		t.Error("something is written after the experiment")
	}
}
