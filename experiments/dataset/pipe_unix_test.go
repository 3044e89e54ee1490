//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package dataset

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
)

// A pipe that a run's data names has been read by training: what opens the run would wait for it for ever.
func TestATrainedRunReadsNoPipeOfItsData(t *testing.T) {
	const table = "text,label\nso good,x\nso bad,y\n"
	for _, of := range []string{"train: a.csv, dev: b.csv", "train: b.csv, split: {dev: 1}"} {
		data, err := load(t, "  - {name: mood, type: classification, data: {"+of+"}}\n",
			map[string]string{"a.csv": table, "b.csv": table})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Remove("b.csv"), syscall.Mkfifo("b.csv", 0o600)); err != nil {
			t.Fatal(err)
		}
		data.Missing = func(config.Task, config.File) string { return "pass the data with --data" }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err = data.Read(ctx, config.Dev, "", nil)
		const want = "b.csv: a named pipe, which a trained run does not read again; pass the data with --data"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", of, err, want)
		}

		// one that is given is read
		go os.WriteFile("b.csv", []byte(table), 0)
		if err := data.Read(t.Context(), config.Dev, "", map[string][]string{"mood": {"b.csv"}}); err != nil ||
			len(data.Groups[0].Examples[config.Dev]) != 2 {
			t.Errorf("%s: %v", of, err)
		}
	}
}
