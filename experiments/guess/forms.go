package guess

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// This file recognises the forms of annotation tools and of data sets in which labels are not plain columns.

// readJSON reads a file of JSON, of which the records may be inside of an object or tasks of Label Studio.
func (s *Set) readJSON(ctx context.Context) error {
	err := s.read(ctx, s.Format)
	if err != nil {
		text, unread := beginning(s.Train)
		if unread != nil {
			return err
		}
		inside := s.Format
		var beside []string
		var columns bool
		if inside.Records, beside, columns = corpus.Inside(ctx, corpus.Decode(ctx, text, s.Format.Encoding)); columns {
			inside.Type = "columns"
		}
		if inside.Records == s.Format.Records && !columns || s.read(ctx, inside) != nil {
			s.Format = corpus.Format{}
			return err
		}
		if columns {
			s.note("format: columns: the file is an object of lists, with a value for each record, or of numbered " +
				"records")
		} else {
			s.note("records: %s: the list of objects in the file", inside.Records)
		}
		if !columns {
			s.noteBeside(beside)
		}
	}
	return s.studio(ctx)
}

// noteBeside notes the keys of lists that are not read. Those that are called as splits may be meant; others are as
// often the names of labels, or rules.
func (s *Set) noteBeside(keys []string) {
	var splits, others []string
	for _, key := range keys {
		if _, like := corpus.LikeSplit("", key); like {
			splits = append(splits, key)
		} else {
			others = append(others, key)
		}
	}
	lists := func(keys []string) string {
		n := len(keys)
		return fmt.Sprintf("not read %s %s, %s beside it", plugin.Agree(n, "is", "are"), strings.Join(keys, ", "),
			plugin.Agree(n, "a list", "lists"))
	}
	if len(splits) > 0 {
		s.noteDoubt("%s: where records of dev or test are in %s, write each list to a file of its own, which dev or "+
			"test names", lists(splits), plugin.Agree(len(splits), "it", "them"))
	}
	if len(others) > 0 {
		s.note("%s", lists(others))
	}
}

// studio reads records that are tasks of Label Studio as such.
func (s *Set) studio(ctx context.Context) error {
	if !isStudio(s.records[0].Fields) {
		return nil
	}
	if onlyPredicted(s.records) {
		s.noteDoubt("the tasks of Label Studio have predictions and no annotations, of which alone labels are read; " +
			"submit these predictions there")
	}
	studio := s.Format
	studio.Type = "label_studio"
	s.note("format: label_studio: the records have its keys")
	return s.read(ctx, studio)
}

// isStudio reports whether a record is a task of Label Studio, or one of its export JSON_MIN.
func isStudio(fields map[string]any) bool {
	_, data := fields["data"].(map[string]any)
	results := slices.ContainsFunc([]string{"annotations", "completions", "predictions"}, func(key string) bool {
		_, isList := fields[key].([]any)
		return isList
	})
	return data && results || fields["annotation_id"] != nil && fields["lead_time"] != nil
}

// onlyPredicted reports whether there are predictions of a model in tasks of Label Studio, and no annotations.
func onlyPredicted(records []corpus.Record) bool {
	has := func(key string) bool {
		return slices.ContainsFunc(records, func(r corpus.Record) bool {
			list, _ := r.Fields[key].([]any)
			return len(list) > 0
		})
	}
	return has("predictions") && !has("annotations") && !has("completions")
}

// isFastText reports whether the lines of a text have labels of fastText.
func isFastText(text []byte) bool {
	lines := bytes.SplitN(text, []byte("\n"), 20)
	labelled := 0
	for _, line := range lines {
		words := bytes.Fields(line)
		isLabel := func(i int) bool { return bytes.HasPrefix(words[i], []byte("__label__")) }
		if len(words) > 0 && (isLabel(0) || isLabel(len(words)-1)) {
			labelled++
		}
	}
	return labelled*2 > len(lines)
}

// sample is how many records tell whether the texts of a column mark spans of those of another.
const sample = 300

// marked finds columns whose texts mark spans of the texts of another column: with brackets, or as lists in Python.
func (s *Set) marked() {
	records := s.records[:min(len(s.records), sample)]
	for _, c := range s.columns {
		var bracketed []corpus.Record // alone can rule out a text
		for _, r := range records {
			if strings.Contains(cell(r, c.name), "[") {
				bracketed = append(bracketed, r)
			}
		}
		c.spans = c.isSingle() && len(bracketed) > 0 && slices.ContainsFunc(s.columns, func(text *column) bool {
			return text != c && text.isText() && marks(bracketed, c.name, text.name) &&
				marks(records, c.name, text.name)
		})
	}
}

func marks(records []corpus.Record, column, text string) bool {
	found := 0
	for _, r := range records {
		of, _, _ := r.String(text)
		r.Fields = map[string]any{"entities": r.Fields[column]}
		entities, _, err := r.Entities(of)
		if err != nil {
			return false
		}
		found += len(entities)
	}
	return found > 0
}

// entities returns the task of a column of spans, in the unit in which they all fit.
func (s *Set) entities(c *column) (Task, string) {
	text := "text"
	if s.has("words") {
		text = "words"
	}
	record := func(i int) (corpus.Record, error) {
		r := s.records[i]
		r.Fields = map[string]any{"entities": r.Fields[c.name], text: r.Fields[s.texts[0].name]}
		return r, nil
	}
	unit, other := corpus.FitOffsets(len(s.records), record, map[string]string{text: s.texts[0].name,
		"entities": c.name})
	labels, spans, misplaced, overlapping := map[string]bool{}, 0, 0, 0
	for i := range s.records {
		r, _ := record(i)
		r = r.WithOffsets(unit)
		e, _ := r.Example()
		entities, _, err := r.Entities(e.Text) // jenga check has the errors
		if _, ofOffsets := errors.AsType[*corpus.OffsetsError](err); ofOffsets {
			misplaced++
		} else if err != nil {
			if entities, _, err = r.AllEntities(e.Text); err == nil {
				overlapping++
			}
		}
		spans += len(entities)
		for _, e := range entities {
			labels[e.Label] = true
		}
	}
	if len(labels) == 0 && misplaced*2 > c.n {
		return Task{Type: "ner", Field: "entities"}, fmt.Sprintf("spans in %s, of which those of %d are not where "+
			"their offsets say, as jenga check reports", records(c.n), misplaced)
	}
	if len(labels) == 0 {
		return Task{}, `lists other than of labels or of {"start", "end", "label"}`
	}
	reason := fmt.Sprintf("%s of %s in %s", plugin.Count(max(spans, c.items), "span"),
		plugin.Count(len(labels), "kind"), records(c.n))
	if c.spans {
		reason = fmt.Sprintf("spans of %s marked in a copy of the text", plugin.Count(len(labels), "kind"))
	}
	if unit != "" && unit != "characters" {
		s.Format.Offsets = unit
		reason += fmt.Sprintf(", whose offsets fit in %s alone", unit)
	}
	if other != "" {
		reason = fmt.Sprintf("%s if an end is %s; offsets: %s is for ends that are %s, which these can be too",
			strings.TrimSuffix(reason, " alone"), corpus.EndOfWords(unit), other, corpus.EndOfWords(other))
	}
	if overlapping > 0 {
		reason += fmt.Sprintf("; those of %s overlap: the longest are kept", records(overlapping))
	}
	return Task{Type: "ner", Field: "entities", Overlap: overlapping > 0}, reason
}

// oneOfSeveral leaves out columns that a form writes twice: the spans of each tag of Label Studio, which entities has
// together, and of fastText label or labels.
func (s *Set) oneOfSeveral() {
	for _, c := range s.columns {
		switch several := s.column("labels"); {
		case s.Format.Type == "label_studio" && c.name != "entities" && c.lists > 0 && c.nested > 0 && c.objects == 0:
			c.used = true
		case s.Format.Type != "fasttext" || several == nil:
		case several.items > several.n:
			c.used = c.used || c.name == "label"
		default:
			c.used = c.used || c.name == "labels"
		}
	}
}

func (s *Set) column(name string) *column {
	if i := slices.IndexFunc(s.columns, func(c *column) bool { return c.name == name }); i >= 0 {
		return s.columns[i]
	}
	return nil
}

// features makes a task of each feature in the column misc of CoNLL-U whose values are tags of spans.
func (s *Set) features() {
	if s.column("misc") == nil {
		return
	}
	found := map[string]*column{}
	for _, r := range s.records {
		misc, _ := r.Fields["misc"].([]string)
		for _, features := range misc {
			for feature := range strings.SplitSeq(features, "|") {
				name, value, ok := strings.Cut(feature, "=")
				if !ok || !corpus.IsSpanTag(value) && found[name] == nil || len(found) > sample {
					continue
				}
				if found[name] == nil {
					found[name] = &column{name: "misc." + name, values: map[string]int{}}
				}
				found[name].items++
				found[name].values[value]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(found)) {
		task, reason := tagsTask(found[name])
		if task.Type != "ner" {
			continue
		}
		task.Name, task.column, task.Reason = name, found[name], fmt.Sprintf("misc.%s: %s", name, reason)
		s.Tasks = append(s.Tasks, task)
	}
}
