package kernel

import (
	"errors"
	"fmt"
	"slices"
)

// Precision is how the values that a product multiplies are represented. Sums are float32, of Int8 exact.
type Precision int

const (
	Float32  Precision = iota
	BFloat16           // rounded to 8 bits of precision
	Int8               // integers with a scale for each row of A and each column of B; see MaxInt8Depth
)

// String returns the name that options have: float32, bf16 or int8.
func (p Precision) String() string { return [...]string{"float32", "bf16", "int8"}[p] }

// Bytes returns the memory of a value in a packed matrix.
func (p Precision) Bytes() int {
	switch p {
	case BFloat16:
		return 2
	case Int8:
		return 4 / intsOfLane()
	}
	return 4
}

// tileOf returns the tiles of a precision; nil: there are none.
func (s *set) tileOf(p Precision) []tileFunc {
	switch p {
	case BFloat16:
		return s.pairTile
	case Int8:
		return s.intTile
	}
	return s.tile
}

// inTiles reports whether products of a precision are computed in tiles here.
func (p Precision) inTiles() bool { return use.tileOf(p) != nil }

// Check returns an error if products of a precision below float32 are slow here: the processor has no instruction for
// them, or JENGA_KERNEL selects a version without. They then run in plain Go, as a reference.
func (p Precision) Check() error {
	if p == Float32 || p.inTiles() {
		return nil
	}
	for _, s := range slices.Backward(available()) {
		if s.tileOf(p) != nil {
			return fmt.Errorf("JENGA_KERNEL=%s does not multiply %s; the %s kernel does", use.name, p, s.name)
		}
	}
	if p == BFloat16 {
		return fmt.Errorf("this processor has no instruction that multiplies %s (AVX512_BF16)", p)
	}
	return errors.New("this processor has no instruction that multiplies int8 (AVX2, NEON)")
}
