package corpus

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/transform"
)

// utf16Decoder decodes UTF-16. An unpaired surrogate, or a single byte at the end, becomes notUTF8, so that it differs
// from U+FFFD in the file: the decoder of x/text writes U+FFFD for all three.
type utf16Decoder struct {
	transform.NopResetter
	order binary.ByteOrder
}

// notUTF8 is a byte that no UTF-8 contains.
const notUTF8 = 0xff

// newUTF16Decoder returns the decoder of utf-16le, utf-16be, or utf-16 of a file with a head: little-endian unless its
// byte-order mark says otherwise.
func newUTF16Decoder(encoding string, head []byte) utf16Decoder {
	if encoding == "utf-16be" || encoding == "utf-16" && string(head) == "\xfe\xff" {
		return utf16Decoder{order: binary.BigEndian}
	}
	return utf16Decoder{order: binary.LittleEndian}
}

// Transform implements transform.Transformer.
func (u utf16Decoder) Transform(dst, src []byte, atEOF bool) (nDst, nSrc int, err error) {
	for nSrc < len(src) {
		rest := src[nSrc:]
		if len(dst)-nDst < utf8.UTFMax {
			return nDst, nSrc, transform.ErrShortDst
		}
		if len(rest) < 2 || len(rest) < 4 && utf16.IsSurrogate(rune(u.order.Uint16(rest))) {
			if !atEOF {
				return nDst, nSrc, transform.ErrShortSrc
			}
			dst[nDst] = notUTF8
			nDst, nSrc = nDst+1, nSrc+min(len(rest), 2)
			continue
		}

		r, size := rune(u.order.Uint16(rest)), 2
		if utf16.IsSurrogate(r) {
			if r = utf16.DecodeRune(r, rune(u.order.Uint16(rest[2:]))); r == utf8.RuneError {
				dst[nDst] = notUTF8
				nDst, nSrc = nDst+1, nSrc+2
				continue
			}
			size = 4
		}
		nDst, nSrc = nDst+utf8.EncodeRune(dst[nDst:], r), nSrc+size
	}
	return nDst, nSrc, nil
}
