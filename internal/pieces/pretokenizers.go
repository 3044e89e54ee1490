package pieces

// metaspace is the mark of a blank in sentencepiece's vocabularies.
const metaspace = "▁"

// divideAt divides splits at the matches of a finder.
type divideAt struct {
	finder   finder
	behavior behavior
	invert   bool
}

// preTokenize implements preTokenizer.
func (p *divideAt) preTokenize(s *state) { s.divide(p.finder, p.behavior, p.invert) }

// metaspaces is sentencepiece's pre-tokenizer (Kudo and Richardson 2018): a mark takes the place of blanks and is put
// before words, and splits are divided before each mark.
type metaspaces struct {
	mark   string
	prefix string // which splits the mark is put before: always, first (of the raw text) or never
	words  finder // of marks, at which splits are divided; nil for none
}

// preTokenize implements preTokenizer.
func (p *metaspaces) preTokenize(s *state) {
	s.rewrite(func(from *aligned, k split) {
		text := from.text[k.lo:k.hi]
		marked := text[0] == ' ' || len(text) >= len(p.mark) && string(text[:len(p.mark)]) == p.mark
		if !marked && (p.prefix == "always" || p.prefix == "first" && from.at[k.lo].start == 0) {
			s.put(p.mark, from.at[k.lo])
		}
		for i := k.lo; i < k.hi; i++ {
			if from.text[i] == ' ' {
				s.put(p.mark, from.at[i])
			} else {
				s.text, s.at = append(s.text, from.text[i]), append(s.at, from.at[i])
			}
		}
	})
	if p.words != nil {
		s.divide(p.words, mergedNext, false)
	}
}

// put appends a text that has the place at.
func (a *aligned) put(text string, at span) {
	a.text = append(a.text, text...)
	for range len(text) {
		a.at = append(a.at, at)
	}
}
