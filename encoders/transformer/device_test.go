//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"cmp"
	"math"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
	"github.com/jenga-nlp/jenga/nn"
)

// TestAutoSaysWhyTheDeviceIsNotUsed makes encoders for auto where a GPU cannot be used: on a machine that has one the
// encoder says why, on others there is nothing to say.
func TestAutoSaysWhyTheDeviceIsNotUsed(t *testing.T) {
	library := cudatest.Library(t)
	made := func(device string) (encoders.Encoder, error) {
		o := Options{Layers: 1, Width: 8, Heads: 2, FeedForward: 8, MaxPositions: 16}
		return onDevice(o, encoders.Env{Vocabulary: 10, MaxLength: 16, Params: nn.NewParams(1), Device: device})
	}
	for _, c := range []struct{ variable, value, device, reason, refused string }{
		{"JENGA_HOSTCUDA_MODE", "0", "cuda:0", "", ""},
		{"JENGA_HOSTCUDA_MODE", "2", "", "Prohibited", "Prohibited"},
		{"JENGA_HOSTCUDA_MEMORY", "100", "", "memory is full", "memory is full"},
		{"JENGA_HOSTCUDA_VERSION", "11040", "", "driver is too old", "driver is too old"},
		{"JENGA_HOSTCUDA_CAPABILITY", "7.5", "", "is too old", "is too old"},
		{"JENGA_HOSTCUDA_DEVICES", "0", "", "", "finds no GPU"},
		{"library", "/nonexistent", "", "", "no NVIDIA driver found"},
	} {
		t.Run(c.variable, func(t *testing.T) {
			if c.variable == "library" {
				cuda.Library = c.value
				defer func() { cuda.Library = library }()
			} else {
				t.Setenv(c.variable, c.value)
			}
			e, err := made(encoders.AutoDevice)
			if err != nil {
				t.Fatal(err)
			}
			d := e.Describe()
			if d.Device != c.device || (d.NoDevice == nil) != (c.reason == "") ||
				d.NoDevice != nil && !strings.Contains(d.NoDevice.Error(), c.reason) {
				t.Errorf("%s=%s: device %q, because %v; want %q", c.variable, c.value, d.Device, d.NoDevice, c.reason)
			}
			if err := encoders.Close(e); err != nil {
				t.Error(err)
			}
			e, err = made("cuda:0")
			if c.refused == "" {
				if err != nil {
					t.Fatal(err)
				}
				encoders.Close(e)
			} else if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%s=%s: cuda:0: %v; want %q", c.variable, c.value, err, c.refused)
			}
		})
	}
}

func TestTheDeviceOfAnEncoder(t *testing.T) {
	cudatest.Library(t)
	mpnet := t.TempDir()
	e, _ := network(t, tiny("mpnet"), "none")
	if err := e.Describe().Save(nil)(mpnet); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		device, devices, model string
		want                   string // of the description, or in the error
	}{
		{device: "cuda:0", want: "cuda:0"},
		{device: encoders.AutoDevice, want: "cuda:0"},
		{device: encoders.CPU, want: ""},
		{device: "cuda:1", want: "device: there is no GPU 1"},
		{device: "cuda:0", devices: "0", want: "device: the NVIDIA driver finds no GPU"},
		{device: encoders.AutoDevice, devices: "0", want: ""},
		{device: "cuda:0", model: mpnet, want: `device: model_type "mpnet", whose attention has biases for distances ` +
			"runs on the processor only; want device: cpu"},
		{device: encoders.AutoDevice, model: mpnet, want: ""},
	} {
		t.Setenv("JENGA_HOSTCUDA_DEVICES", cmp.Or(test.devices, "1"))
		params := nn.NewParams(1)
		o := Options{Layers: 1, Width: 8, Heads: 2, FeedForward: 8, MaxPositions: 16, InitializerRange: 0.02}
		e, err := New(o, encoders.Env{Device: test.device, Model: test.model, Vocabulary: 10, Params: params})
		if err != nil {
			if !strings.Contains(err.Error(), cmp.Or(test.want, "none")) {
				t.Errorf("%+v: %v", test, err)
			}
			continue
		}
		about := e.Describe()
		if about.Device != test.want || (about.Resident != nil) != (test.want != "") {
			t.Errorf("%+v: the device is %q", test, about.Device)
		}
		if there := len(params.All()) > 0; there != (test.want == "") {
			t.Errorf("%+v: parameters in the host's tree: %v", test, there)
		}
		if about.Close != nil {
			if err := about.Close(); err != nil {
				t.Errorf("%+v: %v", test, err)
			}
		}
	}
}

func TestADeviceReadsTheWordsOfAMappedFileOnce(t *testing.T) {
	cudatest.Library(t)
	for row, want := range map[int]string{-1: "", 3: "row 3"} {
		e, _ := network(t, tiny("bert"), "none")
		if row >= 0 {
			e.embeddings.words.Data[row*e.embeddings.width] = float32(math.NaN())
		}
		folder := t.TempDir()
		if err := e.save(nil)(folder); err != nil {
			t.Fatal(err)
		}
		made, err := onDevice(defaults, encoders.Env{Model: folder, Freeze: encoders.FreezeAll, Params: nn.NewParams(1),
			Device: "cuda:0"})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want one of %s", err, want)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got, err := made.Encode(nn.NewPass(1), someBatch(), encoders.Mode{Layers: nn.LastLayer})
		if err != nil {
			t.Fatal(err)
		}
		if d, largest := apart(got[0], encode(t, e, nn.NewPass(1), someBatch(), nn.LastLayer)[0]); d > 1e-5*largest {
			t.Errorf("states differ by %g", d)
		}
		if err := encoders.Close(made); err != nil {
			t.Error(err)
		}
	}
}
