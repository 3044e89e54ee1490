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
		// Two words in one slot of the cache, which the random seed of one tokenizer in 2,000 does, allocate each time.
		allocations := 0.0
		for range 3 {
			if allocations = allocationsOfAppend(t, file); allocations == 0 {
				break
			}
		}
		if allocations > 0 {
			t.Errorf("%s: %v allocations a text", name, allocations)
		}
	}
}

// allocationsOfAppend returns the allocations of dividing a text once more, by the tokenizer of a file.
func allocationsOfAppend(t *testing.T, file string) float64 {
	tokenizer, text := read(t, file), strings.Repeat("ab abab é b'a 12 ", 20)
	out := tokenizer.append(nil, text, nil)
	return testing.AllocsPerRun(100, func() { out = tokenizer.append(out[:0], text, nil) })
}
