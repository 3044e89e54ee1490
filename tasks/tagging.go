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
	e, err := embedWords(r, t.env)
	if err != nil {
		return corpus.Example{}, err
	}
	return withTargets(e, t.env.Heads, func(head string) (corpus.Target, error) {
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

// embedWords makes an example of r whose words can be tagged.
func embedWords(r corpus.Record, env Env) (corpus.Example, error) {
	e, err := r.Example()
	if err != nil {
		return corpus.Example{}, err
	}
	if e.Words == nil {
		e.Words = env.Split(e.Text)
	}
	return e, nil
}

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

// undefined lists all metrics where no word has a tag: all are of words with a gold tag.
func (t tagging) undefined(gold []corpus.Target) []string {
	for _, g := range outputs.Targets[outputs.TagsTarget](gold) {
		if hasTag(g.Tags) {
			return nil
		}
	}
	return namesOf(t.Evaluate(nil, nil))
}

func hasTag(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return tag != "" })
}

func (t tagging) tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	want, got := wordTags(gold, predicted)
	return Tables{tallyLabels(want, got).table(), confusion(want, got)}
}
