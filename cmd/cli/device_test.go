package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
)

// moved is a BiLSTM that says that it computes on the device that it is asked for, auto being cuda:0.
type moved struct {
	encoders.Encoder
	device string
}

func (e moved) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.Device = e.device
	return d
}

func init() {
	o := encoders.BiLSTMOptions{Embedding: 8, Layers: 1, Hidden: 4}
	encoders.Register("moved", o, func(o encoders.BiLSTMOptions, env encoders.Env) (encoders.Encoder, error) {
		e, err := encoders.NewBiLSTM(o, env)
		switch {
		case env.Device == encoders.AutoDevice && encoders.CUDA != nil:
			return moved{e, "cuda:0"}, err
		case encoders.IsCUDA(env.Device):
			return moved{e, env.Device}, err
		}
		return e, err
	})
}

// withCUDA makes this a program that was built with the tag gpu, on a machine with devices.
func withCUDA(t *testing.T, names ...string) {
	encoders.CUDA = func() ([]string, error) { return names, nil }
	t.Cleanup(func() { encoders.CUDA = nil })
}

// calls runs commands, and checks statuses and what they write.
func calls(t *testing.T, all []flagCall) {
	t.Helper()
	for _, c := range all {
		status, out, log := call("they paid the bill", strings.Fields(c.args)...)
		if status != c.status || !strings.Contains(out+log, c.want) {
			t.Errorf("%s: status %d, want %d and %q in\n%s%s", c.args, status, c.status, c.want, out, log)
		}
	}
}

type flagCall struct {
	args   string
	status int
	want   string // in out or log
}

func TestTheFlagDevice(t *testing.T) {
	file := sample.Small(t, "")
	t.Chdir(t.TempDir())
	here := trained.Run(t, file, "here", "model.encoder={type: bilstm, embedding: 8, layers: 1, hidden: 4}",
		"training.num_epochs=1")
	there := trained.Run(t, file, "there", "model.encoder=moved", "training.num_epochs=1")

	// a program without cuda
	unbuilt := "--device cuda:0: " + encoders.ErrNoCUDA.Error() + ", or leave --device out\n"
	for _, command := range []string{"train " + file, "lr-find " + file, "predict " + here, "eval " + here,
		"embed " + here, "serve " + here, "bench tiny"} {
		calls(t, []flagCall{{command + " --device cuda", exitMistake, unbuilt},
			{command + " --device gpu", exitUsage, "--device \"gpu\": want one of auto, cpu, cuda:N\n"}})
	}
	calls(t, []flagCall{
		{"predict " + there + " --device auto", 0, `"team"`},
		{"eval " + there + " --device cpu", 0, "dev:\n"},
		{"embed " + here + " --device cpu", 0, `"vector"`},
	})

	onDevices(t, file, here, there)
}

// onDevices runs the commands in a program with cuda.
func onDevices(t *testing.T, file, here, there string) {
	t.Helper()
	const short = " --set training.max_steps=10 --force"
	withCUDA(t, "Large", "Larger")

	// an encoder of the processor
	const refused = `--device: encoder "bilstm" runs on the processor only; want device: cpu` + "\n"
	calls(t, []flagCall{
		{"predict " + here + " --device cuda:0", exitMistake, refused},
		{"eval " + here + " --device cuda:0", exitMistake, refused},
		{"embed " + here + " --device cuda:0", exitMistake, refused},
		{"serve " + here + " --device cuda:0 --listen 127.0.0.1:0", exitMistake, refused},
		{"bench bilstm --device cuda:0", exitMistake, refused},
		{"eval " + here, 0, "dev:\n"},
		{"train " + file + short + " --set model.encoder=bilstm --device cuda:1", exitMistake,
			`--set training.device=cuda:1: training: device: encoder "bilstm" runs on the processor only`},
		{"train " + file + short + " --set training.ema=0.9 --device cuda:1", exitMistake,
			"--set training.ema=0.9: training: ema: not with device: cuda:1, on which there are no running means"},
		{"train " + file + short + " --set model.encoder=moved --set training.ema=0.9 --out w", 0,
			"not the GPU, which does not have training: ema; to say that this is meant, write device: cpu"},
		{"train " + file + short + " --set model.encoder=bilstm --out x", 0, "the encoder computes on the processor\n"},
	})

	// and one of the device
	calls(t, []flagCall{
		{"version", 0, " kernels, cuda:0 Large, cuda:1 Larger\n"},
		{"--version", 0, " kernels, cuda:0 Large, cuda:1 Larger\n"},
		{"train " + file + short + " --set model.encoder=moved --out y --set training.device=cpu --device cuda:1", 0,
			"the encoder computes on cuda:1 (Larger)\n"},
		{"train " + file + short + " --set model.encoder=moved --out z --json", 0,
			`{"event":"device","device":"cuda:0","name":"Large"}` + "\n"},
		{"eval " + there, 0, "dev, on cuda:0 (Large):\n"},
		{"eval " + there + " --device cuda:1 --json", 0, `"device":"cuda:1"`},
		{"eval " + there + " --precision int8 --device cuda:1", exitMistake,
			"--precision int8: int8 is of the processor only; want device: cpu"},
		{"predict " + there + " --device cuda:0", 0, `"team"`},
		{"bench " + there + " --measure infer,peak", exitUsage, "--measure peak: it is of the processor, and " +
			"the encoder computes on cuda:0; leave it out, or want --device cpu\n"},
		{"bench " + there + " --measure infer", 0, "the encoder computes on cuda:0 (Large)\n"},
	})
	text, err := os.ReadFile(filepath.Join("y", "experiment.yaml"))
	if err != nil || !strings.Contains(string(text), "device: cuda:1\n") {
		t.Errorf("%v; the run's file lacks device: cuda:1:\n%s", err, text)
	}

	// without a device
	withCUDA(t)
	calls(t, []flagCall{{"version", 0, " kernels, no CUDA device\n"}})
}
