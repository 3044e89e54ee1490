package tokenizer

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"
)

type pattern struct {
	Text  *string `json:"String"`
	Regex *string `json:"Regex"`
}

// finder returns what finds the matches of a pattern of the part at key.
func (p *pattern) finder(key string) (finder, error) {
	switch {
	case p != nil && p.Text != nil && *p.Text != "":
		return literal(*p.Text), nil
	case p == nil || p.Regex == nil:
		return nil, fmt.Errorf("%s has no pattern, want a String or a Regex", key)
	case len(*p.Regex) > maxPattern:
		return nil, fmt.Errorf("%s has a pattern of %d bytes, want at most %d", key, len(*p.Regex), maxPattern)
	}
	if scan := scanners[*p.Regex]; scan != nil {
		return scan, nil
	}
	refused := func(why string) error {
		return &unsupported{key, fmt.Sprintf("the pattern %q, with %s", *p.Regex, why),
			"patterns without looking around and references, and those of GPT-2, Llama 3 and Qwen 2"}
	}
	translated, why := translate(*p.Regex)
	if why != "" {
		return nil, refused(why)
	}
	re, err := regexp.Compile(translated)
	if err != nil {
		return nil, refused("what Go's regular expressions do not have: " + err.Error())
	}
	if re.MatchString("") {
		return nil, refused("matches of no characters")
	}
	if parsed, err := syntax.Parse(translated, syntax.Perl); err != nil || waits(parsed) {
		return nil, refused("an unbounded repetition that something must follow, whose search takes quadratic time")
	}
	return expression{re}, nil
}

// waits reports whether something that has characters must follow a repetition without an upper bound. If nothing must,
// each character that the repetition takes makes a match longer, so that a search reads few characters beyond its match
// and all matches of a text are found in linear time.
func waits(re *syntax.Regexp) bool {
	if slices.ContainsFunc(re.Sub, waits) {
		return true
	}
	switch re.Op {
	case syntax.OpConcat:
		open := false
		for _, sub := range re.Sub {
			if open && !mayBeEmpty(sub) {
				return true
			}
			open = open || unbounded(sub)
		}
	case syntax.OpRepeat:
		return re.Min > 1 && unbounded(re.Sub[0]) && !mayBeEmpty(re.Sub[0])
	}
	return false
}

func unbounded(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 ||
		slices.ContainsFunc(re.Sub, unbounded)
}

func mayBeEmpty(re *syntax.Regexp) bool {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpStar, syntax.OpQuest:
		return true
	case syntax.OpRepeat:
		return re.Min == 0 || mayBeEmpty(re.Sub[0])
	case syntax.OpAlternate:
		return slices.ContainsFunc(re.Sub, mayBeEmpty)
	case syntax.OpPlus, syntax.OpCapture, syntax.OpConcat:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !mayBeEmpty(sub) })
	}
	return false
}

// expression finds the matches of a regular expression of which waits is not true, in linear time.
type expression struct{ *regexp.Regexp }

func (e expression) find(text []byte, from int) (lo, hi int) {
	at := e.FindIndex(text[from:])
	if at == nil {
		return len(text), len(text)
	}
	return from + at[0], from + at[1]
}

// Classes of characters of Oniguruma, in which \s and \d are Unicode's. Its \w differs within and outside of [].
var unicodeClasses = map[byte]string{
	's': `\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000}`,
	'd': `\p{Nd}`,
}

// translate returns a pattern of Oniguruma in Go's syntax, or why it has none.
func translate(pattern string) (translated, why string) {
	var out strings.Builder
	inClass := false
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		rest := pattern[i+1:]
		switch {
		case c == '\\' && rest != "":
			i++
			escape, why := translateEscape(rest, inClass)
			if why != "" {
				return "", why
			}
			out.WriteString(escape)
			continue
		case inClass && c == '[' || strings.HasPrefix(pattern[i:], "&&"):
			return "", "a class of characters in another one"
		case c == '[' && strings.HasPrefix(strings.TrimPrefix(rest, "^"), "]"):
			return "", "a class of characters that begins with ]"
		case c == '[':
			inClass = true
		case c == ']':
			inClass = false
		case inClass:
		case c == '(' && strings.HasPrefix(rest, "?") && !strings.HasPrefix(rest, "?:"):
			return "", "a group that looks around or has options"
		case strings.IndexByte("*+?}", c) >= 0 && strings.HasPrefix(rest, "+"):
			return "", "a possessive quantifier"
		case c == '}' && strings.HasPrefix(rest, "?"):
			return "", "a quantifier of a number of times with ?"
		case c == '{' && strings.HasPrefix(rest, ","):
			return "", "a quantifier without its least number"
		case c == '^' || c == '$':
			return "", "the begin or end of a line"
		}
		out.WriteByte(c)
	}
	return out.String(), ""
}

// translateEscape returns an escape sequence in Go's syntax; rest is what follows the backslash.
func translateEscape(rest string, inClass bool) (translated, why string) {
	c := rest[0]
	class, known := unicodeClasses[c|0x20]
	switch {
	case known && c >= 'a':
		if inClass {
			return class, ""
		}
		return "[" + class + "]", ""
	case known && !inClass:
		return "[^" + class + "]", ""
	case strings.IndexByte(`pPnrtfv`, c) >= 0, c < 0x80 && !isAlnum(c):
		return `\` + rest[:1], ""
	}
	return "", fmt.Sprintf(`\%c`, c)
}

func isAlnum(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

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
		return from, run(table, text, next, letter, -1)
	case first == number:
		return from, run(table, text, next, number, p.digits-1)
	case next < len(text) && second == letter && p.leads(text[from]):
		return from, run(table, text, next, letter, -1)
	case next < len(text) && second == number && text[from] == ' ' && !p.newer:
		return from, run(table, text, next, number, -1)
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

// run returns the end of the runes of a class from byte at on, most of them if that is not -1.
func run(table *[utf8.MaxRune + 1]class, text []byte, at int, of class, most int) int {
	for n := 0; n != most && at < len(text); n++ {
		c, size := classOf(table, text[at:])
		if c != of {
			break
		}
		at += size
	}
	return at
}

func (p *scanner) others(text []byte, at int) int {
	at = run(classesOfRunes(), text, at, 0, -1)
	for p.newer && at < len(text) && (text[at] == '\r' || text[at] == '\n') {
		at++
	}
	return at
}

// spaces returns the end of a match of white space from byte at on: it leaves the last rune to the word that follows.
func (p *scanner) spaces(text []byte, at int) int {
	end := run(classesOfRunes(), text, at, space, -1)
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
