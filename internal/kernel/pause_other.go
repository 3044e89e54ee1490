//go:build !amd64

package kernel

import "runtime"

// pause lets others run.
func pause() { runtime.Gosched() }
