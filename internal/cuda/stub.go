//go:build !gpu || !linux || !(amd64 || arm64)

package cuda

// Built reports whether the program can use a GPU.
const Built = false
