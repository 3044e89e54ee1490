package experiments

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// remark passes on what a part has to say.
func (r *Run) remark(at plugin.Place, part any) {
	if remarker, ok := part.(plugin.Remarker); ok && !r.answers {
		for _, remark := range remarker.Remarks() {
			r.Remarks = append(r.Remarks, fmt.Sprintf("%s: %s", at, remark))
		}
	}
}

// remarkUnknown says which labels of a split, whose targets are numbered, training has not.
func (r *Run) remarkUnknown(texts Texts, split string) {
	for h, of := range r.Experiment.heads(texts) {
		for name, n := range unknown(texts.Examples[split], h) {
			r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: %s has label %q %d times, which train has not: it is judged as wrong", of.task.Name, split, name, n))
		}
	}
}

// remarkCut says how many texts of a split lose their end.
func (r *Run) remarkCut(texts Texts, split string) {
	cut, examples, n := r.cut(texts), texts.Examples[split], 0
	for _, e := range examples {
		if cut.Loses(r.Tokenizer, e) {
			n++
		}
	}
	if n > 0 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: %s", r.Experiment.Tasks[texts.Tasks[0]].Name, lose(n, fmt.Sprintf("%d texts of %s", len(examples), split), cut)))
	}
}

// lose says that n of some texts lose their end, and what keeps it.
func lose(n int, texts string, cut corpus.Cut) string {
	if cut.Windows {
		return fmt.Sprintf("%d of %s are of a pair, and lose the end of the text that windows of %d tokens do not move over: a larger tokenizer.max_length keeps it", n, texts, cut.MaxLength)
	}
	return fmt.Sprintf("%d of %s have more than %d tokens and lose their end: a larger tokenizer.max_length, or long: windows, keeps it", n, texts, cut.MaxLength)
}

// remarkLost says how many answers of training no window of their text holds.
func (r *Run) remarkLost(texts Texts) {
	cut, more := r.cut(texts), "a larger max_length"
	if !cut.Windows {
		more += ", or long: windows,"
	}
	for h, of := range r.Experiment.heads(texts) {
		lost := 0
		for _, e := range texts.Examples[Train] {
			if t := e.Targets[h]; len(t.Quotes) > 0 && !slices.ContainsFunc(t.QuoteTokens, func(s corpus.Span) bool { return s != (corpus.Span{}) }) {
				lost++
			}
		}
		if lost > 0 {
			r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: %d of train's answers are not within %d tokens of their text, and are learned as none: %s holds more", of.task.Name, lost, cut.MaxLength, more))
		}
	}
}

// remarkOneKind says where a split has normal texts alone, or anomalies alone.
func (r *Run) remarkOneKind(g *multitask.Group, examples []*corpus.Example, split string) {
	h := 0
	for _, task := range g.Tasks {
		for _, head := range task.Heads {
			kinds := map[bool]int{} // whether it is an anomaly → how many
			for _, e := range examples {
				if v := e.Targets[h].Value; v != nil {
					kinds[*v != 0]++
				}
			}
			h++
			switch {
			case task.Kind.Answer() != corpus.Anomaly || len(kinds) != 1:
			case kinds[true] > 0:
				remark := fmt.Sprintf("task %q: %s has no normal text: auroc and specificity of head %q are 0", task.Name, split, head.Name)
				if split == Dev && !r.answers {
					remark += "; it has no threshold of alarms"
				}
				r.Remarks = append(r.Remarks, remark)
			default:
				r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: %s has no anomaly: auroc, average_precision and recall of head %q are 0", task.Name, split, head.Name))
			}
		}
	}
}

// remarkUntuned says which heads decide by what evaluations on dev choose, where there are none.
func (r *Run) remarkUntuned() {
	for _, g := range r.Model.Groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				switch task.Kind.Answer() {
				case corpus.ManyLabels:
					r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: no evaluation tunes head %q (eval_strategy: no): its labels hold from its threshold on", task.Name, head.Name))
				case corpus.Anomaly:
					r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: no evaluation sets the threshold of head %q (eval_strategy: no): it scores texts, and raises no alarm", task.Name, head.Name))
				}
			}
		}
	}
}

// remarkIdle tells of options of model and training that change nothing for the encoder, or nothing for the better.
func (r *Run) remarkIdle(m *multitask.Model) {
	e := r.Experiment
	say := func(at plugin.Place, format string, args ...any) {
		r.Remarks = append(r.Remarks, (&plugin.Mistake{Place: at, Err: fmt.Errorf(format, args...)}).Error())
	}
	_, economical := m.Encoder.(encoders.Economical)
	switch {
	case e.Training.Precision == bf16 && m.Frozen():
		say(e.Training.PrecisionPlace, "training: precision: bf16 has no effect: a frozen encoder computes in float32")
	case e.Training.Precision == bf16 && !economical:
		say(e.Training.PrecisionPlace, "training: precision: bf16 has no effect: encoder %q computes in float32", e.Model.Encoder.Type)
	}
	switch {
	case e.Training.Recompute && m.Frozen():
		say(plugin.Place{}, "training: recompute has no effect: a frozen encoder keeps nothing of a batch")
	case e.Training.Recompute && !economical:
		say(plugin.Place{}, "training: recompute has no effect: encoder %q keeps all of a batch", e.Model.Encoder.Type)
	}
	if e.Training.WarmupSteps > 0 && e.Training.WarmupRatio > 0 {
		say(plugin.Place{}, "training: warmup_ratio has no effect: warmup_steps: %d overrules it", e.Training.WarmupSteps)
	}
	if e.Model.Freeze == "embeddings" && e.Model.LoRA.Rank > 0 {
		say(e.Model.Encoder.Place, "model: freeze: embeddings has no effect: with lora nothing else of the encoder learns")
	}
	if r.encoderPath == "" {
		if e.Model.Freeze != "none" && (e.Model.Freeze != "embeddings" || r.vectors == nil) {
			say(e.Model.Encoder.Place, "model: freeze: %s leaves random weights as they are: the encoder starts from nothing, not from a base_model", e.Model.Freeze)
		}
		if e.Model.LoRA.Rank > 0 {
			say(e.Model.Encoder.Place, "model: lora leaves random weights as they are: the encoder starts from nothing, not from a base_model")
		}
	}
}
