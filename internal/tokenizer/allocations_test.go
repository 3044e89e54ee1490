//go:build !race

package tokenizer

import (
	"strings"
	"testing"
)

// The race detector drops what a sync.Pool holds at random, so that these tests have no meaning under it.

// Once the cache has a text's words, dividing it allocates nothing but what the normaliser of added tokens needs.
func TestAppendAllocatesNothing(t *testing.T) {
	bytePairs := spoil(t, smallBPE, `{"model"`, `{"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": true},
 "normalizer": {"type": "NFC"}, "model"`)
	unigrams := spoil(t, smallUnigram, `{"model"`, `{"normalizer": {"type": "Replace", "pattern": {"String": " "},
 "content": "_"}, "pre_tokenizer": {"type": "Metaspace", "replacement": "_"}, "model"`)
	for name, file := range map[string]string{"bpe": bytePairs, "unigram": unigrams} {
		tokenizer, text := read(t, file), strings.Repeat("ab abab é b'a 12 ", 20)
		out := tokenizer.append(nil, text, nil)
		again := func() { out = tokenizer.append(out[:0], text, nil) }
		if got := testing.AllocsPerRun(100, again); got > 0 {
			t.Errorf("%s: %v allocations a text of %d pieces", name, got, len(out))
		}
	}
}
