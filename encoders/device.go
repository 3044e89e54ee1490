package encoders

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// The values of Env.Device besides cuda:N, the CUDA device with the number N.
const (
	CPU        = "cpu"
	AutoDevice = "auto"
)

const cudaPrefix = "cuda:"

// CUDA returns the names of the machine's CUDA devices, by their numbers. It is nil in a program that was built without
// the tag gpu; in one with the tag package transformer sets it.
var CUDA func() ([]string, error)

// ErrNoCUDA is the error of a CUDA device in a program that was built without the tag gpu.
var ErrNoCUDA = errors.New("this jenga was built without support of GPUs: build it with go build -tags gpu " +
	"./cmd/jenga, or write device: cpu")

// ParseDevice returns the device of a user's word: auto, cpu, cuda:N, or cuda for cuda:0.
func ParseDevice(word string) (device string, err error) {
	number, is := strings.CutPrefix(word, cudaPrefix)
	switch n, err := strconv.ParseUint(number, 10, 16); {
	case word == CPU || word == AutoDevice:
		return word, nil
	case word+":" == cudaPrefix:
		return cudaPrefix + "0", nil
	case is && err == nil:
		return fmt.Sprint(cudaPrefix, n), nil
	}
	return "", errors.New(plugin.UnknownLike("device", word, "", []string{AutoDevice, CPU, cudaPrefix + "N"}))
}

// IsCUDA reports whether a value of Env.Device asks for a CUDA device and no other.
func IsCUDA(device string) bool { return strings.HasPrefix(device, cudaPrefix) }

// CheckDevice returns ErrNoCUDA for a CUDA device in a program that was built without the tag.
func CheckDevice(device string) error {
	if IsCUDA(device) && CUDA == nil {
		return ErrNoCUDA
	}
	return nil
}

// DeviceName returns the name of the device of a Description, such as NVIDIA H100 80GB HBM3; "" for the processor.
func DeviceName(device string) string {
	if device == "" || CUDA == nil {
		return device
	}
	names, err := CUDA()
	n, numberErr := strconv.Atoi(strings.TrimPrefix(device, cudaPrefix))
	if err != nil || numberErr != nil || n >= len(names) {
		return device
	}
	return names[n]
}

// checkDevice returns an error if an encoder computes elsewhere than on the CUDA device that env asks for.
func (env Env) checkDevice(name string, e Encoder) error {
	about := e.Describe()
	switch {
	case !IsCUDA(env.Device) || about.Device == env.Device:
		return nil
	case about.Precision != nn.Float32:
		return BadOption("device", "device: the encoder is quantized to %v, and runs on the processor only; "+
			"want device: cpu", about.Precision)
	}
	return BadOption("device", "device: encoder %q runs on the processor only; want device: cpu", name)
}
