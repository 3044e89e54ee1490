package tasks

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("ner", NEROptions{Scheme: "auto", BrokenTags: "keep", Overlap: "error"}, newNER)
}

// NEROptions are the keys that may stand beside `type: ner`.
type NEROptions struct {
	Scheme string `yaml:"scheme" choice:"auto|bio|bioes|io|bilou|bmes|iob1|ioe1|ioe2" doc:"how tags mark spans"`

	BrokenTags string `yaml:"broken_tags" choice:"keep|repair|error" doc:"tags that break their scheme, as I-x after O"`

	Overlap string `yaml:"overlap" choice:"error|longest|first" doc:"of entities with a word in common, that are kept"`
}

// ner finds spans of words, as tags. Its metrics are span_f1, span_precision and span_recall, with a span right if both
// ends and the label are: pooled over labels, and with the suffixes _macro and _weighted as means over labels, as in
// seqeval's default mode (conlleval's reading of tags, Tjong Kim Sang & De Meulder 2003), and with _strict as in its
// strict mode, which counts only spans that the scheme allows; and accuracy, the fraction of words with the right tag.
//
// The scheme is how tags mark spans: with auto bioes if training has tags E- or S-, else bio. Tags of bilou and bmes
// become those of bioes, tags of iob1, ioe1 and ioe2 those of bio, which mark the same spans. Entities at offsets in
// characters (code points) become tags of the scheme. Tags that break it are kept, rewritten to mark the same spans in
// the scheme (repair), or refused (error). A word has one tag: of entities with a word in common the longest is kept,
// of equally long ones the first, or in their order those that overlap none before (first).
type ner struct {
	NEROptions
	env   Env
	found *findings
}

// findings are collected while a task's data is read.
type findings struct {
	scheme  scheme  // of the first file that has spans; "": of none yet
	broken  counted // tags that break their scheme and are kept
	dropped counted // entities that overlap one that is kept
	widened counted // entities that begin or end within a word
	ofWords bool    // some of these are of texts whose words are given
	copies  counted // texts whose copy with brackets has other words
}

// counted counts cases and describes the first.
type counted struct {
	n     int
	first string // the first case and its place
}

func (c *counted) add(format string, args ...any) {
	if c.n++; c.n == 1 {
		c.first = fmt.Sprintf(format, args...)
	}
}

// newNER makes a task whose heads find spans of words: names, slots, amounts. A record marks them with a tag for each
// word in the field tags (tags.HEAD for a head of its own), or with entities at offsets, which become tags.
func newNER(o NEROptions, env Env) (Task, error) {
	return ner{o, env, &findings{}}, nil
}

// entityFields are the fields of entities, which become tags.
var entityFields = []string{"entities"}

func (n ner) Describe() Description {
	return Description{
		DifferentFields: entityFields, Survey: n.survey, SurveySample: n.surveySample, Warnings: n.warnings,
		Undefined: n.undefined, Tables: n.tables, Spans: spansOf,
	}
}

// survey determines scheme auto from all tags of the first file: a single text, or a later file, may have no tags that
// distinguish the schemes.
func (n ner) survey(records []corpus.Record) {
	if n.found.scheme != "" {
		return
	}
	var texts [][]string
	for _, r := range records {
		texts = append(texts, n.tagsOf(r)...)
	}
	if len(texts) > 0 {
		n.found.scheme = n.scheme(texts...)
	}
}

// surveySample returns the first record of each scheme that its own tags are of.
func (n ner) surveySample(records []corpus.Record) []int {
	var sample []int
	seen := map[scheme]bool{}
	for i, r := range records {
		if texts := n.tagsOf(r); len(texts) > 0 {
			if own := schemeOf(texts...); !seen[own] {
				seen[own] = true
				sample = append(sample, i)
			}
		}
	}
	return sample
}

// tagsOf returns the tags of a record for the heads that it has some for.
func (n ner) tagsOf(r corpus.Record) (texts [][]string) {
	for _, head := range n.env.Heads {
		field := fieldOf(r, head, outputs.Tags, entityFields)
		if r.Fields[field] == nil {
			continue
		}
		if field == "entities" {
			texts = append(texts, []string{"B"}) // they become tags that begin spans
		} else if tags, ok, err := r.Strings(field); ok && err == nil { // Example returns the error
			texts = append(texts, inBIOES(tags))
		}
	}
	return texts
}

// scheme is that of the options, else that of the surveyed file, else that of some texts.
func (n ner) scheme(texts ...[]string) scheme {
	switch {
	case n.Scheme == "bilou" || n.Scheme == "bmes":
		return "bioes"
	case n.rewrites():
		return "bio"
	case n.Scheme != "auto":
		return scheme(n.Scheme)
	case n.found.scheme != "":
		return n.found.scheme
	}
	s := schemeOf(texts...)
	if s == "io" && n.BrokenTags != "keep" {
		return "bio" // tags I alone are bio without B
	}
	return s
}

func (n ner) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, n.env.Heads, n.env.Split, func(e corpus.Example, head string) (corpus.Target, error) {
		return n.target(r, fieldOf(r, head, outputs.Tags, entityFields), e)
	})
}

func (n ner) target(r corpus.Record, field string, e corpus.Example) (corpus.Target, error) {
	if field != "entities" {
		tags, err := tagsIn(r, field, len(e.Words))
		tags = inBIOES(tags)
		if err == nil {
			err = checkTags(r.Place, tags)
		}
		switch {
		case err != nil || tags == nil:
		case n.BrokenTags == "repair" || n.rewrites():
			tags = n.scheme(tags).repair(tags)
		case n.BrokenTags == "error":
			err = n.scheme(tags).check(r.Place, tags)
		default:
			n.countBroken(r.Place, tags)
		}
		return tagged(tags), err
	}
	read := corpus.Record.Entities
	if n.Overlap != "error" {
		read = corpus.Record.AllEntities
	}
	entities, ok, err := read(r, e.Text)
	if err != nil || !ok {
		return nil, err
	}
	if r.CopyDiffers(e.Text) {
		n.found.copies.add("%s", r.Place)
	}
	if n.Overlap != "error" {
		entities = n.withoutOverlap(entities, e)
	}
	tags, err := n.entityTags(entities, e)
	if err != nil {
		return nil, err
	}
	return tagged(n.scheme(tags).repair(tags)), nil
}

// rewrites reports whether tags are of a scheme that is read as spansOf does, and written in another.
func (n ner) rewrites() bool { return slices.Contains([]string{"iob1", "ioe1", "ioe2"}, n.Scheme) }

// countBroken counts tags whose spans span_f1_strict does not count; with scheme io it counts all.
func (n ner) countBroken(at corpus.Place, tags []string) {
	s := n.scheme(tags)
	if s == "io" {
		return
	}
	for i, tag := range s.repair(tags) {
		if tag != tags[i] {
			n.found.broken.add("%s, tag %d is %q, should be %q", at, i+1, tags[i], tag)
		}
	}
}

func (n ner) warnings() []string {
	var all []string
	if b := n.found.broken; b.n > 0 {
		all = append(all, fmt.Sprintf("tags that break scheme %s, whose spans span_f1_strict does not count: %d; "+
			"broken_tags: repair fixes them; first: %s", n.scheme(nil), b.n, b.first))
	}
	if d := n.found.dropped; d.n > 0 {
		all = append(all, fmt.Sprintf("entities that overlap others and are left out (overlap: %s): %d; first: %s",
			n.Overlap, d.n, d.first))
	}
	if w := n.found.widened; w.n > 0 {
		words := ""
		if n.found.ofWords {
			words = "; if offsets count words, data: {offsets: words} reads them, or word_bounds, if the end is " +
				"the word after the last"
		}
		all = append(all, fmt.Sprintf("entities that begin or end within a word, and are extended to all of it: %d; "+
			"first: %s%s", w.n, w.first, words))
	}
	if c := n.found.copies; c.n > 0 {
		all = append(all, fmt.Sprintf("texts from which their copy with entities in brackets differs: %d, of which "+
			"the entities are read where their words are; data: {entities: FIELD} and {text: FIELD} name the two; "+
			"first: %s", c.n, c.first))
	}
	return all
}

// entityTags tags the words that entities overlap with BIO. Entities are in order and do not overlap each other, but
// two may be parts of one word.
func (n ner) entityTags(entities []corpus.Entity, e corpus.Example) ([]string, error) {
	tags := make([]string, len(e.Words))
	for i := range tags {
		tags[i] = outside
	}
	next := 0 // first word after all entities so far
	for i, entity := range entities {
		for next < len(e.Words) && e.Words[next].End <= entity.Span.Start {
			next++
		}
		first := next
		for ; next < len(e.Words) && e.Words[next].Start < entity.Span.End; next++ {
			tags[next] = "I-" + entity.Label
		}
		if first > 0 && e.Words[first-1].End > entity.Span.Start {
			before := entities[i-1]
			return nil, fmt.Errorf("%s: entities %s %q and %s %q share a word; a word has one tag",
				e.Place, before.Label, textOf(e, before), entity.Label, textOf(e, entity))
		}
		if next == first {
			return nil, corpus.WrongOffsets("%s: entity %s %q contains no word", e.Place, entity.Label,
				textOf(e, entity))
		}
		tags[first] = "B-" + entity.Label
		if e.Words[first].Start < entity.Span.Start || e.Words[next-1].End > entity.Span.End {
			n.found.ofWords = n.found.ofWords || e.WordsGiven
			n.found.widened.add("%s, %s %q", e.Place, entity.Label, textOf(e, entity))
		}
	}
	return tags, nil
}

func textOf(e corpus.Example, entity corpus.Entity) string {
	return e.Text[entity.Span.Start:entity.Span.End]
}

func (n ner) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	want, got := tagsOf(gold, predicted)
	return append(judgeSpans(want, got), n.scheme(want...).judgeStrictly(want, got)...)
}

func (n ner) Output() *outputs.Kind { return outputs.Tags }

// undefined: without a gold span, only the accuracy of tags has a meaning.
func (n ner) undefined(gold []corpus.Target, metric string) bool {
	if metric == "accuracy" {
		return !slices.ContainsFunc(gold, hasTag)
	}
	return !slices.ContainsFunc(gold, func(t corpus.Target) bool {
		return len(spansOf(outputs.As[outputs.TagsTarget](t).Tags)) > 0
	})
}

func (n ner) tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := tagsOf(gold, predicted)
	ts, _, _ := tallySpans(want, got)
	return Tables{Labels: ts.table()}
}
