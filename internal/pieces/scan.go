package pieces

import "unicode/utf8"

// scanner finds the matches of a pattern of the GPT family, by hand: the patterns look ahead, which a linear engine
// cannot do. Each byte of a text belongs to a match.
type scanner struct {
	newer  bool // the pattern of cl100k and its kin, not GPT-2's
	digits int  // most characters of a match of numbers, 0 for any number
}

// gpt2 is the pattern of GPT-2 (Radford et al. 2019).
var gpt2 = scanner{}

// The ends of the patterns of cl100k and its kin, before and after their numbers.
const (
	newerWords  = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|`
	newerOthers = `| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
)

// scanners are the patterns that are scanned by hand, in the notation of tokenizer.json files.
var scanners = map[string]*scanner{
	`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`: &gpt2,
	newerWords + `\p{N}{1,3}` + newerOthers:                                      {true, 3}, // Llama 3
	newerWords + `\p{N}` + newerOthers:                                           {true, 1}, // Qwen 2
	// cl100k in its own notation, which has the same matches as Llama 3's
	`'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|` +
		`\s*[\r\n]|\s+(?!\S)|\s+`: {true, 3},
}

// find implements finder.
func (p *scanner) find(text []byte, from int) (lo, hi int) {
	if from == len(text) {
		return from, from
	}
	table := classesOfRunes()
	if n := p.contraction(text[from:]); n > 0 {
		return from, from + n
	}
	first, size := classOf(table, text[from:])
	next, second := from+size, first // the rune after an optional first one
	if next < len(text) {
		second, _ = classOf(table, text[next:])
	}
	switch {
	case first == letter:
		return from, run(table, text, next, letter)
	case first == number:
		return from, p.numbers(text, next)
	case next < len(text) && second == letter && p.leads(text[from]):
		return from, run(table, text, next, letter)
	case next < len(text) && second == number && text[from] == ' ' && !p.newer:
		return from, run(table, text, next, number)
	case first == 0:
		return from, p.others(text, next)
	case next < len(text) && second == 0 && text[from] == ' ':
		return from, p.others(text, next)
	}
	return from, p.spaces(text, from)
}

// leads reports whether letters after a character that is no letter, number or end of line belong to its match.
func (p *scanner) leads(c byte) bool {
	return c == ' ' || p.newer && c != '\r' && c != '\n'
}

// contraction returns the length of an English contraction that text begins with, or 0.
func (p *scanner) contraction(text []byte) int {
	if text[0] != '\'' || len(text) < 2 {
		return 0
	}
	lower := func(i int) byte {
		if i >= len(text) {
			return 0
		}
		if c := text[i]; p.newer && 'A' <= c && c <= 'Z' {
			return c - 'A' + 'a'
		}
		return text[i]
	}
	switch a, b := lower(1), lower(2); {
	case a == 's' || a == 't' || a == 'm' || a == 'd':
		return 2
	case a == 'r' && b == 'e' || a == 'v' && b == 'e' || a == 'l' && b == 'l':
		return 3
	case p.newer && len(text) >= 3 && string(text[1:3]) == "ſ": // is s without regard to case
		return 3
	}
	return 0
}

// run returns the end of the runes of a class from byte at on.
func run(table *[utf8.MaxRune + 1]class, text []byte, at int, of class) int {
	for at < len(text) {
		c, size := classOf(table, text[at:])
		if c != of {
			break
		}
		at += size
	}
	return at
}

// numbers returns the end of a match of numbers whose first ends at byte at.
func (p *scanner) numbers(text []byte, at int) int {
	table := classesOfRunes()
	if p.digits == 0 {
		return run(table, text, at, number)
	}
	for n := 1; n < p.digits && at < len(text); n++ {
		c, size := classOf(table, text[at:])
		if c != number {
			break
		}
		at += size
	}
	return at
}

// others returns the end of a match of runes that are no letters, numbers or white space.
func (p *scanner) others(text []byte, at int) int {
	at = run(classesOfRunes(), text, at, 0)
	for p.newer && at < len(text) && (text[at] == '\r' || text[at] == '\n') {
		at++
	}
	return at
}

// spaces returns the end of a match of white space from byte at on: it leaves the last rune to the word that follows.
func (p *scanner) spaces(text []byte, at int) int {
	end := run(classesOfRunes(), text, at, space)
	if p.newer {
		for i := end; i > at; i-- {
			if c := text[i-1]; c == '\r' || c == '\n' {
				return i
			}
		}
	}
	if end == len(text) {
		return end
	}
	_, last := utf8.DecodeLastRune(text[at:end])
	if end-last > at {
		return end - last
	}
	return end
}
