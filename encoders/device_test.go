package encoders

import (
	"errors"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestDevicesAreWords(t *testing.T) {
	for word, want := range map[string]string{
		"auto": "auto", "cpu": "cpu", "cuda": "cuda:0", "cuda:0": "cuda:0", "cuda:07": "cuda:7",
		"": "", "gpu": "", "CUDA": "", "cuda:": "", "cuda:-1": "", "cuda:a": "", "cuda:99999999": "", "mps": "",
	} {
		got, err := ParseDevice(word)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("ParseDevice(%q) = %q, %v; want %q", word, got, err, want)
		}
	}
	_, err := ParseDevice("gpu")
	if want := `no device "gpu"; available: auto, cpu, cuda:N`; err == nil || err.Error() != want {
		t.Errorf("%v; want %s", err, want)
	}
}

// withCUDA makes this a program that was built with the tag, on a machine with devices of these names.
func withCUDA(t *testing.T, names ...string) {
	before := CUDA
	t.Cleanup(func() { CUDA = before })
	CUDA = func() ([]string, error) { return names, nil }
}

func TestACUDADeviceWantsAProgramWithTheTag(t *testing.T) {
	CUDA = nil
	for device, want := range map[string]error{
		"": nil, "cpu": nil, "auto": nil, "cuda:0": ErrNoCUDA, "cuda:3": ErrNoCUDA,
	} {
		if got := CheckDevice(device); !errors.Is(got, want) {
			t.Errorf("CheckDevice(%q) = %v, want %v", device, got, want)
		}
	}
	withCUDA(t, "A", "B")
	for device, want := range map[string]string{"": "", "cuda:0": "A", "cuda:1": "B", "cuda:2": "cuda:2"} {
		if got := DeviceName(device); got != want || CheckDevice(device) != nil {
			t.Errorf("DeviceName(%q) = %q, want %q, and no error of CheckDevice", device, got, want)
		}
	}
}

// placedEncoder computes on one device, and has weights of a precision.
type placedEncoder struct {
	Encoder
	device    string
	precision nn.Precision
	closed    *int
}

func (e placedEncoder) Describe() Description {
	return Description{Device: e.device, Precision: e.precision, Close: func() error { *e.closed++; return nil }}
}

func TestAnEncoderOfTheProcessorIsRefusedOnADevice(t *testing.T) {
	withCUDA(t, "A")
	closed := 0
	var e placedEncoder
	reg := registry
	registry = plugin.NewRegistry[Env, Encoder]("encoder")
	t.Cleanup(func() { registry = reg })
	Register("placed", struct{}{}, func(struct{}, Env) (Encoder, error) { e.closed = &closed; return e, nil })
	for _, c := range []struct {
		asked string
		made  placedEncoder
		want  string
	}{
		{asked: ""}, {asked: "cpu"}, {asked: "auto"}, {asked: "auto", made: placedEncoder{device: "cuda:0"}},
		{asked: "cuda:0", made: placedEncoder{device: "cuda:0"}},
		{"cuda:0", placedEncoder{}, `device: encoder "placed" runs on the processor only; want device: cpu`},
		{"cuda:1", placedEncoder{precision: nn.Int8},
			"device: the encoder is quantized to int8, and runs on the processor only; want device: cpu"},
	} {
		e, closed = c.made, 0
		_, err := registry.Build("placed", struct{}{}, Env{Device: c.asked})
		var option *OptionError
		switch {
		case c.want == "" && (err != nil || closed > 0):
			t.Errorf("%q: %v, closed %d times", c.asked, err, closed)
		case c.want != "" && (!errors.As(err, &option) || option.Key != "device" || err.Error() != c.want ||
			closed != 1):
			t.Errorf("%q: %v, closed %d times; want %s, closed once", c.asked, err, closed, c.want)
		}
	}
}
