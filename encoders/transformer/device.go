//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/cuda"
)

func init() { encoders.CUDA = cuda.Devices }

// onDevice makes an encoder on the device of env. Where that is auto, and there is none or it does not compute the
// network, the encoder is on the processor.
func onDevice(o Options, env encoders.Env) (encoders.Encoder, error) {
	if _, err := cuda.Devices(); cuda.IsAbsent(err) && env.Device == encoders.AutoDevice {
		return onProcessor(o, env)
	}
	number := 0
	if _, err := fmt.Sscanf(env.Device, "cuda:%d", &number); err != nil && env.Device != encoders.AutoDevice {
		panic("transformer: a device " + strconv.Quote(env.Device))
	}
	apart := env
	apart.Params = env.Params.Apart()
	e, err := newOrOpened(o, apart)
	if err != nil {
		return nil, err
	}
	unsupported := e.unsupported()
	if env.LoRA.Rank > 0 {
		unsupported = errors.New("lora")
	}
	if unsupported != nil {
		return fallBack(o, env, e, fmt.Errorf("%w runs on the processor only; want device: cpu", unsupported))
	}
	gpu, err := cuda.Open(number)
	if err != nil {
		return fallBack(o, env, e, err)
	}
	r, err := toDevice(e, gpu)
	if err != nil {
		gpu.Close()
		return fallBack(o, env, e, err)
	}
	r.name = fmt.Sprint("cuda:", number)
	return r, nil
}

// fallBack makes an encoder on the processor in place of e where the device is auto; else it returns the error.
func fallBack(o Options, env encoders.Env, e *encoder, err error) (encoders.Encoder, error) {
	if closing := e.close(); closing != nil {
		return nil, closing
	}
	if env.Device != encoders.AutoDevice {
		return nil, encoders.BadOption("device", "device: %w", err)
	}
	placed, failed := onProcessor(o, env)
	if failed != nil {
		return nil, failed
	}
	return unplaced{placed, err}, nil
}

// unplaced is an encoder on the processor of a machine with a GPU, with the reason.
type unplaced struct {
	encoders.Encoder
	reason error
}

// Describe implements encoders.Encoder.
func (e unplaced) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.NoDevice = e.reason
	return d
}
