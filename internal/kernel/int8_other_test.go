//go:build !amd64 && !arm64

package kernel

// withIntTiles lists the sets that multiply int8 in tiles.
func withIntTiles() []*set { return nil }
