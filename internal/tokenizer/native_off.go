//go:build !native

package tokenizer

// openNative returns the refusal: a build without the tag native reads no other form.
func openNative(_ *source, refusal error) (*Tokenizer, error) { return nil, refusal }

// nativeHint is how forms that this build does not read can be read.
const nativeHint = "; scripts/native.sh makes the library that reads all, for go build -tags native"
