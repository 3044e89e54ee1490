//go:build !amd64

package kernel

import "runtime"

// pause yields to other goroutines.
func pause() { runtime.Gosched() }
