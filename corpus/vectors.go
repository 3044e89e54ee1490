package corpus

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/floats"
)

const maxVectorWidth = 1 << 14

// counts matches a first line that holds the number of words and the width.
var counts = regexp.MustCompile(`^[0-9]+ [0-9]+$`)

// Vectors holds the vectors of words.
type Vectors struct {
	Width  int
	Words  []string // in the order of the file, usually by frequency
	byWord map[string][]float32
}

// Of returns a word's vector [Width], nil if there is none.
func (v *Vectors) Of(word string) []float32 { return v.byWord[word] }

// OpenVectors reads a text file of word vectors in GloVe's form (Pennington et al. 2014): on each line a word and its
// numbers, separated by single blanks. A first line of two numbers, which word2vec and fastText write, is the number of
// words and the width. It keeps the words for which keep, called for each in order, returns true. The error lists all
// mistakes in what was read.
func OpenVectors(ctx context.Context, path string, keep func(word string) bool) (*Vectors, error) {
	in, done, err := openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	defer done()
	return readVectors(ctx, in, path, keep)
}

func readVectors(ctx context.Context, r io.Reader, name string, keep func(word string) bool) (*Vectors, error) {
	d := newReader(ctx, r, name, Format{Encoding: "utf-8"}, &mistakes{})
	v := &Vectors{byWord: map[string][]float32{}}
	promised, lines := 0, 0
	for {
		line, more := d.next()
		if !more {
			break
		}
		line = strings.TrimRight(line, " ")
		numbers := strings.Count(line, " ")
		switch {
		case line == "":
			continue
		case d.place.Line == 1 && counts.MatchString(line):
			n, _, _ := strings.Cut(line, " ")
			promised, _ = strconv.Atoi(n)
			continue
		case v.Width == 0 && (numbers == 0 || numbers > maxVectorWidth):
			d.add(d.place, "a word and %s; want 1 to %d", counted(numbers, "number"), maxVectorWidth)
			return nil, d.err(name)
		case v.Width == 0:
			v.Width = numbers
		case numbers < v.Width:
			d.add(d.place, "a word and %s; the lines before have %d", counted(numbers, "number"), v.Width)
			continue
		case numbers > v.Width: // a word with blanks: no tokenizer produces it
			lines++
			continue
		}
		lines++
		word, rest, _ := strings.Cut(line, " ")
		if v.byWord[word] == nil && keep(word) {
			v.Words, v.byWord[word] = append(v.Words, word), d.vector(rest, v.Width)
		}
	}
	if err := d.err(name); err != nil {
		return nil, err
	}
	if v.Width == 0 {
		return nil, fmt.Errorf("%s: no vectors; want a word and its numbers in each line", name)
	}
	if lines < promised {
		return nil, fmt.Errorf("%s: %s, where the first line has %d: the file is truncated", name,
			counted(lines, "word"), promised)
	}
	return v, nil
}

func (d *reader) vector(line string, width int) []float32 {
	vector := make([]float32, 0, width)
	for field := range strings.SplitSeq(line, " ") {
		x, err := strconv.ParseFloat(field, 32)
		if err != nil || !floats.IsDecimal(field) {
			d.add(d.place, "%s in a vector; want a number", shown(field))
			break
		}
		vector = append(vector, float32(x))
	}
	return vector
}
