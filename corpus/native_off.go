//go:build !native

package corpus

// openNative returns the error other: a build without the tag native reads no other kind of tokenizer.
func openNative(_ string, other *notWordPiece) (Tokenizer, error) { return nil, other }
