package corpus

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Ways to split a text without words into words.
const (
	SplitPunctuation = "punctuation" // at white space, and each punctuation mark is a word: as the tokenizer does
	SplitEnds        = "ends"        // at white space, and punctuation marks at both ends of a word are words
	SplitClitics     = "clitics"     // as SplitEnds, and English clitics ('s, n't) are words
	SplitTreebank    = "treebank"    // as SplitClitics, and at hyphens, by the rules of English treebanks since 2012
	SplitWhitespace  = "whitespace"  // at white space alone
)

// Splitter returns the function that splits a text in a way; for SplitPunctuation, and for "", that is the tokenizer's.
func Splitter(way string, t Tokenizer) func(text string) []Span {
	switch way {
	case SplitEnds:
		return splitting(appendEnds)
	case SplitClitics:
		return splitting(appendClitics)
	case SplitTreebank:
		return splitting(appendTreebank)
	case SplitWhitespace:
		return splitWhitespace
	}
	return func(text string) []Span { return withDropped(text, t.Split(text)) }
}

// withDropped extends the words that a tokenizer finds by the characters beside them that it drops, such as combining
// marks and joiners: they belong to the word before them, else to the one after, unless white space is between.
func withDropped(text string, words []Span) []Span {
	end := 0 // of the word before
	for i := range words {
		between := text[end:words[i].Start]
		if i > 0 {
			n := strings.IndexFunc(between, unicode.IsSpace)
			if n < 0 {
				n = len(between)
			}
			words[i-1].End += n
			between = between[n:]
		}
		words[i].Start -= len(between) - len(strings.TrimRightFunc(between, notSpace))
		end = words[i].End
	}
	if n := len(words); n > 0 {
		rest := text[end:]
		words[n-1].End += len(rest) - len(strings.TrimLeftFunc(rest, notSpace))
	}
	return words
}

func notSpace(r rune) bool { return !unicode.IsSpace(r) }

func splitWhitespace(text string) []Span {
	words, end := []Span{}, 0
	for word := range strings.FieldsSeq(text) {
		start := end + strings.IndexFunc(text[end:], notSpace)
		end = start + len(word)
		words = append(words, Span{start, end})
	}
	return words
}

// splitting splits a text at white space; add appends the words of each part.
func splitting(add func(words []Span, text string, part Span) []Span) func(text string) []Span {
	return func(text string) []Span {
		words := []Span{}
		for _, part := range splitWhitespace(text) {
			words = add(words, text, part)
		}
		return words
	}
}

// appendEnds appends the words of a part of text without white space: the marks at its ends and what is between them.
func appendEnds(words []Span, text string, w Span) []Span {
	marks := func(from, to int) {
		for i, r := range text[from:to] {
			words = append(words, Span{from + i, from + i + utf8.RuneLen(r)})
		}
	}
	start := w.End - len(strings.TrimLeftFunc(text[w.Start:w.End], unicode.IsPunct))
	end := start + len(strings.TrimRightFunc(text[start:w.End], unicode.IsPunct))
	marks(w.Start, start)
	if end > start {
		words = append(words, Span{start, end})
	}
	marks(end, w.End)
	return words
}

// clitics are English words that are written without a blank before them.
var clitics = []string{"'s", "'re", "'ve", "'ll", "'d", "'m", "n't", "’s", "’re", "’ve", "’ll", "’d", "’m", "n’t"}

func appendClitics(words []Span, text string, part Span) []Span {
	for _, w := range appendEnds(nil, text, part) {
		at := w.Start + cliticAt(text[w.Start:w.End])
		words = append(words, Span{w.Start, at})
		if at < w.End {
			words = append(words, Span{at, w.End})
		}
	}
	return words
}

// cliticAt returns the byte of a word at which a clitic begins, the word's length if none does.
func cliticAt(word string) int {
	for _, clitic := range clitics {
		if n := len(word) - len(clitic); n > 0 && strings.EqualFold(word[n:], clitic) {
			return n
		}
	}
	return len(word)
}

// SplitAgreement returns the F1 of the words that split finds in the texts of examples, against their given words.
// Where the words were joined by blanks, the text is the one they were split from, or if that is not known, it is
// rebuilt as it is usually written: without a blank before closing punctuation marks and after opening ones.
func SplitAgreement(split func(text string) []Span, examples []*Example) float64 {
	same, all := 0, 0
	for _, e := range examples {
		text, words := rebuilt(e)
		found, given := split(text), map[Span]bool{}
		for _, word := range words {
			given[word] = true
		}
		for _, word := range found {
			if given[word] {
				same++
			}
		}
		all += len(words) + len(found)
	}
	if all == 0 {
		return 1
	}
	return float64(2*same) / float64(all)
}

func rebuilt(e *Example) (string, []Span) {
	words := make([]string, len(e.Words))
	for i, w := range e.Words {
		words[i] = e.Text[w.Start:w.End]
	}
	if strings.Join(words, " ") != e.Text {
		return e.Text, e.Words // the text came with its words
	}
	if spans, err := findWords(e.Written, words); err == nil && e.Written != "" {
		return e.Written, spans // without words that are contracted in the text: "del" of de and el
	}
	var text strings.Builder
	spans := make([]Span, len(words))
	for i, w := range words {
		if i > 0 && !closes(w) && !opens(words[i-1]) {
			text.WriteByte(' ')
		}
		spans[i] = Span{text.Len(), text.Len() + len(w)}
		text.WriteString(w)
	}
	return text.String(), spans
}

// closes reports whether a word stands without a blank after the word before it: a closing mark, or an English clitic.
func closes(word string) bool {
	return slices.Contains(clitics, strings.ToLower(word)) || strings.Trim(word, `.,;:!?%)]}…”»،؛؟।。，、！？；：）」』`) == ""
}

// opens reports whether a word stands without a blank before the word after it.
func opens(word string) bool { return strings.Trim(word, "([{“«¿¡$€£（「『") == "" }

// longestDivided is the most bytes between blanks that are searched for words: the search is quadratic.
const longestDivided = 512

var emoticon = regexp.MustCompile(`(^|[\pL\d.!?,])([:;=]['-]?[()\]DPp|*/]+|[(][-]?[:;=]|\^_+\^)$`)

// appendTreebank appends the words of text[at.Start:at.End], which has no white space, as the English Web Treebank has
// them, and Universal Dependencies with it (Bies et al. 2012, English Web Treebank, LDC2012T13): as appendClitics, but
// a run of one mark is a word, hyphens, slashes, brackets and quotes within a word are words, and the period of an
// abbreviation belongs to it.
func appendTreebank(words []Span, text string, at Span) []Span {
	if at.End-at.Start > longestDivided {
		return appendEnds(words, text, at)
	}
	if m := emoticon.FindStringSubmatchIndex(text[at.Start:at.End]); m != nil {
		face := Span{at.Start + m[4], at.End}
		if face.Start > at.Start {
			words = appendTreebank(words, text, Span{at.Start, face.Start})
		}
		return append(words, face)
	}
	// marks before the word
	for at.Start < at.End && !isWordPart(text[at.Start:at.End]) {
		n := markLength(text[at.Start:at.End])
		words, at.Start = append(words, Span{at.Start, at.Start + n}), at.Start+n
	}

	// the word, and the marks after it, the first of which may be an abbreviation's period
	core := strings.TrimRightFunc(text[at.Start:at.End], isMark)
	if rest := text[at.Start+len(core) : at.End]; strings.HasPrefix(rest, ".") &&
		!strings.HasPrefix(rest, "..") && abbreviated(core) {
		core = text[at.Start : at.Start+len(core)+1]
	}
	end := at.Start + len(core)
	switch {
	case core == "":
	case isAddress(core):
		words = append(words, Span{at.Start, end})
	default:
		words = appendCore(words, text, Span{at.Start, end})
	}
	for end < at.End {
		n := markLength(text[end:at.End])
		words, end = append(words, Span{end, end + n}), end+n
	}
	return words
}

// appendCore appends the words of text[at.Start:at.End], which has no marks at its ends but an abbreviation's period.
func appendCore(words []Span, text string, at Span) []Span {
	for i := at.Start; i < at.End; {
		r, size := utf8.DecodeRuneInString(text[i:at.End])
		n := markLength(text[i:at.End])
		if !isMark(r) || i == at.Start || i+n == at.End || !divides(text[at.Start:at.End], i-at.Start, n) {
			i += size
			continue
		}
		words = appendClitic(words, text, Span{at.Start, i})
		return appendTreebank(append(words, Span{i, i + n}), text, Span{i + n, at.End})
	}
	return appendClitic(words, text, at)
}

// divides reports whether the run of one mark at word[i:i+n], within a word, is a word of its own.
func divides(word string, i, n int) bool {
	before, _ := utf8.DecodeLastRuneInString(word[:i])
	after, _ := utf8.DecodeRuneInString(word[i+n:])
	digits := unicode.IsDigit(before) && unicode.IsDigit(after)
	r, size := utf8.DecodeRuneInString(word[i:])
	switch {
	case strings.ContainsRune(`()[]{}<>"“”;?!`, r), n > size && r != '\'':
		return true
	case strings.ContainsRune("-–—", r):
		return hyphenDivides(word[:i], word[i+n:])
	case strings.ContainsRune(`/,:`, r):
		return !digits && unicode.IsLetter(before) && unicode.IsLetter(after)
	}
	return false
}

// affixes are prefixes and suffixes that a hyphen joins to their word, by the treebank's guidelines for hyphens.
var affixes = strings.Fields(`a anti bi bio co counter cyber de e eco ex extra inter macro mega micro mid mini multi neo
	non over pan para post pre pro pseudo quasi re semi sub super tri u ultra un uni vice x fold gate less most wise`)

func hyphenDivides(before, after string) bool {
	if slices.Contains(affixes, strings.ToLower(before)) || slices.Contains(affixes, strings.ToLower(after)) {
		return false
	}
	letter := func(s string) bool { return strings.ContainsFunc(s, unicode.IsLetter) }
	return letter(before) || letter(after) || len(before) == len(after) || len(before) < 3
}

var joinedWords = strings.Fields(`can|not gon|na got|ta wan|na do|nt did|nt does|nt is|nt was|nt have|nt could|nt
	would|nt should|nt i|m i|ve`)

var quantity = regexp.MustCompile(`^\d[\d.,:]*([ap]m|k|m|mm|cm|km|g|kg|lbs?|oz|ft|[mg]b|mwh?|hrs?|mins?|yrs?)$`)

// appendClitic appends a word, an English clitic at its end as a word of its own.
func appendClitic(words []Span, text string, w Span) []Span {
	word := text[w.Start:w.End]
	at := w.Start + cliticAt(word)
	lower := strings.ToLower(word)
	for _, joined := range joinedWords {
		if first, second, _ := strings.Cut(joined, "|"); lower == first+second {
			at = w.Start + len(first)
		}
	}
	if m := quantity.FindStringSubmatchIndex(lower); m != nil && len(lower) == len(word) {
		at = w.Start + m[2] // 5pm, 10k
	}
	if r, size := utf8.DecodeRuneInString(word); unicode.Is(unicode.Sc, r) && size < len(word) {
		words, w.Start = append(words, Span{w.Start, w.Start + size}), w.Start+size // $5
	}
	words = append(words, Span{w.Start, at})
	if at < w.End {
		words = append(words, Span{at, w.End})
	}
	return words
}

// isMark reports whether a character is a punctuation mark, or a sign that stands by itself.
func isMark(r rune) bool { return unicode.IsPunct(r) || strings.ContainsRune("<>=+~^|`", r) }

// isWordPart reports whether the first character of a text belongs to a word: it is no mark, or one of a name (@you,
// #this) or of a shortened word ('67).
func isWordPart(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	next, _ := utf8.DecodeRuneInString(text[size:])
	switch r {
	case '@', '#':
		return unicode.IsLetter(next)
	case '\'', '’':
		return unicode.IsDigit(next)
	}
	return !isMark(r)
}

// ends are the marks that end a sentence; a run of them, ?!, is one word.
const ends = ".?!"

// markLength returns the length of the run of one mark that a text begins with.
func markLength(text string) int {
	r, _ := utf8.DecodeRuneInString(text)
	if strings.ContainsRune("()[]{}\"“”", r) {
		return utf8.RuneLen(r) // each bracket is a word
	}
	same := string(r)
	if strings.Contains(ends, same) {
		same = ends
	}
	return len(text) - len(strings.TrimLeft(text, same))
}

var abbreviations = strings.Fields(`mr mrs ms dr prof rev gen sen rep gov lt col sgt capt st jr sr inc corp ltd co vs
	etc ft mon tue wed thu fri sat jan feb mar apr jun jul aug sep sept oct nov dec mt ave dept est fig vol`)

// abbreviated reports whether the period after a word belongs to it: U.S, W, Inc.
func abbreviated(word string) bool {
	r, size := utf8.DecodeLastRuneInString(word)
	if !unicode.IsLetter(r) || strings.Contains(word, "..") {
		return false
	}
	before := word[:len(word)-size]
	switch {
	case before == "" && unicode.IsUpper(r), slices.Contains(abbreviations, strings.ToLower(word)):
		return true
	}
	return strings.HasSuffix(before, ".") && len(before) < 8 && !isAddress(word)
}

var figures = regexp.MustCompile(`^\d+(-\w+)+-\d+$`)

// isAddress reports whether a word is the address of a page or of mail, a date or a telephone number.
func isAddress(word string) bool {
	if figures.MatchString(word) {
		return true
	}
	at := strings.Index(word, "@")
	return strings.Contains(word, "://") || strings.HasPrefix(strings.ToLower(word), "www.") ||
		at > 0 && strings.Contains(word[at:], ".") && !strings.ContainsAny(word, `<>"`)
}
