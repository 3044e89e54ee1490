package kernel

import "golang.org/x/sys/cpu"

// withIntTiles lists the sets that multiply int8 in tiles: those of this processor, and, where it multiplies bytes,
// that for older ones.
func withIntTiles() (sets []*set) {
	for _, s := range available() {
		if s.intTile != nil {
			sets = append(sets, s)
		}
		if s == &neon && cpu.ARM64.HasASIMDDP {
			words := s.called("neon without DotProd")
			words.useWords()
			sets = append(sets, &words)
		}
	}
	return sets
}
