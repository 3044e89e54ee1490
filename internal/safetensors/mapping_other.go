//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package safetensors

import (
	"errors"
	"os"
)

// mapFile is for systems where open files cannot be moved or removed: a mapping that lives as long as an encoder would
// prevent that. There tensors are read instead.
func mapFile(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { panic("safetensors: unmapping on a system without mappings") }
