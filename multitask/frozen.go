package multitask

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"runtime/debug"

	"github.com/jenga-nlp/jenga/nn"
)

// FrozenParams is the proof that a training has left the encoder's frozen parameters as they were.
type FrozenParams struct {
	Values        int    // their number
	Before, After string // CRC-32C of their values before and after training, in hexadecimal
}

// CheckFrozen returns the checksums of the encoder's frozen parameters before training and now, or an error if they
// differ.
func (t *Training) CheckFrozen() (FrozenParams, error) {
	proof := FrozenParams{Before: t.frozenSum}
	for _, w := range t.model.frozenParams() {
		proof.Values += len(w.Data)
	}
	var err error
	if proof.After, err = t.model.sumFrozen(); err != nil {
		return proof, err
	}
	if proof.After != proof.Before {
		return proof, fmt.Errorf("the encoder's frozen parameters have changed in training: their CRC-32C was %s, it "+
			"is %s", proof.Before, proof.After)
	}
	return proof, nil
}

// frozenParams returns the encoder's parameters that do not learn, which no snapshot holds.
func (m *Model) frozenParams() []*nn.Param {
	var all []*nn.Param
	for _, w := range EncoderParams(m.Params).All() {
		if w.Frozen {
			all = append(all, w)
		}
	}
	return all
}

// sumFrozen returns a checksum of the encoder's frozen parameters.
func (m *Model) sumFrozen() (sum string, err error) {
	if sum, err = sumParams(m.frozenParams()); err != nil {
		err = fmt.Errorf("the encoder's frozen parameters can no longer be read: %w", err)
	}
	return sum, err
}

// sumParams returns a checksum of the values of parameters, which may be those of a file: reading them is a fault if
// the file was truncated.
func sumParams(params []*nn.Param) (sum string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if _, fault := r.(interface{ Addr() uintptr }); fault {
			err = errors.New("their file was truncated")
		} else if r != nil {
			panic(r)
		}
	}()
	out := &summed{to: io.Discard, sum: crc32.New(castagnoli)}
	for _, w := range params {
		out.floats(w.Data)
	}
	return fmt.Sprintf("%08x", out.sum.Sum32()), nil
}
