package dataset

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
)

// unknownLabels says which labels of a split, whose targets are numbered, training has not.
func (d *Dataset) unknownLabels(group *Group, split string) (remarks []string) {
	for h, of := range d.Heads(group) {
		for name, n := range unknown(group.Examples[split], h) {
			remarks = append(remarks, fmt.Sprintf("task %q: %s has label %q %d times, which train has not: it is judged as wrong", of.Task.Name, split, name, n))
		}
	}
	return remarks
}

// truncated says how many texts of a split lose their end.
func (d *Dataset) truncated(group *Group, split string) (remarks []string) {
	cut, examples, n := d.Cut(group), group.Examples[split], 0
	for _, e := range examples {
		if cut.Loses(d.Tokenizer, e) {
			n++
		}
	}
	if n > 0 {
		task := d.Experiment.Tasks[group.Tasks[0]]
		remarks = append(remarks, fmt.Sprintf("task %q: %s", task.Name, Truncated(n, fmt.Sprintf("%d texts of %s", len(examples), split), cut)))
	}
	return remarks
}

// Truncated says that n of some texts lose their end, and what keeps it.
func Truncated(n int, texts string, cut corpus.Cut) string {
	if cut.Windows {
		return fmt.Sprintf("%d of %s are of a pair, and lose the end of the text that windows of %d tokens do not move over: a larger tokenizer.max_length keeps it", n, texts, cut.MaxLength)
	}
	return fmt.Sprintf("%d of %s have more than %d tokens and lose their end: a larger tokenizer.max_length, or long: windows, keeps it", n, texts, cut.MaxLength)
}

// lostAnswers says how many answers of training no window of their text holds.
func (d *Dataset) lostAnswers(group *Group) (remarks []string) {
	cut, more := d.Cut(group), "a larger max_length"
	if !cut.Windows {
		more += ", or long: windows,"
	}
	for h, of := range d.Heads(group) {
		lost := 0
		for _, e := range group.Examples[config.Train] {
			if t := e.Targets[h]; len(t.Quotes) > 0 && !slices.ContainsFunc(t.QuoteTokens, func(s corpus.Span) bool { return s != (corpus.Span{}) }) {
				lost++
			}
		}
		if lost > 0 {
			remarks = append(remarks, fmt.Sprintf("task %q: %d of train's answers are not within %d tokens of their text, and are learned as none: %s holds more", of.Task.Name, lost, cut.MaxLength, more))
		}
	}
	return remarks
}

// OneKind says where a split has normal texts alone, or anomalies alone. Where it has no normal text, so is what then says.
func (d *Dataset) OneKind(group *Group, split, then string) (remarks []string) {
	for h, of := range d.Heads(group) {
		kinds := map[bool]int{} // whether it is an anomaly → how many
		for _, e := range group.Examples[split] {
			if v := e.Targets[h].Value; v != nil {
				kinds[*v != 0]++
			}
		}
		switch {
		case d.Tasks[of.Number].Answer() != corpus.Anomaly || len(kinds) != 1:
		case kinds[true] > 0:
			remarks = append(remarks, fmt.Sprintf("task %q: %s has no normal text: auroc and specificity of head %q are 0%s", of.Task.Name, split, of.Head.Name, then))
		default:
			remarks = append(remarks, fmt.Sprintf("task %q: %s has no anomaly: auroc, average_precision and recall of head %q are 0", of.Task.Name, split, of.Head.Name))
		}
	}
	return remarks
}
