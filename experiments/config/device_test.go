package config

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// withCUDA makes this a program that was built with the tag gpu, on a machine with a device.
func withCUDA(t *testing.T) {
	before := encoders.CUDA
	t.Cleanup(func() { encoders.CUDA = before })
	encoders.CUDA = func() ([]string, error) { return []string{"A"}, nil }
}

func TestTheDeviceOfTraining(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	const unbuilt = ": training: device: this jenga was built without support of GPUs: build it with go build " +
		"-tags gpu ./cmd/jenga, or write device: cpu"
	for _, built := range []bool{false, true} {
		if built {
			withCUDA(t)
		}
		for word, want := range map[string]string{
			"": "auto", "auto": "auto", "cpu": "cpu", "cuda": "cuda:0", "cuda:0": "cuda:0", "cuda:3": "cuda:3",
		} {
			set := "training.device=" + word
			e, err := Read(t.Context(), file, []string{set})
			switch {
			case !built && strings.HasPrefix(want, "cuda"):
				if wanted := "argument set " + set + unbuilt; err == nil || err.Error() != wanted {
					t.Errorf("%s: %v; want %s", set, err, wanted)
				}
			case err != nil || e.Training.Device != want:
				t.Errorf("%s, built with cuda: %v: %v; want device %s", set, built, err, want)
			}
		}
		const unknown = `argument set training.device=mps: training: device: no device "mps"; ` +
			`available: auto, cpu, cuda:N`
		if _, err := Read(t.Context(), file, []string{"training.device=mps"}); err == nil || err.Error() != unknown {
			t.Errorf("%v; want %s", err, unknown)
		}
	}
}

// Files of Jenga-NLP are read with the devices of theirs that are not here.
func TestTheDeviceOfAFileOfJengaNLP(t *testing.T) {
	dir := supportDeskFolder(t)
	file := filepath.Join(dir, "calls.yaml")
	const processor = ": training is on the processor: "
	for _, c := range []struct {
		word    string
		built   bool
		want    string // the device; "": an error
		message string
	}{
		{"cpu", false, "cpu", ""}, {"auto", false, "auto", ""},
		{"cuda", false, "cpu", `device "cuda"` + processor + encoders.ErrNoCUDA.Error()},
		{"cuda", true, "cuda:0", ""},
		{"mps", true, "cpu", `device "mps"` + processor + `no device "mps"; available: auto, cpu, cuda:N`},
		{"cuda:0", false, "", "training: device: " + encoders.ErrNoCUDA.Error()},
	} {
		t.Run(c.word, func(t *testing.T) {
			if c.built {
				withCUDA(t)
			}
			sample.Write(t, file, strings.ReplaceAll(jengaNLPFile, "device: cuda", "device: "+c.word))
			e, err := Read(t.Context(), file, nil)
			var text string
			if err != nil {
				text = err.Error()
			} else {
				for _, w := range e.Warnings {
					text += w.String() + "\n"
				}
				if e.Training.Device != c.want {
					t.Errorf("device %s, want %s", e.Training.Device, c.want)
				}
			}
			if (err == nil) != (c.want != "") || !strings.Contains(text, c.message) ||
				c.message == "" && strings.Contains(text, "device") {
				t.Errorf("%v, %s; want %q", err, text, c.message)
			}
			if e, err := ReadTrained(file); err != nil || c.want != "" && e.Training.Device == "" {
				t.Errorf("read as that of a run: %v", err)
			}
		})
	}
}

// What an encoder on a device does not have is refused beside cuda:N, and makes auto the processor.
func TestOptionsOfTheProcessorAlone(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, c := range []struct {
		sets []string
		want string // of the message; "": the device has it
	}{
		{nil, ""},
		{[]string{"training.weighting=uncertainty"}, ""},
		{[]string{"training.head_learning_rate=0.1"}, ""},
		{[]string{"training.optimizer=adamw", "training.shards=1"}, ""},
		{[]string{"training.ema=0.9"}, "training: ema: not with device: cuda:0, on which there are no running means " +
			"of the weights; leave it out, or write device: cpu"},
		{[]string{"training.optimizer=sgd"}, "training: optimizer: not with device: cuda:0, on which the optimizer " +
			"is adamw"},
		{[]string{"training.optimizer={type: adamw, beta1: 0.8}"}, "training: optimizer: "},
		{[]string{"training.weighting=pcgrad"}, "training: weighting: "},
		{[]string{"training.shards=2"}, "training: shards: "},
		{[]string{"training.gradient_dtype=bf16"}, "training: gradient_dtype: "},
		{[]string{"training.layer_decay=0.9"}, "training: layer_decay: "},
		{[]string{"model.freeze={unfreeze: {every: 1}}"}, "model: freeze: unfreeze: "},
		{[]string{"model.lora={}"}, "model: lora: "},
		{[]string{"model.freeze=all", "training.ema=0.9", "training.layer_decay=0.9"}, ""},
	} {
		withCUDA(t)
		_, err := Read(t.Context(), file, append(slices.Clone(c.sets), "training.device=cuda:0"))
		if c.want == "" {
			if err != nil {
				t.Errorf("%q: %v", c.sets, err)
			}
		} else if err == nil || !strings.HasPrefix(err.Error(), "argument set "+c.sets[0]+": "+c.want) {
			t.Errorf("%q: %v; want %s", c.sets, err, c.want)
		}
		e := mustRead(t, file, c.sets...)
		auto := "cpu"
		if c.want == "" {
			auto = "auto"
		}
		for asked, want := range map[string]string{"cpu": "cpu", "auto": auto} {
			if device, err := e.DeviceFor(asked, true); err != nil || device != want {
				t.Errorf("%q: %s is %s, %v; want %s", c.sets, asked, device, err, want)
			}
		}
		encoders.CUDA = nil
		if device, err := e.DeviceFor("auto", true); err != nil || device != "auto" {
			t.Errorf("%q: auto of a program without cuda is %s, %v", c.sets, device, err)
		}
	}
}

// Mistakes of parts are reported beside a device as without one.
func TestMistakenPartsBesideADevice(t *testing.T) {
	withCUDA(t)
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	_, err := Read(t.Context(), file, []string{"training.device=cuda:0", "training.weighting=pcgrat",
		"training.optimizer=adamv",
		"training.ema=0.9"})
	for _, want := range []string{`no weighting "pcgrat"`, `no optimizer "adamv"`, "training: ema: not with device"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}

func TestSeveralProcessesTrainOnTheProcessor(t *testing.T) {
	withCUDA(t)
	e := mustRead(t, filepath.Join(supportDeskFolder(t), "exp.yaml"), "training.device=cuda:0")
	e.Several = true
	const want = "argument set training.device=cuda:0: several processes: not with device: cuda:0"
	if _, err := e.DeviceFor("cuda:0", true); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v; want %s", err, want)
	}
	if device, err := e.DeviceFor("cuda:0", false); err != nil || device != "cuda:0" {
		t.Errorf("for predictions: %s, %v", device, err)
	}
}

// Heads that read more of the encoder than its states are of the processor, also where a run predicts.
func TestHeadsOfTheProcessorAlone(t *testing.T) {
	withCUDA(t)
	dir := supportDeskFolder(t)
	file := filepath.Join(dir, "heads.yaml")
	for task, want := range map[string]string{
		"type: mlm": "heads do not share the word embeddings",
		"type: anomaly, heads: [{name: a, type: attention_pattern}]": "there are no attention maps",
	} {
		sample.Write(t, file, "model: {encoder: {type: transformer}}\ntasks: [{name: a, "+
			"data: {train: data/train.csv, dev: data/dev.csv}, "+task+"}]\n")
		e, err := Read(t.Context(), file, nil)
		if e == nil {
			t.Fatal(err)
		}
		for _, trains := range []bool{true, false} {
			_, err := e.DeviceFor("cuda:0", trains)
			want := `task "a": head "a": not with device: cuda:0, on which ` + want
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("trains %v: %v; want %s", trains, err, want)
			}
		}
	}
}

// A run trained in bf16 on a device needs no bf16 of the processor.
func TestBFloat16OfADevice(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	processor(t, errors.New("this processor cannot"))
	for _, c := range []struct {
		device string
		built  bool
		ok     bool
	}{{"cpu", true, false}, {"auto", false, false}, {"auto", true, true}, {"cuda:0", true, true}} {
		encoders.CUDA = nil
		if c.built {
			withCUDA(t)
		}
		_, err := Read(t.Context(), file, []string{"training.precision=bf16", "training.device=" + c.device})
		if (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
