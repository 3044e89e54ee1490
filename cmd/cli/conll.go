package cli

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// sentences writes a line for each word, as conll or conllu: the lines of an input of the same format with the
// predicted tags in the columns of the targets, else lines of its own. A word without a tag has _. Errors go to log.
type sentences struct {
	conllu  bool
	source  *bufio.Reader // the input's lines; nil for another format
	format  corpus.Format // of source
	targets []predict.TargetColumn
	log     io.Writer
}

// newSentences returns a writer for the targets that are a tag for each word. The caller closes it with done.
func newSentences(format string, from textInput, targets []predict.TargetColumn, log io.Writer) (s *sentences,
	done func() error, err error) {
	targets = slices.DeleteFunc(slices.Clone(targets), func(t predict.TargetColumn) bool { return !t.PerWord })
	s = &sentences{conllu: format == "conllu", format: from.format, targets: targets, log: log}
	done = func() error { return nil }
	switch {
	case len(targets) == 0:
		return nil, nil, fmt.Errorf("--format %s: no task predicts a tag for each word; want jsonl or csv", format)
	case checkTargets(targets) != nil:
		return nil, nil, checkTargets(targets)
	case corpus.FileType(from.file) != format:
		return s, done, nil
	case !from.format.IsUTF8():
		return nil, nil, fmt.Errorf("--format %s: it copies the lines of the input, whose encoding is %s, and the "+
			"output is UTF-8; want jsonl, csv or tsv, or data in UTF-8", format, from.format.Encoding)
	}
	in, done, err := openLines(from.file)
	if err != nil {
		return nil, nil, err
	}
	s.source = bufio.NewReader(in)
	if mark, _ := s.source.Peek(3); string(mark) == "\ufeff" {
		s.source.Discard(3)
	}
	return s, done, nil
}

func (s *sentences) write(w io.Writer, result any) error {
	p, ok := result.(predicted)
	if !ok {
		p.Err = result.(errorLine).Err
	}
	if p.Err != nil {
		fmt.Fprintln(s.log, p.Err)
		p.Data = nil
	}
	switch {
	case s.source != nil:
		return s.rewrite(w, p)
	case !ok: // there are no words
		return nil
	}
	for i, word := range p.Words {
		text := p.Text[word.Start:word.End]
		if strings.ContainsAny(text, "\t\r\n") {
			return fmt.Errorf("line %d: word %q has a tab or a line end, which conll cannot hold; want jsonl", p.Line,
				text)
		}
		cells := []string{text}
		if s.conllu {
			cells = []string{strconv.Itoa(i + 1), text, "_", "_", "_", "_", "_", "_", "_", "_"}
		}
		if err := s.setTags(&cells, p, i); err != nil {
			return err
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (*sentences) end(io.Writer) error { return nil }

// rewrite copies a sentence of the source with its predicted tags. With an error it has none: each is _.
func (s *sentences) rewrite(w io.Writer, p predicted) error {
	for words := 0; ; {
		line, err := s.source.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		ended := err != nil
		line = strings.TrimRight(line, "\r\n")
		blank := strings.Trim(line, " \t") == ""
		if cells, delimiter := s.cells(line); cells != nil && !blank {
			if err := s.setTags(&cells, p, words); err != nil {
				return err
			}
			line = strings.Join(cells, delimiter)
			words++
		}
		if !ended || line != "" {
			fmt.Fprintln(w, line)
		}
		if ended && !blank {
			fmt.Fprintln(w)
		}
		if ended || blank && words > 0 {
			return nil
		}
	}
}

// cells returns the columns of a line that is a word, nil for another one, and what separates them.
func (s *sentences) cells(line string) (cells []string, delimiter string) {
	delimiter = "\t"
	switch given := s.format.Delimiter; {
	case s.conllu:
	case strings.Trim(given, " ") != "":
		delimiter = given
	case given != "" || !strings.Contains(line, "\t"):
		cells, delimiter = strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == '\t' }), " "
	}
	if cells == nil {
		cells = strings.Split(line, delimiter)
	}
	if len(cells) == 0 || cells[0] == "-DOCSTART-" || s.conllu && strings.Trim(cells[0], "0123456789") != "" {
		return nil, ""
	}
	return cells, delimiter
}

// setTags sets the tags of word number i in its columns.
func (s *sentences) setTags(cells *[]string, p predicted, i int) error {
	for _, target := range s.targets {
		at, err := s.column(target, *cells)
		if err != nil {
			return err
		}
		if at == len(*cells) {
			*cells = append(*cells, "_")
		}
		(*cells)[at] = "_"
		switch tags := p.Data[target.Task][target.Head].(type) {
		case []string:
			if i < len(tags) {
				(*cells)[at] = tags[i]
			}
		case []*string:
			if i < len(tags) && tags[i] != nil {
				(*cells)[at] = *tags[i]
			}
		}
	}
	return nil
}

// conlluColumns are the columns of a CoNLL-U file.
var conlluColumns = []string{"id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc"}

// column returns the index of a target's column among the cells of a word; their number for one that is to be added.
func (s *sentences) column(t predict.TargetColumn, cells []string) (int, error) {
	names := s.format.Columns
	switch {
	case s.conllu && t.Column == "tags":
		return slices.Index(conlluColumns, "upos"), nil
	case s.conllu:
		names = conlluColumns
	case s.source == nil, len(names) == 0 && t.Column == "tags" && len(cells) == 1:
		return len(cells), nil // after the word
	case len(names) == 0 && t.Column == "tags":
		return len(cells) - 1, nil
	case len(names) == 0:
		names = make([]string, len(cells))
		for i := range names {
			names[i] = strconv.Itoa(i + 1)
		}
	}
	if at := slices.Index(names, t.Column); at >= 0 && at < len(cells) {
		return at, nil
	}
	return 0, fmt.Errorf("--format: task %q has its tags in the column %q, which a word here does not have; want "+
		"jsonl or csv", t.Task, t.Column)
}
