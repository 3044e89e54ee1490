//go:build !amd64 && !arm64

package kernel

import "runtime"

// available lists the sets that this processor can run.
func available() []*set { return []*set{&plain} }

// pause yields to other goroutines.
func pause() { runtime.Gosched() }
