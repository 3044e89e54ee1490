package pieces

import (
	"hash/maphash"
	"sync/atomic"
)

const (
	cacheSlots  = 1 << 15
	cachedBytes = 64 // longer texts are not kept
)

// cache holds the tokens of short texts: of those with the same hash, the last one.
type cache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cacheEntry]
}

type cacheEntry struct {
	text   string
	tokens []token
}

func newCache() *cache {
	return &cache{maphash.MakeSeed(), make([]atomic.Pointer[cacheEntry], cacheSlots)}
}

// slot returns where the tokens of a text are kept, nil if they are not.
func (c *cache) slot(text []byte) *atomic.Pointer[cacheEntry] {
	if len(text) > cachedBytes {
		return nil
	}
	return &c.slots[maphash.Bytes(c.seed, text)%cacheSlots]
}

// appendCached appends the tokens of text, which tokenize appends where the cache has none. Their places count from
// offset.
func (c *cache) appendCached(s *state, text []byte, offset int32, tokenize func(s *state, text []byte)) {
	slot := c.slot(text)
	first := len(s.tokens)
	if slot == nil {
		tokenize(s, text)
	} else if entry := slot.Load(); entry != nil && entry.text == string(text) {
		s.tokens = append(s.tokens, entry.tokens...)
	} else {
		tokenize(s, text)
		slot.Store(&cacheEntry{string(text), append([]token(nil), s.tokens[first:]...)})
	}
	if offset == 0 {
		return
	}
	for i := first; i < len(s.tokens); i++ {
		s.tokens[i].start += offset
		s.tokens[i].end += offset
	}
}
