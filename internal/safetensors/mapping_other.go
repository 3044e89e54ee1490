//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package safetensors

import (
	"errors"
	"os"
)

// mapFile is for systems whose files can be moved and removed only while nobody has them open: a mapping that lives as
// long as an encoder would be in the way. Tensors are read there.
func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { panic("safetensors: unmapping on a system without mappings") }
