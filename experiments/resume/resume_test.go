package resume

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// What looks like a checkpoint and has no state is an error, also where the folder above it has no other model: an
// experiment beside it does not make it one to go on from, nor does it begin a training there.
func TestACheckpointWithoutAStateIsAnError(t *testing.T) {
	for _, names := range [][]string{
		{"experiment.yaml", "run/model.json/full"}, {"experiment.yaml", "run/crc32c.txt"},
		{"experiment.yaml", "checkpoints/step-2/model.json"},
		{"experiment.yaml", "metrics.jsonl", "tasks/a/crc32c.txt"},
	} {
		folder := sample.Folder(t, map[string]string{}, names...)
		named := filepath.Join(folder, filepath.Dir(strings.TrimSuffix(names[len(names)-1], "/full")))
		u, err := Find(t.Context(), named)
		if err == nil || !strings.Contains(err.Error(), "training.snapshot") {
			t.Errorf("%v: checkpoint %q, point %v, error %v; want that of its training.snapshot", names, u.Checkpoint,
				u.Point, err)
		}
	}
}
