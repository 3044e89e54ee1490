package run

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// onDisk returns the bytes of the files of a folder, those with several names once. Files that vanish meanwhile are
// left out.
func onDisk(folder string) (bytes int64) {
	var seen []fs.FileInfo
	filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		for _, other := range seen {
			if os.SameFile(info, other) {
				return nil
			}
		}
		seen = append(seen, info)
		bytes += info.Size()
		return nil
	})
	return bytes
}

// A run folder takes what is estimated, at most, in training and then.
func TestARunTakesTheDiskThatIsEstimated(t *testing.T) {
	large := []string{"model.encoder.width=64", "model.encoder.feed_forward=64", "training.num_epochs=2"}
	base := filepath.Join(t.TempDir(), "base")
	trainSmall(t, sample.Small(t, ""), base, large...)
	of := []string{"model.encoder=null", "tokenizer.train=null", "training.num_epochs=1",
		"model.base_model=" + filepath.Join(base, runfolder.BestDir, runfolder.EncoderDir)}
	for name, sets := range map[string][]string{
		"as usual":       large,
		"one evaluation": append(large[:2:2], "training.num_epochs=1"),
		"no evaluation":  append(large[:3:3], "training.eval_strategy=no"),
		"no copies":      append(large[:3:3], "training.save_task_bests=false"),
		"no states":      append(large[:3:3], "training.save_strategy=no"),
		"three are kept": append(large[:3:3], "training.save_total_limit=3"),
		"all are kept": append(large[:3:3], "training.save_total_limit=0", "training.save_strategy=steps",
			"training.save_steps=2"),
		"a mean":           append(large[:3:3], "training.ema=0.5"),
		"no momentum":      append(large[:3:3], "training.optimizer={type: sgd, momentum: 0}"),
		"a frozen encoder": append(of[:4:4], "model.freeze=all"),
		"LoRA":             append(of[:4:4], "model.lora.r=2"),
		"LoRA by task":     append(of[:4:4], "model.lora={per_task: true, r: 2}"),
	} {
		t.Run(name, func(t *testing.T) {
			path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
			checked, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
			if err != nil {
				t.Fatal(err)
			}
			expected, tooLarge, err := checked.Expect(t.Context())
			if err != nil || tooLarge != nil || !expected.Disk.Known || expected.Disk.Free == 0 {
				t.Fatalf("%+v, %v, %v", expected.Disk, tooLarge, err)
			}
			trained, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
			if err != nil {
				t.Fatal(err)
			}
			most := int64(0)
			if _, err := trained.Train(t.Context(), folder, func(train.Event) error {
				most = max(most, onDisk(folder))
				return nil
			}); err != nil {
				t.Fatal(err)
			}

			const others = 4 * 24 << 10 // of four checkpoints: headers and a pooler, which has no parameters; metrics
			done, of := onDisk(folder), expected.Disk
			t.Logf("%s: %d of %d bytes in training, %d of %d then", of, most, of.Training, done, of.Done)
			if most > of.Training+others || done > of.Done+others {
				t.Errorf("%d of %d bytes in training, %d of %d then", most, of.Training, done, of.Done)
			}
			if done < of.Done/3 { // bests may be one
				t.Errorf("the run has %d bytes, and %d are estimated", done, of.Done)
			}
			_, err = os.Stat(filepath.Join(folder, runfolder.TasksDir))
			if has := err == nil; has == (name == "no copies" || name == "no evaluation") {
				t.Errorf("tasks/ is there: %v", has)
			}
		})
	}
}

func TestADiskThatMayBecomeFullIsAWarning(t *testing.T) {
	defer func(was func(string) (int64, bool)) { freeDisk = was }(freeDisk)
	path := sample.Small(t, "")
	for free, warned := range map[int64]bool{1: true, 1 << 40: false, -1: false} {
		freeDisk = func(string) (int64, bool) { return free, free >= 0 }
		r, err := ready(mustRead(t, path, "training.num_epochs=1"), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		e, _, err := r.Expect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, w := range e.Warnings {
			if strings.HasPrefix(w.Text, "disk: ") {
				got = w.Text
			}
		}
		if (got != "") != warned || warned && !strings.Contains(got, "training.save_task_bests: false") {
			t.Errorf("%d bytes free: %q", free, got)
		}
		if strings.Contains(e.Disk.String(), "free") != (free >= 0) {
			t.Errorf("%d bytes free: %s", free, e.Disk)
		}
	}
}
