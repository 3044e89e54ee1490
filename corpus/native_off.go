//go:build !native

package corpus

// openNative opens no tokenizer in a build without the tag native.
func openNative(_ string, other *notWordPiece) (Tokenizer, error) { return nil, other }
