package dataset

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/printable"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// cleaning reads the labels of a task's heads as the experiment names them: without marks of missing values, cleaned,
// and by their names in label_maps. Labels that a task parses, as tags of spans, are read so in the record; others in
// the targets, where lists of labels are separated.
type cleaning struct {
	*config.Task
	format *corpus.Format // of the file
	typ    tasks.Task
	kind   *outputs.Kind
	inside []bool // by head: the labels of the record are read so already
}

// cleaning is called for each record: it copies and describes nothing.
func (r *reader) cleaning(number int, format *corpus.Format) *cleaning {
	task, typ := &r.e.Tasks[number], r.types[number]
	return &cleaning{Task: task, format: format, typ: typ, kind: typ.Output(), inside: make([]bool, len(task.Heads))}
}

// field returns the field of a record that has the target of a head, "" for none or one of another form.
func (c *cleaning) field(record corpus.Record, head string) string {
	for _, name := range slices.Concat([]string{c.kind.HeadField(head), c.kind.Field},
		tasks.DescriptionOf(c.typ).SameFields) {
		if _, has := record.Fields[name]; has {
			return name
		}
	}
	return ""
}

// record reads the labels in a record, by our names, that the task parses.
func (c *cleaning) record(record corpus.Record) (corpus.Record, error) {
	tags := c.kind.HasLabels && c.kind.PerWord
	switch {
	case tags && (!c.Data.Clean.IsZero() || len(c.LabelMaps) > 0 || len(c.format.Missing) > 0):
	case !c.kind.HasLabels && c.kind.Field != "" && !c.kind.FromContext && !c.Data.Clean.IsZero():
	default:
		return record, nil
	}
	fields := maps.Clone(record.Fields)
	for h, head := range c.Heads {
		field := c.field(record, head.Name)
		if field == "" {
			continue
		}
		own := field
		if len(c.Heads) > 1 { // which may have other names for the same tags
			own = c.kind.HeadField(head.Name)
		}
		if !tags {
			if text, given, err := record.String(field); given && err == nil {
				fields[own] = c.Data.Clean.Label(text, false)
			}
			continue
		}
		names, given, err := record.Strings(field)
		if !given || err != nil {
			continue // Example returns the error
		}
		c.inside[h] = true
		for i, name := range names {
			if names[i], err = c.label(head, field, name); err != nil {
				return record, fmt.Errorf("%s: %w", record.Place, err)
			}
		}
		fields[own] = names
	}
	record.Fields = fields
	return record, nil
}

// targets reads the labels of targets that record has not read so. One whose labels are all missing is none.
func (c *cleaning) targets(at corpus.Place, targets []corpus.Target) error {
	for h := range targets {
		head, before, after := c.Heads[h], 0, 0
		names := c.LabelMaps[head.Name]
		if names == nil && c.kind.NamedByID(targets[h]) {
			c.nameNumbers(head, targets[h])
		}
		if c.inside[h] || names == nil && c.Data.Clean.IsZero() && len(c.format.Missing) == 0 {
			continue
		}
		var wrong error
		c.kind.Names(targets[h], func(name *string) {
			before++
			label, err := c.label(head, c.kind.Field, *name)
			if err != nil && wrong == nil {
				wrong = fmt.Errorf("%s: %w", at, err)
			}
			if *name = label; label != "" {
				after++
			}
		})
		if wrong != nil {
			return wrong
		}
		if before > 0 && after == 0 && !c.kind.PerWord {
			targets[h] = nil
		}
	}
	return nil
}

// nameNumbers names the labels of a list of 0 and 1 by those of the experiment.
func (c *cleaning) nameNumbers(head config.Head, target corpus.Target) {
	labels := head.Labels
	if labels == nil {
		labels = c.Labels
	}
	c.kind.Names(target, func(name *string) {
		if n, err := strconv.Atoi(*name); err == nil && n < len(labels) {
			*name = labels[n]
		}
	})
}

// number matches labels that are numbers; a table with empty cells may have 1.0 for 1.
var number = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)

// label returns the name of a label that is read in a field of ours; "" is a missing one.
func (c *cleaning) label(head config.Head, field, name string) (string, error) {
	if name == "" || c.format.IsMissing(field, name) {
		return "", nil
	}
	names := c.LabelMaps[head.Name]
	if bare := strings.TrimSpace(name); names != nil && number.MatchString(bare) {
		whole, _, fraction := strings.Cut(bare, ".")
		n, err := strconv.Atoi(whole)
		own, has := names[n]
		if err == nil && has && (!fraction || strings.Trim(bare[len(whole)+1:], "0") == "") {
			return own, nil
		}
		return "", labelError{fmt.Errorf("label %s has no name in label_maps: {%s: …}, which has %s; name it there, "+
			"or data: {missing: [%[1]s]} reads it as no label", bare, head.Name, numbersOf(names))}
	}
	return c.Data.Clean.Label(name, tasks.DescriptionOf(c.typ).Spans != nil), nil
}

// labelError is the error of a label, which is the same for all records that have it.
type labelError struct{ error }

func numbersOf(names map[int]string) string {
	var all []string
	for _, n := range slices.Sorted(maps.Keys(names)) {
		all = append(all, strconv.Itoa(n))
	}
	return list(all)
}

// wrongValue is a kind of values that a task does not read: their fields and how often each occurs.
type wrongValue struct {
	first  *corpus.ValueError
	counts map[string]int
	n      int
}

func (w *wrongValue) add(value string) {
	const most = 1000 // different ones
	if w.n++; w.counts[value] > 0 || len(w.counts) < most {
		w.counts[value]++
	}
}

// mostMarks is how many different values an error proposes as missing.
const mostMarks = 20

// mistake describes values of a column in one line, where right others are as wanted.
func (w *wrongValue) mistake(column string, right int) string {
	names := slices.SortedFunc(maps.Keys(w.counts), func(a, b string) int {
		if w.counts[a] != w.counts[b] {
			return w.counts[b] - w.counts[a]
		}
		return strings.Compare(a, b)
	})
	shown := make([]string, len(names))
	for i, name := range names {
		if shown[i] = name; strings.Trim(name, " ") != name || strings.ContainsAny(name, `",`) ||
			!printable.Is(name) || len(name) > 40 {
			shown[i] = strconv.Quote(name[:min(len(name), 40)])
		}
	}
	text := fmt.Sprintf("field %q has %s, %s: %s", column, plugin.Count(right, w.first.Want),
		plugin.Count(w.n, "other"), list(shown))
	if len(names) > mostMarks || w.n > right {
		return text + "; want a " + w.first.Want + " in each"
	}
	return fmt.Sprintf("%s; data: {missing: {%s: %s}} leaves their examples unlabelled", text, flow(column),
		flowList(names))
}

// flow writes a text as YAML in {} and [] takes it.
func flow(text string) string {
	if plain.MatchString(text) && !strings.EqualFold(text, "null") {
		return text
	}
	return corpus.QuoteUnlike(text)
}

// plain matches texts that YAML reads as they are written, numbers among them.
var plain = regexp.MustCompile(`^(-?[1-9][0-9]*|0|[A-Za-z_][A-Za-z0-9_.]*[A-Za-z0-9_]|[A-Za-z_])$`)

func flowList(texts []string) string {
	var all []string
	for _, text := range texts {
		all = append(all, flow(text))
	}
	return "[" + strings.Join(all, ", ") + "]"
}
