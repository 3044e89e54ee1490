package pieces

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
)

// pattern is a text or a regular expression of a tokenizer.json.
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
		return &Unsupported{key, fmt.Sprintf("the pattern %q, with %s", *p.Regex, why),
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

// unbounded reports whether there is a repetition without an upper bound.
func unbounded(re *syntax.Regexp) bool {
	return re.Op == syntax.OpStar || re.Op == syntax.OpPlus || re.Op == syntax.OpRepeat && re.Max < 0 ||
		slices.ContainsFunc(re.Sub, unbounded)
}

// mayBeEmpty reports whether no character matches.
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
