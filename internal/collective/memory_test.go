package collective

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
)

// counting counts the bytes that a transport has allocated.
type counting struct {
	Transport
	bytes int
}

func (c *counting) Allocate(bytes int) ([]byte, error) {
	c.bytes += bytes
	return c.Transport.Allocate(bytes)
}

func TestMemoryIsUsedAgain(t *testing.T) {
	c := &counting{Transport: collectivetest.Local(1)[0]}
	g, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	const n = 1000
	for range 100 {
		values, err := g.Floats(n)
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(values, func(v float32) bool { return v != 0 }) {
			t.Fatal("memory that is used again is not cleared")
		}
		values[n/2] = 1
		g.Release(values)
	}
	if c.bytes != 4*n {
		t.Errorf("%d bytes are allocated for %d, one after the other", c.bytes, 4*n)
	}
	for n := 1; n <= 1<<20; n *= 2 {
		if _, err := g.buffer(tagBytes, n); err != nil {
			t.Fatal(err)
		}
	}
	if c.bytes > 3<<20 {
		t.Errorf("%d bytes are allocated for a buffer that grows to %d", c.bytes, 1<<20)
	}
}
