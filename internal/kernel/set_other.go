//go:build !amd64 && !arm64

package kernel

// available lists the sets that this processor can run.
func available() []*set { return []*set{&plain} }
