package kernel

// withIntTiles lists the sets that multiply int8 in tiles.
func withIntTiles() (sets []*set) {
	for _, s := range available() {
		if s.intTile != nil {
			sets = append(sets, s)
		}
	}
	return sets
}
