package tokenizer

import (
	"context"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// appendSome is Tokenizer.AppendSome.
type appendSome func(ctx context.Context, out []Token, text string, words []Range, most int) ([]Token, error)

// pieceBytes is how long a piece of a text may be once it is normalised: a text that is read in pieces takes some
// hundred times as much, however long it is and becomes.
const (
	pieceBytes = 1 << 17
	minPiece   = 64 // raw, for normalisers that make a text thousands of times longer
)

// appendSome appends the first most tokens of text. A long text is divided piece by piece: a piece ends before a blank
// between letters, where the tokens of what follows do not depend on what precedes, or in a text without such blanks at
// the end of a token that has further ones after it in the piece.
func (t *subwords) appendSome(ctx context.Context, out []Token, text string, words []Range, most int) ([]Token,
	error) {
	s := t.pool.Get().(*state)
	defer func() {
		s.inside = inside{}
		t.pool.Put(s)
	}()
	most += len(out)
	parts, number := words, int32(0)
	if words == nil {
		parts, number = []Range{{0, len(text)}}, -1
	}
	for _, part := range parts {
		for lo := part.Start; lo < part.End && len(out) < most; {
			if err := ctx.Err(); err != nil {
				return out, err
			}
			hi, calm := t.pieceEnd(text[:part.End], lo)
			s.inside = inside{lo > part.Start, hi < part.End}
			first := len(out)
			out = t.appendPart(out, s, text, lo, hi, number)
			if s.goesOn && !calm {
				out, hi = t.resume(out, first, s, text, Range{lo, hi})
			}
			lo = hi
		}
		number++
	}
	return out[:min(len(out), most)], nil
}

// pieceEnd returns where the piece of text that begins at byte lo ends, and whether it is before a blank between
// letters.
func (t *subwords) pieceEnd(text string, lo int) (hi int, calm bool) {
	if len(text)-lo <= t.piece {
		return len(text), true
	}
	for hi = lo + t.piece; hi > lo+t.piece/2; hi-- {
		if text[hi] != ' ' {
			continue
		}
		before, _ := utf8.DecodeLastRuneInString(text[lo:hi])
		if (unicode.IsLetter(before) || unicode.IsNumber(before)) && isCalm(text, hi+1) && !t.added.blanks {
			return hi, true
		}
	}
	for hi = lo + t.piece; !utf8.RuneStart(text[hi]) && hi > lo+1; hi-- {
	}
	return hi, false
}

// isCalm reports whether a letter or a number begins at byte i that no normalisation joins with what precedes it.
func isCalm(text string, i int) bool {
	r, size := utf8.DecodeRuneInString(text[i:])
	return (unicode.IsLetter(r) || unicode.IsNumber(r)) && norm.NFKC.IsNormalString(text[i:i+size])
}

// resume returns out with those tokens of a piece of text, which goes on, that remain, from index first on, and where
// the next piece begins: at the end of a token in the middle of the piece, after which a letter begins. Byte pairs and
// Unigram divide what follows the end of a token as they do beside what precedes it. Where the places of tokens are not
// those of their text, or there is no such token, all remain.
func (t *subwords) resume(out []Token, first int, s *state, text string, of Range) ([]Token, int) {
	tokens, length := out[first:], of.End-of.Start
	for i := len(tokens) - 2; i >= 0; i-- {
		at := tokens[i].End
		if at <= of.Start+length/2 {
			break
		}
		if at > of.End-length/8 || tokens[i+1].Start < at || !isCalm(text, at) {
			continue
		}
		again := t.appendPart(nil, s, text, of.Start, at, tokens[i].Word)
		if slices.Equal(again, tokens[:i+1]) {
			return out[:first+i+1], at
		}
		break
	}
	return out, of.End
}
