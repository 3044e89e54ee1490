package run

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
)

// inRanks trains an experiment in as many ranks of this process as there are lists of what is set, the first of which
// writes the folder.
func inRanks(t *testing.T, path, folder string, sets [][]string) []error {
	t.Helper()
	ranks := len(sets)
	errs := make([]error, ranks)
	var all sync.WaitGroup
	for rank, transport := range collectivetest.Local(ranks) {
		group, err := collective.New(transport)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Prepare(mustRead(t, path, sets[rank]...), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if errs[rank] = r.UseRanks(group, ranks); errs[rank] == nil {
				_, errs[rank] = r.Train(t.Context(), folder, func(any) error { return nil })
			}
		})
	}
	all.Wait()
	return errs
}

func TestRanksWriteTheRunOfOneProcess(t *testing.T) {
	path := sample.Small(t, "")
	sets := []string{"training.num_epochs=2", "training.shards=4", "training.save_strategy=steps",
		"training.save_steps=3"}
	home := t.TempDir()
	for _, ranks := range []int{1, 2, 4} {
		folder := filepath.Join(home, fmt.Sprint(ranks))
		for rank, err := range inRanks(t, path, folder, slices.Repeat([][]string{sets}, ranks)) {
			if err != nil {
				t.Errorf("rank %d of %d: %v", rank, ranks, err)
			}
		}
	}
	want := sample.Files(t, filepath.Join(home, "1"))
	for _, ranks := range []string{"2", "4"} {
		got := sample.Files(t, filepath.Join(home, ranks))
		for name, text := range want {
			if strings.HasSuffix(name, ".safetensors") && got[name] != text {
				t.Errorf("%s of %s ranks is not that of one process", name, ranks)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s ranks write %d files, one process %d", ranks, len(got), len(want))
		}
	}
}

func TestRanksThatDifferAreFound(t *testing.T) {
	path := sample.Small(t, "")
	const want = "has another experiment than rank 0"
	sets := [][]string{nil, {"training.learning_rate=0.5"}}
	for rank, err := range inRanks(t, path, filepath.Join(t.TempDir(), "run"), sets) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
}

func TestShardsThatRanksCannotDivide(t *testing.T) {
	one := []string{"training.shards=1"}
	for rank, err := range inRanks(t, sample.Small(t, ""), filepath.Join(t.TempDir(), "run"), [][]string{one, one}) {
		const want = "training: 1 shard cannot be divided among 2 processes"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
}
