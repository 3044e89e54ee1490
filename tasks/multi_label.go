package tasks

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() { Register("multi_label", MultiLabelOptions{Separator: ","}, NewMultiLabel) }

// MultiLabelOptions are the keys that may stand beside `type: multi_label` and `type: qa_qc`.
type MultiLabelOptions struct {
	Separator string `yaml:"separator" takes:"any text" doc:"between the labels of a field: \"joy,love\""`
}

// multiLabel assigns any number of labels to a text. Its metrics are f1_micro, precision_micro and recall_micro, pooled
// over labels, and with the suffixes _macro and _weighted as means over labels; f1_samples, the mean of each text's F1;
// and exact_match, the fraction of texts whose labels are all right, which is also scikit-learn's accuracy. All are
// defined as in scikit-learn; means over labels are over those that occur, in targets or predictions.
type multiLabel struct {
	heads     []string
	separator string
	questions bool           // a list of numbers is one of 0 and 1, as of qa_qc, not of names
	lengths   map[string]int // head → length of its first list of 0 and 1
	unknown   map[string]int // name that no head has → number of its lists
	divided   map[string]*dividedTexts
}

// dividedTexts counts what one head's labels are where they are texts that the separator divides, not lists.
type dividedTexts struct {
	labels  map[string]int
	several int // texts of several labels
}

// NewMultiLabel makes a task whose heads each predict any number of labels. A record has them in the field labels, or
// label, or label.HEAD for a head of its own: a list of names, names with a separator between, or lists of 0 and 1 for
// each head, {"opening": [1], "closing": [0, 1]}, whose labels are numbered from 0.
func NewMultiLabel(o MultiLabelOptions, env Env) (Task, error) {
	if o.Separator == "" {
		return nil, fmt.Errorf("separator is empty; want the text between two labels")
	}
	m := multiLabel{env.Heads, o.Separator, false, map[string]int{}, map[string]int{}, map[string]*dividedTexts{}}
	for _, head := range env.Heads {
		m.divided[head] = &dividedTexts{labels: map[string]int{}}
	}
	return m, nil
}

func (m multiLabel) Output() *outputs.Kind { return outputs.Labels }

// labelsFields are the fields of labels beside that of their kind.
var labelsFields = []string{"label"}

func (m multiLabel) Describe() Description {
	return Description{SameFields: labelsFields, Warnings: m.warnings, Undefined: m.undefined, Tables: m.tables}
}

func (m multiLabel) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, m.heads, nil,
		func(_ corpus.Example, head string) (corpus.Target, error) { return m.target(r, head) })
}

func (m multiLabel) target(r corpus.Record, head string) (corpus.Target, error) {
	field := fieldOf(r, head, outputs.Labels, labelsFields)
	value := r.Fields[field]
	if text, ok, _ := r.String(field); ok {
		var err error
		if value, err = m.read(text); err != nil {
			return nil, fmt.Errorf("%s: field %q %w", r.Place, field, err)
		}
	}
	if object, ok := value.(map[string]any); ok {
		if head == m.heads[0] {
			m.count(object)
		}
		return m.flags(r, field, head, object[head])
	}
	if m.questions && holdsFlags(value) {
		if field != "label."+head && len(m.heads) > 1 {
			return nil, fmt.Errorf("%s: field %q is one list, and there are %d heads; want {%q: [1, 0], …}", r.Place,
				field, len(m.heads), m.heads[0])
		}
		return m.flags(r, field, head, value)
	}
	if list, ok := value.([]any); ok && areFlags(list) {
		return nil, fmt.Errorf("%s: field %q is a list of 0 and 1 for each label; want the names of the labels "+
			"that hold, "+
			"or {%q: [1, 0]}, whose labels are numbered from 0", r.Place, field, head)
	}
	names, err := m.names(corpus.Record{Place: r.Place, Fields: map[string]any{field: value}}, field)
	if err != nil {
		return nil, err
	}
	if _, isText := value.(string); isText {
		m.divided[head].add(names)
	}
	if names == nil {
		return nil, nil
	}
	return &outputs.LabelsTarget{Labels: names}, nil
}

// read returns the object or list that a text holds, as in a cell of a table; else the text itself.
func (m multiLabel) read(text string) (value any, err error) {
	if value, ok := corpus.ParseCell(text); ok {
		return value, nil
	}
	trimmed := strings.TrimSpace(text)
	list := strings.HasPrefix(trimmed, "[")
	switch {
	case !list && !strings.HasPrefix(trimmed, "{"):
		if m.questions && trimmed != "" && strings.Trim(trimmed, "01 "+m.separator) == "" {
			return nil, fmt.Errorf("is %q, which may be names of questions or answers to them; want answers as "+
				"[1, 0], names as [\"0\"]", trimmed)
		}
		return text, nil
	case list:
		return nil, fmt.Errorf(`begins with [, but is not a JSON list; want ["joy", "love"] or joy%slove`, m.separator)
	}
	return nil, errors.New(`begins with {, but is not a JSON object; want {"HEAD": [1, 0]}`)
}

// holdsFlags reports whether a value is a list of numbers, or of true and false, not of texts.
func holdsFlags(value any) bool {
	list, _ := value.([]any)
	return len(list) > 0 && !slices.ContainsFunc(list, func(item any) bool {
		_, text := item.(string)
		return text
	})
}

// areFlags reports whether a list has a value for each label: true or false, or 0 and 1 as no number of a label is
// written; or one of them twice.
func areFlags(list []any) (sure bool) {
	for i, item := range list {
		switch item {
		case true, false, json.Number("0.0"), json.Number("1.0"):
			sure = true
		case json.Number("0"), json.Number("1"):
			sure = sure || slices.Contains(list[:i], item)
		default:
			return false
		}
	}
	return sure
}

func (m multiLabel) count(object map[string]any) {
	for name := range object {
		if !slices.Contains(m.heads, name) {
			m.unknown[name]++
		}
	}
}

func (m multiLabel) warnings() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(m.unknown)) {
		all = append(all, fmt.Sprintf("%s of labels left out: %s", plugin.Count(m.unknown[name], "list"),
			plugin.Unknown("head", name, m.heads)))
	}
	for _, head := range m.heads {
		if found := m.undivided(m.divided[head]); found != "" {
			all = append(all, fmt.Sprintf("head %q: %s", head, found))
		}
	}
	return all
}

func (d *dividedTexts) add(names []string) {
	for _, name := range names {
		d.labels[name]++
	}
	if len(names) > 1 {
		d.several++
	}
}

// undivided returns a warning of labels that another mark than the separator joins: several in which each part is a
// label too, or a part of another one, and more than there are texts that the separator divides. It is "" for none.
func (m multiLabel) undivided(of *dividedTexts) string {
	const fewest = 3
	counts := of.labels
	for _, mark := range []string{"|", ";", ","} {
		parts := map[string]int{}
		for name := range counts {
			for part := range strings.SplitSeq(name, mark) {
				parts[strings.TrimSpace(part)]++
			}
		}
		unknown := func(part string) bool {
			part = strings.TrimSpace(part)
			return counts[part] == 0 && parts[part] < 2
		}
		first, joined, others := "", 0, 0
		for _, name := range slices.Sorted(maps.Keys(counts)) {
			switch all := strings.Split(name, mark); {
			case mark == m.separator || len(all) == 1:
			case slices.Contains(all, "") || slices.ContainsFunc(all, unknown):
				others += counts[name]
			default:
				first, joined = cmp.Or(first, name), joined+counts[name]
			}
		}
		if joined >= fewest && joined > max(others, of.several) {
			return fmt.Sprintf("%d targets have %q between names of labels, as %q, and are learned as one label; "+
				"separator: %q beside type divides the labels of a text", joined, mark, first, mark)
		}
	}
	return ""
}

// names reads a list of labels, nil where there is none. A null in it is no label; a list of nothing else is missing.
func (m multiLabel) names(r corpus.Record, field string) ([]string, error) {
	var names []string
	switch value := r.Fields[field].(type) {
	case nil:
		return nil, nil
	case []any, []string:
		if given, ok := value.([]any); ok {
			left := slices.DeleteFunc(slices.Clone(given), func(item any) bool { return item == nil })
			if len(left) == 0 && len(given) > 0 {
				return nil, nil
			}
			r.Fields = map[string]any{field: left}
		}
		list, _, err := r.Strings(field)
		if err != nil {
			return nil, err
		}
		names = append([]string{}, list...)
	default:
		text, ok, err := r.String(field)
		if err != nil || !ok {
			return nil, err
		}
		for name := range strings.SplitSeq(text, m.separator) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	for i, name := range names {
		switch {
		case name == "":
			return nil, fmt.Errorf("%s: field %q: label %d is empty; leave it out of the list", r.Place, field, i+1)
		case slices.Contains(names[:i], name):
			return nil, fmt.Errorf("%s: field %q: duplicate label %q; want each name once, or lists of 0 and 1 as "+
				"{HEAD: [1, 0]}", r.Place, field, name)
		}
	}
	return names, nil
}

// flags reads a head's list of 0 and 1, which may be missing.
func (m multiLabel) flags(r corpus.Record, field, head string, value any) (corpus.Target, error) {
	mistake := func(format string, args ...any) error {
		return fmt.Errorf("%s: field %q: %s %s", r.Place, field, head, fmt.Sprintf(format, args...))
	}
	list, ok := value.([]any)
	switch n, seen := m.lengths[head]; {
	case value == nil:
		return nil, nil
	case !ok || len(list) == 0:
		return nil, mistake("is not a list of 0 and 1; want {%q: [1, 0]}", head)
	case seen && n != len(list):
		return nil, mistake("is a list of %d, where earlier records have %d", len(list), n)
	}
	m.lengths[head] = len(list)
	target := &outputs.LabelsTarget{Labels: []string{}, Absent: []string{}}
	for i, flag := range list {
		holds := flag
		if number, isNumber := flag.(json.Number); isNumber {
			if v, ok := floats.Parse(string(number)); ok {
				holds = v // 1.0 is 1 in JSON
			}
		}
		switch name := strconv.Itoa(i); holds {
		case 1.0, true:
			target.Labels = append(target.Labels, name)
		case 0.0, false:
			target.Absent = append(target.Absent, name)
		default:
			if flag == nil {
				flag = "null"
			}
			return nil, mistake("has %v at position %d; want 0 or 1", flag, i+1)
		}
	}
	return target, nil
}

// tallyMany counts the labels of all texts, and those of each.
func tallyMany(gold []corpus.Target, predicted []corpus.Prediction) (ts tallies, texts []tally) {
	ts = tallies{}
	for g, p := range pairs[outputs.LabelsTarget, outputs.LabelsPrediction](gold, predicted) {
		text := tally{gold: len(g.Labels), predicted: len(p.Labels)}
		for _, label := range g.Labels {
			ts.label(label).gold++
		}
		for _, label := range p.Labels {
			ts.label(label).predicted++
			if slices.Contains(g.Labels, label) {
				ts.label(label).right++
				text.right++
			}
		}
		texts = append(texts, text)
	}
	return ts, texts
}

func (m multiLabel) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	ts, texts := tallyMany(gold, predicted)
	right, samples := 0, 0.0
	for _, t := range texts {
		samples += t.rates().f1
		if t.right == t.gold && t.right == t.predicted {
			right++
		}
	}
	exact := ratio(right, len(texts))
	all := slices.Concat(ts.sum().rates().metrics("", "_micro"), []Metric{{Name: "exact_match", Value: exact}},
		ts.macro().metrics("", "_macro"), ts.weighted().metrics("", "_weighted"), []Metric{
			{Name: "f1_samples", Value: samples / float64(max(1, len(texts)))},
			{Name: "accuracy", Value: exact}, // scikit-learn's name for it
		})
	all[0].F1 = true
	return all
}

// undefined: without a gold label, only the fraction of right texts has a meaning.
func (m multiLabel) undefined(gold []corpus.Target, metric string) bool {
	labelled := func(t corpus.Target) bool { return len(outputs.As[outputs.LabelsTarget](t).Labels) > 0 }
	return metric != "exact_match" && metric != "accuracy" && !slices.ContainsFunc(gold, labelled)
}

func (m multiLabel) tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	ts, _ := tallyMany(gold, predicted)
	return Tables{Labels: ts.table()}
}
