package guess

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/plugin"
)

// Model is the base model of an experiment.
type Model struct {
	Name   string   // "": trained from scratch
	Others []string // other models that could be named
}

// scratch is an encoder that is trained from scratch, and its training.
type scratch struct {
	layers, width, feedForward, vocabulary int
	rate                                   string
}

// writer writes the lines of an experiment file.
type writer struct {
	strings.Builder
	folder string // paths are relative to it
	*Experiment
	model Model
}

// YAML returns the experiment file, for a file in a folder: paths in it are relative to the folder.
func (e *Experiment) YAML(folder string, model Model) []byte {
	w := &writer{folder: folder, Experiment: e, model: model}
	w.comment(0, "Written by jenga init. A comment above a part is the reason for it: what the beginning of the data, "+
		"at most %d records, looks like. Change what is wrong; jenga check reads all data, and jenga train trains. "+
		"jenga parts section describes the keys.", maxRecords)
	w.line("project_name: %s", scalar(e.Name))
	w.line("seed: 1")
	w.writeModel()
	w.line("tasks:")
	for _, s := range e.Sets {
		w.writeSet(s)
	}
	for _, file := range e.Skipped {
		w.comment(2, "not read: %s", file)
	}
	w.writeTraining()
	return []byte(w.String())
}

func (w *writer) line(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }

// comment writes a comment in lines of at most 110 columns. Characters that are not printable, some of which YAML does
// not allow, become U+FFFD.
func (w *writer) comment(indent int, format string, args ...any) {
	prefix := strings.Repeat(" ", indent) + "#"
	line := prefix
	text := strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, fmt.Sprintf(format, args...))
	for word := range strings.FieldsSeq(text) {
		if len(line)+len(word) > 110 && line != prefix {
			w.line("%s", line)
			line = prefix
		}
		line += " " + word
	}
	w.line("%s", line)
}

// writeModel writes the base model, or the encoder to train from scratch.
func (w *writer) writeModel() {
	if w.model.Name != "" {
		w.comment(0, "base_model: a pretrained encoder found on this machine%s",
			also(w.model.Others, "; others are %s"))
		w.line("model:\n  base_model: %s\n  dropout: 0.1", scalar(w.model.Name))
		w.line("tokenizer: {max_length: %d}", w.maxLength())
		return
	}
	s := w.scratch()
	w.comment(0, "encoder: trained from scratch, on these texts alone, since no pretrained encoder was found below "+
		"$JENGA_MODELS or in the Hugging Face cache. A pretrained one predicts better from few examples: download one "+
		"by jenga pull sentence-transformers/all-MiniLM-L6-v2, or another BERT or DistilBERT, and run jenga init "+
		"--force again; or write base_model: sentence-transformers/all-MiniLM-L6-v2 in place of encoder, leave out "+
		"tokenizer: train, and set learning_rate: 1.0e-4.")
	w.line("model:\n  dropout: 0.1")
	w.line("  encoder: {type: transformer, layers: %d, width: %d, heads: 4, feed_forward: %d, max_positions: %d, "+
		"initializer_range: 0.1}", s.layers, s.width, s.feedForward, w.maxLength())
	w.line("tokenizer:\n  max_length: %d\n  train: {vocab_size: %d}", w.maxLength(), s.vocabulary)
}

// scratch returns the size of an encoder for the number of records that there are.
func (w *writer) scratch() scratch {
	for _, s := range w.Sets {
		if !s.Whole || s.Records >= maxRecords {
			return scratch{2, 128, 512, 8000, "1.0e-3"}
		}
	}
	return scratch{2, 64, 128, 2000, "3.0e-3"} // the quickstart's
}

// maxLength returns how many tokens a text may have: about 1.5 for each word of nearly all texts.
func (w *writer) maxLength() int {
	words := 0
	for _, s := range w.Sets {
		words = max(words, s.Words)
	}
	for _, n := range []int{128, 256} {
		if words*3/2 < n {
			return n
		}
	}
	return 512
}

// also formats a list, if there is something in it.
func also(names []string, format string) string {
	if len(names) == 0 {
		return ""
	}
	more := ""
	if n := len(names) - 5; n > 0 {
		names, more = names[:5], fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf(format, strings.Join(names, ", ")+more)
}

// writeSet writes the tasks of a data set.
func (w *writer) writeSet(s *Set) {
	read := "all of it"
	if !s.Whole || s.Records == maxRecords {
		read = "its beginning"
	}
	w.line("")
	w.comment(2, "%s: %s, %s", s.Train, plugin.Count(s.Records, "record"), read)
	for _, note := range s.Notes {
		w.comment(2, "%s", note)
	}
	for i, t := range s.Tasks {
		w.comment(2, "%s", t.Reason)
		w.line("  - name: %s\n    type: %s", scalar(t.Name), t.Type)
		for _, option := range t.Options {
			w.line("    %s", option)
		}
		if i == 0 {
			w.line("    data:")
			w.writeFiles(s)
			for _, f := range slices.Concat(s.Fields, t.Fields) {
				w.field(f)
			}
		} else {
			fields := []string{"same_as: " + scalar(s.Tasks[0].Name)}
			for _, f := range t.Fields {
				if f.Name != f.Column {
					fields = append(fields, f.Name+": "+scalar(f.Column))
				}
			}
			w.line("    data: {%s}", strings.Join(fields, ", "))
		}
		w.writeHeads(t)
	}
}

// writeHeads writes the heads of a task, where the default does not do. From scratch a text's first token says nothing
// about it before training, so that heads read all tokens.
func (w *writer) writeHeads(t Task) {
	names, options := t.Heads, t.Head
	if names == nil {
		names = []string{t.Name}
	}
	pools := t.Type == "classification" || t.Type == "multi_label" || t.Type == "qa_qc" || t.Type == "regression"
	if w.model.Name == "" && pools {
		options = strings.TrimPrefix(options+", pool: attention", ", ")
	}
	if options == "" && t.Heads == nil {
		return
	}
	w.line("    heads:")
	for _, name := range names {
		w.line("      - {%s}", strings.TrimSuffix("name: "+scalar(name)+", "+options, ", "))
	}
}

// writeFiles writes where the examples are, and their format.
func (w *writer) writeFiles(s *Set) {
	key := "train"
	if s.Divide {
		key = "path"
	}
	w.line("      %s: %s", key, scalar(w.path(s.Train)))
	if s.Dev != "" {
		w.line("      dev: %s", scalar(w.path(s.Dev)))
	}
	if s.Test != "" {
		w.line("      test: %s", scalar(w.path(s.Test)))
	}
	if s.Dev == "" {
		by := ""
		if s.By != "" {
			by = ", by: " + scalar(s.By)
		}
		dev := "0.1"
		if s.Whole && s.Records < 1000 {
			dev = "0.2" // metrics on fewer than 100 examples tell little
		}
		w.line("      split: {dev: %s%s} # no file is named as dev", dev, by)
	}
	f := s.Format
	for _, option := range [][2]string{
		{"format", f.Type}, {"delimiter", f.Delimiter}, {"quote", f.Quote}, {"encoding", f.Encoding},
	} {
		if option[1] != "" {
			w.line("      %s: %s", option[0], scalar(option[1]))
		}
	}
	if f.NoHeader {
		w.line("      header: false")
	}
	if f.Columns != nil {
		names := make([]string, len(f.Columns))
		for i, name := range f.Columns {
			names[i] = scalar(name)
		}
		w.line("      columns: [%s]", strings.Join(names, ", "))
	}
}

// field writes which column holds a field, where its name does not say so.
func (w *writer) field(f Field) {
	if f.Name != f.Column {
		w.line("      %s: %s", f.Name, scalar(f.Column))
	}
}

// path returns a path relative to the experiment file's folder; one that was given as absolute stays so.
func (w *writer) path(path string) string {
	if !filepath.IsAbs(path) {
		if relative, err := filepath.Rel(absolute(w.folder), absolute(path)); err == nil {
			path = relative
		}
	}
	return filepath.ToSlash(path)
}

func (w *writer) writeTraining() {
	rate, epochs := "1.0e-4", 4
	if w.model.Name == "" {
		rate, epochs = w.scratch().rate, 6
	}
	w.line("\ntraining:\n  learning_rate: %s\n  batch_size: 32\n  num_epochs: %d\n  warmup_ratio: 0.1", rate, epochs)
}

// plain matches texts that YAML reads as themselves, without quotes. Words such as no are texts in YAML 1.2 and not in
// 1.1: they are quoted.
var (
	plain    = regexp.MustCompile(`^[A-Za-z_./][A-Za-z0-9_./-]*$`)
	reserved = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null|\.nan|\.inf|\.)$`)
)

// scalar writes a text in YAML.
func scalar(text string) string {
	if plain.MatchString(text) && !reserved.MatchString(text) {
		return text
	}
	return quoted(text)
}

// quoted writes a text in double quotes, as JSON, which YAML reads. Characters that are not printable are escaped.
func quoted(text string) string {
	var encoded, b strings.Builder
	encoder := json.NewEncoder(&encoded)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic("guess: " + err.Error())
	}
	for _, r := range strings.TrimSpace(encoded.String()) {
		switch {
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}
