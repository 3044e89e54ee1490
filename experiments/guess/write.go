package guess

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/plugin"
)

// Option is a key of an experiment file and its value, which plugin.SectionOf takes.
type Option struct {
	Key   string
	Value any
}

// mapping returns options as a mapping, without those whose value is an empty text.
func mapping(options ...Option) *plugin.Section {
	s := &plugin.Section{Kind: plugin.Mapping}
	for _, o := range options {
		if o.Value != "" {
			s.Put(o.Key, plugin.SectionOf(o.Value))
		}
	}
	return s
}

// YAML returns the experiment file, for a file in a folder: paths in it are relative to the folder. The first of models
// is the base model; without one an encoder is trained from scratch.
func (e *Experiment) YAML(folder string, models []string) ([]byte, error) {
	w := *e
	w.folder, w.models = folder, models
	root := mapping(Option{"project_name", e.Name}, Option{"seed", 1})
	root.Entries[0].Value.Comment = comment(fmt.Sprintf("Written by jenga init. A comment above a part is the reason "+
		"for it: what the beginning of the data, at most %d records, looks like. Change what is wrong; jenga check "+
		"reads all data, and jenga train trains. jenga parts section describes the keys.", maxRecords))
	w.addModel(root)
	tasks := &plugin.Section{Kind: plugin.List}
	for _, s := range e.Sets {
		w.addSet(tasks, s)
	}
	root.Put("tasks", tasks)
	root.Put("training", w.training())
	var text bytes.Buffer
	err := root.Write(&text)
	return text.Bytes(), err
}

// The steps that a training has at least, as far as most epochs of the smallest batches allow. On 320 texts with
// entities, from scratch, span F1 on test is 75.78 after 6 epochs of 9 steps, and 100.00 after 34.
const (
	fewSteps   = 300
	mostEpochs = 100

	batchSize     = 32
	smallestBatch = 4

	mostEvaluations = 20 // each of which writes a table
)

// training returns the section training: as many epochs, of small batches for few records, as make a number of steps.
func (e *Experiment) training() *plugin.Section {
	rate, epochs := 1e-4, 4
	if len(e.models) == 0 {
		rate, epochs = 3e-3, 6
	}
	batch, steps := batchSize, e.steps(batchSize)
	for batch > smallestBatch && steps*mostEpochs < fewSteps {
		batch /= 2
		steps = e.steps(batch)
	}
	reason := fmt.Sprintf("num_epochs: an epoch has about %s", plugin.Count(steps, "step"))
	if slices.ContainsFunc(e.Sets, func(s *Set) bool { return s.more }) {
		reason += " or more"
	}
	if wanted := min(mostEpochs, (fewSteps+steps-1)/max(1, steps)); wanted > epochs {
		epochs = wanted
		reason += fmt.Sprintf(", and a model learns little in fewer than %d", fewSteps)
	}
	reason += "; jenga train says whether the best epoch was the last, so that more may help"
	s := mapping(Option{"learning_rate", rate}, Option{"batch_size", batch}, Option{"num_epochs", epochs},
		Option{"warmup_ratio", 0.1})
	if batch < batchSize {
		s.At("batch_size").Comment = comment(fmt.Sprintf("batch_size: with %d an epoch has %s", batchSize,
			plugin.Count(e.steps(batchSize), "step")))
	}
	s.At("learning_rate").Comment = comment("learning_rate: a usual one; jenga lr-find measures which ones this data " +
		"trains with")
	s.At("num_epochs").Comment = comment(reason)
	if each := (epochs + mostEvaluations - 1) / mostEvaluations; each > 1 {
		s.Put("eval_strategy", plugin.SectionOf("steps"))
		s.Put("eval_steps", plugin.SectionOf(each*steps))
		s.At("eval_strategy").Comment = comment(fmt.Sprintf("eval_steps: dev is evaluated about every %d epochs, "+
			"which are short; eval_strategy: epoch evaluates it after each", each))
	}
	return s
}

// steps returns about how many steps an epoch has in batches of a size.
func (e *Experiment) steps(batch int) (steps int) {
	for _, s := range e.Sets {
		n := len(s.records) * max(1, s.shards[s.Train].n)
		if s.Dev == "" {
			n -= int(s.devFraction() * float64(n))
		}
		steps += (n + batch - 1) / batch
	}
	return steps
}

// devFraction returns which part of the only file dev takes: metrics on fewer than 100 examples tell little.
func (s *Set) devFraction() float64 {
	if len(s.records) < 1000 {
		return 0.2
	}
	return 0.1
}

// comment returns texts as lines of a comment, of at most 100 columns. Characters that are not printable, some of which
// YAML does not allow, become U+FFFD.
func comment(texts ...string) string {
	const columns = 100
	var lines []string
	for _, text := range texts {
		text = strings.Map(func(r rune) rune {
			if unicode.IsSpace(r) || unicode.IsPrint(r) {
				return r
			}
			return unicode.ReplacementChar
		}, text)
		line := "#"
		for word := range strings.FieldsSeq(text) {
			if len(line)+len(word) > columns && line != "#" {
				lines, line = append(lines, line), "#"
			}
			line += " " + word
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// EncoderRule says which of the models of a machine the base model is: the first of YAML's models.
const EncoderRule = "of the pretrained encoders below $JENGA_MODELS and in the Hugging Face cache, the one with the " +
	"fewest weights, which trains fastest, and in float32 before a copy in float16; a larger one often predicts " +
	"better"

func (e *Experiment) addModel(root *plugin.Section) {
	length := Option{"max_length", e.maxLength()}
	if len(e.models) > 0 {
		model := mapping(Option{"base_model", e.models[0]}, Option{"dropout", 0.1})
		reason := "base_model: " + EncoderRule
		if others := e.models[1:]; len(others) > 0 {
			reason += ". Others, by size: " + strings.Join(others, ", ")
		}
		model.Comment = comment(reason)
		root.Put("model", model)
		root.Put("tokenizer", mapping(length))
		return
	}
	model := mapping(Option{"dropout", 0.1}, Option{"encoder", mapping(Option{"type", "transformer"},
		Option{"layers", 2}, Option{"width", 64}, Option{"heads", 4}, Option{"feed_forward", 128},
		Option{"max_positions", e.maxLength()}, Option{"initializer_range", 0.1})})
	model.Comment = comment("encoder: trained from scratch, on these texts alone, since no pretrained encoder was " +
		"found below $JENGA_MODELS or in the Hugging Face cache. A pretrained one predicts better from few examples: " +
		"download one by jenga pull sentence-transformers/all-MiniLM-L6-v2, or another BERT or DistilBERT, and write " +
		"this file again by jenga init; or write base_model: sentence-transformers/all-MiniLM-L6-v2 in place of " +
		"encoder, leave out tokenizer: train, and set learning_rate: 1.0e-4.")
	root.Put("model", model)
	root.Put("tokenizer", mapping(length, Option{"train", mapping(Option{"vocab_size", 2000})}))
}

// maxLength returns how many tokens a text may have: about 1.5 for each word of nearly all texts, which have at most
// twice the mean.
func (e *Experiment) maxLength() int {
	length := 128
	for _, s := range e.Sets {
		words := 0
		for _, c := range s.texts {
			words += 2 * max(c.words+c.items, c.characters/8) / max(1, c.n) // characters of texts without blanks
		}
		for length < 512 && words*3/2 >= length && (length < 256 || !s.has("question")) { // which has windows
			length *= 2
		}
	}
	return length
}

func (e *Experiment) addSet(list *plugin.Section, s *Set) {
	read := "all of it"
	if s.more {
		read = "its beginning"
	}
	reasons := append([]string{fmt.Sprintf("%s: %s, %s", s.named(s.Train), records(len(s.records)), read)}, s.Notes...)
	for i, t := range s.Tasks {
		task := mapping(Option{"name", t.Name}, Option{"type", t.Type})
		if t.Separator != "" {
			task.Put("separator", plugin.SectionOf(t.Separator))
		}
		data := e.files(s)
		if i > 0 {
			data = mapping(Option{"same_as", s.Tasks[0].Name})
		}
		if t.column != nil && t.Field != t.column.name {
			data.Put(t.Field, plugin.SectionOf(t.column.name))
		}
		if t.column != nil && len(t.column.marks) > 0 {
			data.Put("missing", plugin.SectionOf(map[string][]string{t.column.name: t.column.marks}))
		}
		if t.Overlap {
			task.Put("overlap", plugin.SectionOf("longest"))
		}
		task.Put("data", data)
		if heads := e.heads(t); heads != nil {
			task.Put("heads", heads)
		}
		task.Comment = comment(append(reasons, t.Reason)...)
		list.Items, reasons = append(list.Items, task), nil
	}
}

// heads returns the head of a task, nil where the default does. From scratch a text's first token says nothing about it
// before training, so that heads read all tokens.
func (e *Experiment) heads(t Task) *plugin.Section {
	options := append([]Option{{"name", t.Name}}, t.Head...)
	pools := []string{"classification", "multi_label", "regression"}
	if len(e.models) == 0 && slices.Contains(pools, t.Type) {
		options = append(options, Option{"pool", "attention"})
	}
	if len(options) == 1 {
		return nil
	}
	return &plugin.Section{Kind: plugin.List, Items: []*plugin.Section{mapping(options...)}}
}

// files returns the files of a data set, their format, and the columns of its texts that have another name.
func (e *Experiment) files(s *Set) *plugin.Section {
	first := "train"
	if s.Divide {
		first = "path"
	}
	data := mapping(Option{first, e.path(s.named(s.Train))}, Option{"dev", e.path(s.named(s.Dev))},
		Option{"test", e.path(s.named(s.Test))})
	if s.Dev == "" {
		split := mapping(Option{"dev", s.devFraction()})
		split.Comment = comment("no file is named as dev")
		if s.split != nil {
			split.Put("column", plugin.SectionOf(s.split.name))
			split.Comment = comment("no record is of dev")
		}
		if s.devs {
			split.Remove("dev")
			split.Comment = ""
		}
		data.Put("split", split)
	}
	format := plugin.SectionOf(s.Format)
	if !s.Format.NoHeader {
		format.Remove("header")
	}
	data.Entries = append(data.Entries, format.Entries...)
	for _, f := range s.Fields {
		if f.Name != f.column.name {
			data.Put(f.Name, plugin.SectionOf(f.column.name))
		}
	}
	return data
}

// named returns what names the file of a path: the pattern of its shards, if it has others.
func (s *Set) named(path string) string { return cmp.Or(s.shards[path].pattern, path) }

// path returns a path relative to the experiment file's folder; one that was given as absolute stays so.
func (e *Experiment) path(path string) string {
	if path != "" && !filepath.IsAbs(path) {
		if relative, err := filepath.Rel(absolute(e.folder), absolute(path)); err == nil {
			path = relative
		}
	}
	return filepath.ToSlash(path)
}
