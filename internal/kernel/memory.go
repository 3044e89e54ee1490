package kernel

// Floats returns n zeros. For large n it requests large pages from the system, which are several times as fast to
// allocate and to address.
func Floats(n int) []float32 {
	x := make([]float32, n)
	RequestLargePages(x)
	return x
}

// RequestLargePages requests large pages from the system for values that have not been written and that Floats has not
// allocated.
func RequestLargePages(x []float32) {
	if len(x) >= largeFloats {
		requestLargePages(x)
	}
}

const largeFloats = 1 << 16 // an eighth of a large page: the next allocation is likely beside it

// Clear writes zeros to x.
func Clear(x []float32) { clears.run(len(x), 1<<16, x) }

var clears = tiled(func(x *[]float32, lo, hi int) { clear((*x)[lo:hi]) })

// memory is a reusable buffer that grows to the largest length required.
type memory []float32

// of returns n uninitialised floats, which live until the next call.
func (m *memory) of(n int) []float32 {
	if cap(*m) < n {
		*m = make([]float32, n)
	}
	return (*m)[:n]
}

// zeros returns n zeros, which live until the next call.
func (m *memory) zeros(n int) []float32 {
	s := m.of(n)
	clear(s)
	return s
}
