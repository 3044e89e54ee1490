package pieces

import "fmt"

// maxGrowth is how many times longer all parts together may make a text.
const maxGrowth = 1 << 13

// growing is a normaliser or a pre-tokenizer that may make texts longer.
type growing interface {
	// growth returns how many times longer, at most.
	growth() int
}

// checkGrowth returns an error for parts that together could make a text longer than memory.
func (t *Tokenizer) checkGrowth() error {
	times := 1
	count := func(part any) {
		if g, ok := part.(growing); ok {
			times = min(times*max(1, g.growth()), 2*maxGrowth)
		}
	}
	for _, n := range t.normalizers {
		count(n)
	}
	for _, p := range t.preTokenizers {
		count(p)
	}
	if times > maxGrowth {
		return fmt.Errorf("normalizer and pre_tokenizer may make a text more than %d times longer", maxGrowth)
	}
	return nil
}

// A pattern matches at least one byte.
func (r *replace) growth() int {
	if text, ok := r.finder.(literal); ok && len(text) > 0 {
		return (len(r.content) + len(text) - 1) / len(text)
	}
	return len(r.content)
}

// The factors of Unicode Standard Annex 15, table "Maximum Expansion Factors".
func (f unicodeForm) growth() int {
	if f.compatible {
		return 11
	}
	return 3
}

func (lowercase) growth() int      { return 2 }
func (p prepend) growth() int      { return 1 + len(p) } // to a segment of a byte
func (p *precompiled) growth() int { return p.longest }
func (m *metaspaces) growth() int  { return 2 * len(m.mark) }
func (b *byteLevel) growth() int   { return 2 } // a blank before a split of a byte
