package kernel

import "golang.org/x/sys/cpu"

// withIntTiles lists the sets that multiply int8 in tiles: those of this processor, and, where it multiplies bytes,
// that for older ones.
func withIntTiles() (sets []*set) {
	for _, s := range available() {
		if s.intTile == nil {
			continue
		}
		sets = append(sets, s)
		if s == &avx512 && cpu.X86.HasAVX512VNNI {
			words := s.called("avx512 without VNNI")
			words.useWords()
			sets = append(sets, &words)
		}
	}
	return sets
}
