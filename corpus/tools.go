package corpus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// This file reads the forms of annotation tools that are more than fields of other names.

// converters change the fields of a record as it is in a file of a format.
var converters = map[string]func(fields map[string]any) map[string]any{"label_studio": labelStudio}

// labelStudio returns a task of Label Studio as a record: its data, what its annotation has by the names of the tags in
// the labelling interface, and the spans of all of these as entities. Of several annotations it is the one that is
// marked as the ground truth, else the first that was not cancelled. A record of the export JSON_MIN has the names
// already.
func labelStudio(task map[string]any) map[string]any {
	data, isTask := task["data"].(map[string]any)
	out := map[string]any{}
	if !isTask {
		for name, value := range task {
			out[name] = simplified(value)
		}
		if _, annotated := task["annotation_id"]; annotated {
			out["entities"] = spansIn(out)
		}
		return out
	}
	for name, value := range data {
		out[name] = value
	}
	annotation := annotationOf(task)
	if annotation == nil {
		return out
	}
	results, _ := annotation["result"].([]any)
	regions := map[string]any{}
	for _, item := range results {
		result, _ := item.(map[string]any)
		name, _ := scalar(result["from_name"])
		value, isObject := result["value"].(map[string]any)
		if name == "" || !isObject {
			continue // a relation
		}
		if value["start"] != nil && value["labels"] != nil {
			list, _ := regions[name].([]any)
			regions[name] = append(list, value)
			continue
		}
		kind, _ := scalar(result["type"])
		out[name] = simplified(map[string]any{kind: value[kind]})
	}
	for name, list := range regions {
		out[name] = list
	}
	out["entities"] = spansIn(regions)
	return out
}

func annotationOf(task map[string]any) (chosen map[string]any) {
	list, isList := task["annotations"].([]any)
	if !isList {
		list, _ = task["completions"].([]any) // before version 1.0
	}
	for _, item := range list {
		annotation, _ := item.(map[string]any)
		truth, _ := annotation["ground_truth"].(bool)
		if cancelled, _ := annotation["was_cancelled"].(bool); cancelled || annotation == nil {
			continue
		}
		if truth {
			return annotation
		}
		if chosen == nil {
			chosen = annotation
		}
	}
	return chosen
}

// simplified returns the value of one result of Label Studio: of {"choices": ["a"]} the text, of several the list, of
// {"rating": 4} the number.
func simplified(value any) any {
	if list, isList := value.([]any); isList && len(list) == 1 {
		if one, isObject := list[0].(map[string]any); isObject && one["start"] == nil {
			value = one
		}
	}
	fields, isObject := value.(map[string]any)
	if !isObject {
		return value
	}
	for _, name := range []string{"choices", "text", "rating", "number"} {
		switch inner := fields[name].(type) {
		case nil:
		case []any:
			if len(inner) == 1 {
				return inner[0]
			}
			return inner
		default:
			return inner
		}
	}
	return value
}

// spansIn returns the spans in lists of Label Studio's regions.
func spansIn(fields map[string]any) []any {
	spans := []any{}
	for _, name := range fieldNames(fields) {
		list, _ := fields[name].([]any)
		for _, item := range list {
			if region, _ := item.(map[string]any); region["start"] != nil && region["labels"] != nil {
				spans = append(spans, item)
			}
		}
	}
	return spans
}

// fastTextLabel matches a label in a line of fastText, and the blank before it.
var fastTextLabel = regexp.MustCompile(`(?:^|[ \t])__label__([^ \t]+)`)

// fastText reads lines of a text and its labels, words with a prefix, which mostly are at its begin.
func (d *reader) fastText() {
	for line, ok := d.next(); ok; line, ok = d.next() {
		if strings.TrimSpace(line) == "" {
			continue
		}
		labels := []any{}
		for _, match := range fastTextLabel.FindAllStringSubmatch(line, -1) {
			labels = append(labels, match[1])
		}
		fields := map[string]any{"text": strings.TrimSpace(fastTextLabel.ReplaceAllLiteralString(line, ""))}
		switch len(labels) {
		case 0:
		case 1:
			fields["label"], fields["labels"] = labels[0], labels
		default:
			fields["label"], fields["labels"] = labels, labels
		}
		d.addRecord(Record{Place: d.place, Fields: fields})
	}
}

// bratForm is the format of texts with brat's standoff annotation, https://brat.nlplab.org/standoff.html: NAME.txt and
// NAME.ann.
const bratForm = "brat"

// IsBratFolder reports whether path is a folder with brat's annotations.
func IsBratFolder(path string) bool {
	annotations, _ := filepath.Glob(filepath.Join(escapePattern(path), "*.ann"))
	return slices.ContainsFunc(annotations, func(name string) bool {
		_, err := os.Stat(strings.TrimSuffix(name, ".ann") + ".txt")
		return err == nil
	})
}

// IsDataFolder reports whether a folder is read as a data file is.
func IsDataFolder(path string) bool { return IsSlotFolder(path) || IsBratFolder(path) }

func escapePattern(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// openBrat reads the texts in a folder, in the order of their names, or one text, each with the spans in the annotation
// beside it: a record without entities where there is none.
func openBrat(ctx context.Context, path string, folder bool, f Format) ([]Record, error) {
	f.Type = bratForm
	if err := f.Check(path); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	texts := []string{path}
	if folder {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fileError(path, err)
		}
		texts = nil
		for _, e := range entries {
			if filepath.Ext(e.Name()) == ".txt" && !strings.HasPrefix(e.Name(), ".") {
				texts = append(texts, filepath.Join(path, e.Name()))
			}
		}
	}
	all := readerOf(strings.NewReader(""), 0, path, f, &mistakes{})
	for _, text := range texts {
		if err := all.brat(ctx, text); err != nil {
			return nil, err
		}
	}
	return all.finish(path)
}

func (d *reader) brat(ctx context.Context, path string) error {
	beside := strings.TrimSuffix(path, ".txt") + ".ann"
	if filepath.Ext(path) != ".txt" {
		return fmt.Errorf("%s: format brat reads NAME.txt, with the annotation NAME.ann beside it", path)
	}
	text, err := openRegular(path, besideOthers)
	if err != nil {
		return err
	}
	defer text.Close()
	in := newReader(ctx, text, path, d.format, d.mistakes)
	raw, err := io.ReadAll(io.LimitReader(in.in, maxRecord+1))
	at := Place{File: path, Line: 1}
	switch {
	case err != nil:
		return fileError(path, err)
	case len(raw) > maxRecord:
		d.add(at, "the text has more than %d MiB; want smaller ones", maxRecord>>20)
		return nil
	}
	fields := map[string]any{"text": strings.TrimRight(in.decode(raw, at), " \t\r\n")}
	if _, err := os.Stat(beside); err == nil {
		annotation, err := openRegular(beside, besideOthers)
		if err != nil {
			return err
		}
		defer annotation.Close()
		fields["entities"] = newReader(ctx, annotation, beside, d.format, d.mistakes).bratSpans()
	}
	d.addRecord(Record{Place: at, Fields: fields})
	return nil
}

// bratSpans reads the text-bound annotations: T1, a tab, the label and its offsets, a tab, and the text there. Those of
// other kinds, as relations, events and notes, are not read.
func (d *reader) bratSpans() []any {
	spans := []any{}
	for line, ok := d.next(); ok; line, ok = d.next() {
		if !strings.HasPrefix(line, "T") {
			continue
		}
		parts := strings.SplitN(line, "\t", 3)
		words := strings.Fields(parts[min(1, len(parts)-1)])
		switch {
		case len(parts) == 3 && strings.Contains(parts[1], ";"):
			d.add(d.place, "%s %q is in several pieces, %q; an entity is one span: write its first and last "+
				"offset, or remove it", start(parts[0]), start(parts[2]), start(parts[1]))
		case len(parts) != 3 || len(words) != 3:
			d.add(d.place, "%q; want T1, a tab, LABEL START END, a tab, and the text", start(line))
		default:
			spans = append(spans, map[string]any{"label": words[0], "start": json.Number(words[1]),
				"end": json.Number(words[2]), "text": parts[2]})
		}
	}
	return spans
}
