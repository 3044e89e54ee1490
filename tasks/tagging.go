package tasks

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() {
	Register("tagging", struct{}{}, func(_ struct{}, env Env) (Task, error) { return NewTagging(env), nil })
}

// tagging assigns a tag to each word. Its metrics are those of a classification, over all words.
type tagging struct{ env Env }

// NewTagging makes a task whose heads predict a tag for each word, such as its part of speech. A record has its words
// in the field words, or its text is split, and their tags in tags, or in tags.HEAD for a head of its own.
func NewTagging(env Env) Task { return tagging{env} }

func (t tagging) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, t.env.Heads, t.env.Split, func(e corpus.Example, head string) (corpus.Target, error) {
		tags, err := tagsIn(r, fieldOf(r, head, outputs.Tags, nil), len(e.Words))
		return tagged(tags), err
	})
}

func (t tagging) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	return judgeLabels(wordTags(gold, predicted))
}

// wordTags returns the tags of all words that have a gold one.
func wordTags(gold []corpus.Target, predicted []corpus.Prediction) (want, got []string) {
	wantTags, gotTags := tagsOf(gold, predicted)
	for i, tags := range wantTags {
		for j, tag := range tags {
			if tag != "" {
				want, got = append(want, tag), append(got, gotTags[i][j])
			}
		}
	}
	return want, got
}

func (t tagging) Output() *outputs.Kind { return outputs.Tags }

func (t tagging) Describe() Description { return Description{Undefined: t.undefined, Tables: t.tables} }

func tagged(tags []string) corpus.Target {
	if tags == nil {
		return nil
	}
	return &outputs.TagsTarget{Tags: tags}
}

// tagsIn reads a field with a tag for each of n words; nil if it is missing.
func tagsIn(r corpus.Record, field string, n int) ([]string, error) {
	tags, ok, err := r.Strings(field)
	if err != nil || !ok {
		return nil, err
	}
	if len(tags) == n {
		return tags, nil
	}
	remedy := "want a tag for each"
	if !has(r, "words") {
		remedy = `give the words as "words" in place of "text"`
	}
	return nil, fmt.Errorf("%s: field %q has %s for %s; %s", r.Place, field, plugin.Count(len(tags), "tag"),
		plugin.Count(n, "word"), remedy)
}

// undefined: all metrics are of words with a gold tag.
func (t tagging) undefined(gold []corpus.Target, _ string) bool {
	return !slices.ContainsFunc(gold, hasTag)
}

func hasTag(t corpus.Target) bool {
	return slices.ContainsFunc(outputs.As[outputs.TagsTarget](t).Tags, func(tag string) bool { return tag != "" })
}

func (t tagging) tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	return tabulate(wordTags(gold, predicted))
}
