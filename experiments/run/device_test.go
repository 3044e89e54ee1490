package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// elsewhere is an encoder that says that it computes on a device.
type elsewhere struct {
	encoders.Encoder
	device string
}

func (e elsewhere) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.Device = e.device
	return d
}

// The metrics file names a device first, and a training goes on where it began.
func TestATrainingOnADevice(t *testing.T) {
	encoders.CUDA = func() ([]string, error) { return []string{"Large", "Larger"}, nil }
	t.Cleanup(func() { encoders.CUDA = nil })
	folder := filepath.Join(t.TempDir(), "run")
	r, err := ready(mustRead(t, sample.Small(t, "")), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	r.Model.Encoder = elsewhere{r.Model.Encoder, "cuda:1"}
	n := 6
	if _, err := r.Train(countdown{context.Background(), &n}, folder, ignore); !errors.Is(err, context.Canceled) {
		t.Fatalf("Train = %v", err)
	}
	metrics, err := os.ReadFile(filepath.Join(folder, runfolder.MetricsFile))
	const want = `{"event":"device","device":"cuda:1","name":"Larger"}` + "\n" + `{"event":"step"`
	if err != nil || !strings.HasPrefix(string(metrics), want) {
		t.Errorf("%v: metrics\n%.200s\nwant\n%s", err, metrics, want)
	}

	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	e := func(device string) *config.Experiment { return mustRead(t, found.File, "training.device="+device) }
	_, err = Resume(t.Context(), e("cpu"), found.Point, nil, nil)
	const refused = "kernels: device: was Larger, is the processor (training.device: cpu)"
	if err == nil || !strings.Contains(err.Error(), refused) ||
		!strings.Contains(err.Error(), "argument allow-changes kernels") {
		t.Errorf("%v; want %s", err, refused)
	}
	again, err := Resume(t.Context(), e("cpu"), found.Point, nil, []string{"kernels"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Train(t.Context(), folder, ignore); err != nil {
		t.Error(err)
	}
}
