package kernel

import "unsafe"

func init() {
	neon.panel = 16
	neon.tile = append(neon.tile, nil)
	for i, tile := range []tileNEON{tile1NEON, tile2NEON, tile3NEON, tile4NEON, tile5NEON, tile6NEON} {
		neon.tile = append(neon.tile, tile.below(i+1))
	}
	neon.copyWide, neon.copyNarrow, neon.transpose8 = copyWideNEON, copyNarrowNEON, transpose8NEON
}

// tileNEON is one tile of a product.
type tileNEON func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// below returns a function that computes count tiles of the given rows, one below the other.
func (tile tileNEON) below(rows int) func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int,
	b *float32, k int, next, end *float32, count int) {
	const float = 4 // bytes
	step := func(x *float32, by int) *float32 { return (*float32)(unsafe.Add(unsafe.Pointer(x), float*by)) }
	return func(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol, aTile int, b *float32, k int, next,
		end *float32, count int) {
		for {
			tile(c, from, cRow, fromRow, a, aRow, aCol, b, k, next)
			if count--; count == 0 {
				return
			}
			c, from, a = step(c, rows*cRow), step(from, rows*fromRow), step(a, aTile)
			if left := int(uintptr(unsafe.Pointer(end))-uintptr(unsafe.Pointer(next))) / float; left > 0 {
				next = step(next, min(left, 8*k))
			}
		}
	}
}

// tile1NEON writes from + a·b to c, 1 row of 16: a [1 k] has column stride aCol, b [k 16] has no gaps. It prefetches
// the k/2 cache lines at next.
//
//go:noescape
func tile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// tile2NEON is tile1NEON for 2 rows, with the row strides cRow, fromRow and aRow.
//
//go:noescape
func tile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// tile3NEON is tile2NEON for 3 rows.
//
//go:noescape
func tile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// tile4NEON is tile2NEON for 4 rows.
//
//go:noescape
func tile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// tile5NEON is tile2NEON for 5 rows.
//
//go:noescape
func tile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// tile6NEON is tile2NEON for 6 rows.
//
//go:noescape
func tile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)

// copyWideNEON copies rows of 16 values, with row stride xRow, to out without gaps.
//
//go:noescape
func copyWideNEON(out, x *float32, xRow, rows int)

// copyNarrowNEON copies rows of cols values, at most 8, with row stride xRow, to out without gaps. It reads and writes
// 8 values a row.
//
//go:noescape
func copyNarrowNEON(out, x *float32, xRow, rows, cols int)

// transpose8NEON writes 8 rows of x, with row stride xRow, to 8 columns of out, with row stride outRow: 8·times columns
// of x to as many rows.
//
//go:noescape
func transpose8NEON(out, x *float32, outRow, xRow, times int)
