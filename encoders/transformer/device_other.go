//go:build !(gpu && linux && (amd64 || arm64))

package transformer

import "github.com/jenga-nlp/jenga/encoders"

// onDevice makes an encoder on the processor: the program was built without support of devices.
func onDevice(o Options, env encoders.Env) (encoders.Encoder, error) {
	if env.Device != encoders.AutoDevice {
		return nil, encoders.BadOption("device", "device: %w", encoders.ErrNoCUDA)
	}
	return onProcessor(o, env)
}
