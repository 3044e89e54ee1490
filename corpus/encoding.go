package corpus

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"html"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	std "unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"golang.org/x/text/unicode/norm"

	"github.com/jenga-nlp/jenga/internal/files"
)

// pythonNames has the names of Python's codecs that neither IANA nor the WHATWG has, with - for _.
var pythonNames = map[string]string{
	"utf8": "utf-8", "u8": "utf-8", "cp65001": "utf-8",
	"utf-8-sig": "utf-8", "utf8-sig": "utf-8", // a byte-order mark is skipped
	"utf16": "utf-16", "u16": "utf-16",
	"utf-16-le": "utf-16le", "utf16le": "utf-16le", "utf16-le": "utf-16le",
	"utf-16-be": "utf-16be", "utf16be": "utf-16be", "utf16-be": "utf-16be",
	"1252": "cp1252", "cp-1252": "cp1252", "latin-1": "latin1", "8859": "latin1",
	"mac-roman": "macintosh", "macroman": "macintosh",
	"cp932": "shift_jis", "eucjp": "euc-jp", "cp949": "euc-kr", "latin9": "iso-8859-15",
}

// encodingName returns the name of an encoding in lower case, as of IANA or the WHATWG if it is one of Python's.
func encodingName(name string) string {
	name = strings.ToLower(strings.TrimSpace(name))
	if registered(name) != nil {
		return name
	}
	dashed := strings.ReplaceAll(name, "_", "-")
	if other, is := pythonNames[dashed]; is {
		return other
	}
	return dashed
}

// registered returns the encoding that IANA has by a name, else that of the WHATWG; nil if neither has it.
func registered(name string) encoding.Encoding {
	if e, err := ianaindex.IANA.Encoding(name); err == nil && e != nil {
		return e
	}
	if e, err := htmlindex.Get(name); err == nil && e != encoding.Replacement {
		return e
	}
	return nil
}

// encodingOf returns the encoding with a name in the registry of IANA, in the list of the WHATWG or of Python, in upper
// or lower case; nil for UTF-8. A name in both, as latin1, is IANA's.
func encodingOf(name string) (encoding.Encoding, error) {
	own := encodingName(name)
	switch e := registered(own); {
	case own == "" || e == unicode.UTF8:
		return nil, nil
	case own == "utf-16":
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), nil
	case e != nil:
		return e, nil
	}
	return nil, fmt.Errorf("no encoding %q; want a name of IANA or the WHATWG, as utf-8, utf-16, cp1252, latin1, "+
		"koi8-r, cp850, shift_jis, gbk", start(name))
}

// IsUTF8 reports whether the encoding of f, by any of its names, is UTF-8.
func (f Format) IsUTF8() bool {
	e, err := encodingOf(f.Encoding)
	return e == nil && err == nil
}

// invalidText is the first text of a file that is not valid in its encoding.
type invalidText struct {
	mistake int // its number
	at      Place
	what    string
	word    []byte // around the byte, if a code page may read it
}

// decode returns text, which begins at a place and is UTF-8 if the file has no mistake. Of the lines that are not
// UTF-8, the first one is a mistake; reportInvalid counts the others, whose cause is the same.
func (d *reader) decode(text []byte, at Place) string {
	valid, bad := utf8.Valid(text), -1
	switch {
	case !valid:
		bad = files.InvalidUTF8(text)
	case d.decoded && !d.utf16:
		bad = bytes.IndexRune(text, utf8.RuneError)
	}
	if !d.decoded {
		d.countUTF8(text, valid)
	}
	if bad < 0 {
		return string(text)
	}
	if d.invalids++; d.invalids == 1 {
		at.Line += bytes.Count(text[:bad], []byte("\n"))
		column := utf8.RuneCount(text[bytes.LastIndexByte(text[:bad], '\n')+1:bad]) + 1
		what := fmt.Sprintf("byte 0x%02x at character %d is not UTF-8", text[bad], column)
		remedy, word := d.remedy(text, bad)
		if d.decoded {
			what = fmt.Sprintf("character %d is a byte that encoding %s does not have", column, d.format.Encoding)
			remedy, word = "another encoding, or correct it", nil
		}
		d.invalid = invalidText{d.add(at, "%s; %s", what, remedy), at, what, bytes.Clone(word)}
	}
	return strings.ToValidUTF8(string(text), string(utf8.RuneError))
}

// countUTF8 counts the lines of a text by whether they show that the file is UTF-8, or that it is not.
func (d *reader) countUTF8(text []byte, valid bool) {
	if valid && utf8.RuneCount(text) == len(text) {
		return
	}
	for line := range bytes.Lines(text) {
		switch {
		case !utf8.Valid(line):
			d.otherLines++
			d.script.add(line)
		case utf8.RuneCount(line) < len(line):
			d.utf8Lines++
		}
	}
}

// reportInvalid completes the mistake of a text that is not valid, by what the whole file has: where other lines are
// UTF-8, no encoding reads all, and their words tell the script.
func (d *reader) reportInvalid() {
	if d.invalid.word != nil {
		d.replace(d.invalid.mistake, d.invalid.at, "%s; %s", d.invalid.what, d.codePages(d.invalid.word))
	}
	switch n := d.invalids - 1; {
	case d.invalids > 0 && d.utf8Lines > 0 && !d.marked:
		d.replace(d.invalid.mistake, d.invalid.at, "%s; %s of the file %s not UTF-8, and %s with other characters "+
			"than ASCII %s: no encoding reads both; write the former in UTF-8", d.invalid.what,
			counted(d.otherLines, "line"), isOrAre(d.otherLines), counted(d.utf8Lines, "line"), isOrAre(d.utf8Lines))
	case n > 0:
		d.mistakes.add(Place{File: d.file}, "%s with such bytes", counted(n, "more line"))
	}
}

// remedy says how a text whose byte at offset bad is not UTF-8 can be read; word: by one of codePages. A file that is
// UTF-8 elsewhere is not in another encoding: to name one would lead to other characters that are wrong.
func (d *reader) remedy(text []byte, bad int) (remedy string, word []byte) {
	switch word := wordAround(text, bad); {
	case d.marked:
		return "the file begins with UTF-8's byte-order mark: correct the character", nil
	case d.utf8Lines > 0 || utf8.RuneCount(text[:bad]) < bad:
		return "other characters of the file are: correct this one", nil
	case slices.ContainsFunc(word, func(b byte) bool { return charmap.Windows1252.DecodeByte(b) == utf8.RuneError }):
		return "encoding: NAME reads another code page, as cp850, koi8-r or shift_jis", nil
	default:
		return d.codePages(word), word
	}
}

// codePages names the code pages that may read a word, by the lines that are not UTF-8 so far.
func (d *reader) codePages(word []byte) string {
	name, others, page := "cp1252", "cp850", charmap.Windows1252
	if d.script.isOther() {
		name, others, page = "cp1251", "cp1253", charmap.Windows1251
	}
	as, _ := page.NewDecoder().Bytes(word)
	return fmt.Sprintf("encoding: %s reads it as in %q, encoding: NAME other code pages, as %s or koi8-r", name, as,
		others)
}

func wordAround(text []byte, at int) []byte {
	const most = 8
	letter := func(b byte) bool { return b > ' ' && b != '"' && b != ',' && b != ';' }
	from, to := at, at+1
	for from > 0 && at-from < most && letter(text[from-1]) {
		from--
	}
	for to < len(text) && to-at <= most && letter(text[to]) {
		to++
	}
	return text[from:to]
}

// FoldName returns what two names have in common that are one name to some file system: names that differ in case, as
// straße and STRASSE where it is folded in full, or in whether an accent is a character of its own (NFC and NFD).
func FoldName(name string) string {
	return norm.NFC.String(cases.Fold().String(strings.ToLower(strings.ToUpper(name))))
}

// CheckUTF8 returns an error that names the first byte of a text that is not UTF-8, and its offset, from 0.
func CheckUTF8(text string) error {
	if utf8.ValidString(text) {
		return nil
	}
	at := files.InvalidUTF8([]byte(text))
	return fmt.Errorf("not UTF-8: byte 0x%02x at offset %d", text[at], at)
}

// utf16Decoder decodes UTF-16. An unpaired surrogate, or a single byte at the end, becomes notUTF8, so that it differs
// from U+FFFD in the file: the decoder of x/text writes U+FFFD for all three.
type utf16Decoder struct {
	transform.NopResetter
	order binary.ByteOrder // of utf-16: little-endian unless the byte-order mark says otherwise
}

// notUTF8 is a byte that no UTF-8 contains.
const notUTF8 = 0xff

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

// Look returns a text as a reader sees it: in lower case, of composed characters, without white space, invisible
// characters and quotation marks around it, its HTML entities as characters. Texts that look alike are equal then.
func Look(text string) string {
	invisible := func(r rune) bool { return std.IsSpace(r) || std.Is(std.Cf, r) }
	look := strings.Join(strings.FieldsFunc(html.UnescapeString(text), invisible), "")
	if quoted := inQuotes.FindStringSubmatch(look); quoted != nil {
		look = quoted[1]
	}
	return strings.ToLower(norm.NFC.String(look))
}

// inQuotes matches a word in quotation marks: two of them alone are a tag of the Penn Treebank.
var inQuotes = regexp.MustCompile(`^["'“”„‘’«»](.*[\pL\pN].*)["'“”‘’«»]$`)

// QuoteUnlike quotes a text so that it differs from those that look alike: with escapes for an accent that is apart
// from its letter, and for invisible characters.
func QuoteUnlike(text string) string {
	if norm.NFC.IsNormalString(text) {
		return strconv.Quote(text)
	}
	return strconv.QuoteToASCII(text)
}

// IsGarbled reports whether a text is UTF-8 that was read as cp1252, or latin1, and written as UTF-8 again: its
// characters are bytes of these, of which those beyond ASCII are sequences of UTF-8, as hardly any text has them by
// chance. Bytes that cp1252 lacks, as of Cyrillic letters in UTF-8, are control characters of latin1 then.
func IsGarbled(text string) bool {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return false
	}
	was := make([]byte, 0, len(text))
	for _, r := range text {
		b, known := byteOf(r)
		if !known {
			return false
		}
		was = append(was, b)
	}
	return utf8.Valid(was)
}

// byteOf returns the byte that is read as a character in cp1252, or else latin1.
func byteOf(r rune) (b byte, known bool) {
	if b, known = charmap.Windows1252.EncodeRune(r); known || r > 0xff {
		return b, known
	}
	return byte(r), true
}

// IsOtherScript reports whether a text of another script, in one byte a letter, was read as cp1252 or latin1: most of
// its letters are of words of accented letters alone, as Ïðèâåò for Привет.
func IsOtherScript(text string) bool {
	if !strings.ContainsFunc(text, func(r rune) bool { return r >= firstLetter && r <= 0xff }) {
		return false
	}
	was := make([]byte, 0, len(text))
	for _, r := range text {
		b, known := byteOf(r)
		switch {
		case !known && std.IsLetter(r):
			b = 'x'
		case !known:
			b = ' '
		}
		was = append(was, b)
	}
	var s script
	s.add(was)
	return s.isOther() && s.accented > s.mixed+s.ascii && !utf8.Valid(was)
}

// OtherScript returns the start of the first word of another script than Latin in a text that is not UTF-8, as cp1252
// reads it; "" for a text in cp1252.
func OtherScript(text []byte) (word string) {
	var s script
	s.add(text)
	if !s.isOther() {
		return ""
	}
	as, _ := charmap.Windows1252.NewDecoder().Bytes(s.first)
	return string(as)
}

// script counts what tells that bytes are letters of another script than Latin, which cp1252 reads as accented ones.
type script struct {
	accented int    // letters of words without ASCII ones
	mixed    int    // bytes beyond ASCII of words with some
	ascii    int    // letters of ASCII
	kinds    uint32 // a bit of each of accented
	first    []byte // word of accented, at most 20 bytes of it
}

// firstLetter is that of cp1252's accented letters, and of those of most other code pages.
const firstLetter = 0xc0

// add adds the words of a text. One of accents alone counts if it has at least two letters: others, as the × of a mask
// and a letter that is repeated, are in texts of all scripts. In cp1251 × and ÷ are letters too.
func (s *script) add(text []byte) {
	apart := func(r rune) bool { return r < utf8.RuneSelf && !std.IsLetter(r) }
	for word := range bytes.FieldsFuncSeq(text, apart) {
		high, letters, kinds := 0, 0, uint32(0)
		for _, b := range word {
			if b >= utf8.RuneSelf {
				high++
			}
			if b >= firstLetter {
				letters++
				if b |= 0x20; b != 0xf7 { // of either case; × and ÷
					kinds |= 1 << (b & 0x1f)
				}
			}
		}
		s.ascii += len(word) - high
		switch {
		case high < len(word):
			s.mixed += high
		case bits.OnesCount32(kinds) > 1:
			if s.accented == 0 {
				s.first = bytes.Clone(word[:min(len(word), 20)])
			}
			s.accented += letters
			s.kinds |= kinds
		}
	}
}

// isOther reports whether words of accents alone are many and varied, and have more accents than the other words.
func (s *script) isOther() bool {
	const fewLetters, fewKinds = 6, 5
	return s.accented >= fewLetters && bits.OnesCount32(s.kinds) >= fewKinds && s.accented > s.mixed
}
