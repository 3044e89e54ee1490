package experiments

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Run is an experiment made ready: its model, and the texts that were read.
type Run struct {
	Experiment *Experiment
	Model      *multitask.Model
	Tokenizer  corpus.Tokenizer
	Texts      []Texts // of each of the model's groups
	Remarks    []string

	answers     bool              // opened to answer: nothing learns
	vectors     *corpus.Vectors   // of words, that the encoder's embeddings begin with; nil: none
	judged      bool              // whether evaluations on dev have anything to judge
	encoderPath string            // what the encoder was read from; "" from scratch
	encoderSums map[string]string // of its files, where they are not copied
	machine     fs.FS             // the machine's files, which tell what memory it has
}

// Prepare reads the data of an experiment's splits, of which training is one, and builds its model. The error lists
// all that is wrong.
func Prepare(e *Experiment, splits ...string) (*Run, error) {
	r := &Run{Experiment: e, Remarks: slices.Clone(e.Remarks), encoderPath: e.Model.BaseModel.Name, Texts: e.group(), machine: os.DirFS("/")}
	var mistakes plugin.Mistakes

	// texts and targets
	if err := r.openTokenizer(); err != nil {
		mistakes.Append(err)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	kinds := e.kinds(r.Tokenizer, &mistakes)
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	in := reader{e: e, kinds: kinds, mistakes: &mistakes}
	for g := range r.Texts {
		in.read(&r.Texts[g], splits...)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	r.Remarks = append(r.Remarks, in.remarks...)
	for i, task := range e.Tasks {
		r.remark(task.Place, kinds[i])
	}

	// labels
	labels := map[headPlace]*corpus.Labels{}
	for _, texts := range r.Texts {
		r.label(texts, kinds, labels, &mistakes)
	}
	slices.Sort(r.Remarks[len(e.Remarks):])

	// tokens
	if err := r.trainTokenizer(); err != nil {
		mistakes.Append(err)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	for _, texts := range r.Texts {
		for _, split := range []string{Train, Dev, Test} {
			r.encode(texts.Examples[split], r.cut(texts))
			r.remarkCut(texts, split)
		}
		r.remarkLost(texts)
	}

	if err := r.build(kinds, labels, &mistakes); err != nil {
		return nil, err
	}
	if slices.Contains(splits, Dev) && e.Training.EvalStrategy != "no" {
		r.checkDev(&mistakes)
	}
	if !mistakes.None() {
		return nil, mistakes.Err()
	}
	return r, nil
}

// openTokenizer opens the tokenizer of the model that the encoder starts from. One that is still to be trained on the
// texts knows one word until then: how it splits texts does not depend on its vocabulary.
func (r *Run) openTokenizer() (err error) {
	if r.encoderPath == "" {
		o := r.Experiment.Tokenizer.Train
		r.Tokenizer, err = corpus.TrainWordPiece(slices.Values([]string{"a"}), o.VocabSize, o.Lowercase)
		return err
	}
	if r.Tokenizer, err = corpus.OpenTokenizer(tokenizerFolder(r.encoderPath)); err != nil {
		return &plugin.Mistake{Place: r.Experiment.Model.BaseModel.Place, Err: fmt.Errorf("model: base_model: %w", err)}
	}
	return nil
}

// tokenizerFolder is where the tokenizer of a model lies: in its folder, or beside its .onnx file.
func tokenizerFolder(model string) string {
	if strings.EqualFold(filepath.Ext(model), ".onnx") {
		return filepath.Dir(model)
	}
	return model
}

// trainTokenizer makes a vocabulary from the training texts for an encoder that starts from nothing.
func (r *Run) trainTokenizer() (err error) {
	if r.encoderPath != "" {
		return nil
	}
	texts := func(yield func(string) bool) {
		for _, g := range r.Texts {
			for _, e := range g.Examples[Train] {
				if !yield(e.Text) || e.Paired && !yield(e.Pair) {
					return
				}
			}
		}
	}
	o := r.Experiment.Tokenizer
	if o.Type == wholeWords {
		return r.trainWords(texts)
	}
	r.Tokenizer, err = corpus.TrainWordPiece(texts, o.Train.VocabSize, o.Train.Lowercase)
	return err
}

// trainWords makes a vocabulary of whole words: those of texts, and of vectors what else there is room for.
func (r *Run) trainWords(texts iter.Seq[string]) error {
	o := r.Experiment.Tokenizer
	trainer, err := corpus.NewWordTrainer(texts, o.Train.VocabSize, o.Train.Lowercase)
	if err != nil {
		return err
	}
	if o.Vectors.Name != "" {
		if r.vectors, err = corpus.OpenVectors(o.Vectors.Name, trainer.Add); err != nil {
			return &plugin.Mistake{Place: o.Vectors.Place, Err: fmt.Errorf("tokenizer: vectors: %w", err)}
		}
	}
	r.Tokenizer, err = trainer.Tokenizer()
	return err
}

// setVectors begins the embeddings of an encoder with the vectors of words.
func (r *Run) setVectors(encoder encoders.Encoder) error {
	place := r.Experiment.Tokenizer.Vectors.Place
	embedded, ok := encoder.(encoders.Embedded)
	if !ok {
		return &plugin.Mistake{Place: place, Err: errors.New("tokenizer: vectors: the encoder has no word embeddings to begin with them")}
	}
	w := embedded.Embeddings()
	if w.Shape[1] != r.vectors.Width {
		return &plugin.Mistake{Place: place, Err: fmt.Errorf("tokenizer: vectors: they have %d numbers, the encoder's embeddings %d; both must be alike", r.vectors.Width, w.Shape[1])}
	}
	for id := range r.Tokenizer.Size() {
		copy(w.Data[id*w.Shape[1]:(id+1)*w.Shape[1]], r.vectors.Of(r.Tokenizer.Token(int32(id))))
	}
	r.Remarks = append(r.Remarks, fmt.Sprintf("%s: %d of the vocabulary's %d tokens have vectors", place, len(r.vectors.Words), r.Tokenizer.Size()))
	return nil
}

// cut is how the texts of a group are encoded.
func (r *Run) cut(texts Texts) corpus.Cut { return r.Experiment.Tasks[texts.Tasks[0]].Cut }

func (r *Run) encode(examples []*corpus.Example, cut corpus.Cut) {
	for _, e := range examples {
		e.Windows = cut.Encode(r.Tokenizer, e)
		e.Locate()
	}
}

// kinds makes the tasks that know how examples are written and judged.
func (e *Experiment) kinds(tokenizer corpus.Tokenizer, mistakes *plugin.Mistakes) []tasks.Task {
	var kinds []tasks.Task
	for _, task := range e.Tasks {
		kind, err := task.Part.Build(tasks.Site{Name: task.Name, Heads: headNames(task.Heads), Split: tokenizer.Split})
		if err != nil {
			mistakes.Append(err)
		}
		kinds = append(kinds, kind)
	}
	return kinds
}

// headPlace is the name of a head and of its task.
type headPlace struct{ task, head string }

// label settles the labels of all heads of a group from its training examples, and numbers the targets.
func (r *Run) label(texts Texts, kinds []tasks.Task, labels map[headPlace]*corpus.Labels, mistakes *plugin.Mistakes) {
	for h, of := range r.Experiment.heads(texts) {
		r.checkLabelled(texts.Examples[Train], h, of.task, of.head, mistakes)
		var names []string
		if answer := kinds[of.number].Answer(); answer.HasLabels() {
			names = r.checkLabels(of.task, of.head, labelNames(texts.Examples[Train], h), mistakes)
		} else {
			r.checkNoLabels(of.task, of.head, answer, mistakes)
		}
		set := corpus.NewLabels(names)
		labels[headPlace{of.task.Name, of.head.Name}] = set
		for _, split := range []string{Train, Dev, Test} {
			for _, e := range texts.Examples[split] {
				set.Number(&e.Targets[h])
			}
		}
	}
	for _, split := range []string{Dev, Test} {
		r.remarkUnknown(texts, split)
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
	cut, examples := r.cut(texts), texts.Examples[split]
	if cut.Windows || cut.MaxLength == 0 {
		return
	}
	n := 0
	whole := corpus.Cut{Apart: cut.Apart}
	for _, e := range examples {
		full := func(w corpus.Encoding) bool { return len(w.IDs) == cut.MaxLength }
		if slices.ContainsFunc(e.Windows, full) && slices.ContainsFunc(whole.Encode(r.Tokenizer, e), func(w corpus.Encoding) bool { return len(w.IDs) > cut.MaxLength }) {
			n++
		}
	}
	if n > 0 {
		r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: %d of %d texts of %s have more than %d tokens and lose their end: a larger tokenizer.max_length, or long: windows, keeps it",
			r.Experiment.Tasks[texts.Tasks[0]].Name, n, len(examples), split, cut.MaxLength))
	}
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

// checkDev holds what the best model is chosen by against what dev is labelled for.
func (r *Run) checkDev(mistakes *plugin.Mistakes) {
	var groups []multitask.GroupScore // as evaluations will have them
	var unjudged []string
	for g, texts := range r.Texts {
		group := devScore(&r.Model.Groups[g], texts.Examples[Dev])
		groups = append(groups, group)
		for _, task := range group.Tasks {
			for _, head := range task.Heads {
				if head.Metrics == nil {
					unjudged = append(unjudged, fmt.Sprintf("task %q: dev has no label for head %q, which is not judged", task.Task, head.Head))
				}
			}
		}
	}

	t, file := r.Experiment.Training, plugin.Place{File: r.Experiment.Path}
	figures := Figures(groups)
	_, chosen := figures[t.MetricForBestModel]
	switch r.judged = len(figures) > 0; {
	case !r.judged && t.EarlyStoppingPatience > 0:
		mistakes.Add(file, "training: early_stopping_patience: no dev example is labelled, so no model is better than another")
	case !r.judged:
		r.Remarks = append(r.Remarks, "no dev example is labelled: nothing is judged, and best/ is the last model")
	case !chosen:
		mistakes.Add(file, "training: metric_for_best_model: %s", plugin.Unknown("metric with labels in dev", t.MetricForBestModel, slices.Sorted(maps.Keys(figures))))
	default:
		r.Remarks = append(r.Remarks, unjudged...)
	}
	for g, texts := range r.Texts {
		r.remarkOneKind(&r.Model.Groups[g], texts.Examples[Dev])
	}
}

// remarkOneKind says where dev has normal texts alone, or anomalies alone.
func (r *Run) remarkOneKind(g *multitask.Group, dev []*corpus.Example) {
	h := 0
	for _, task := range g.Tasks {
		for _, head := range task.Heads {
			kinds := map[bool]int{} // whether it is an anomaly → how many
			for _, e := range dev {
				if v := e.Targets[h].Value; v != nil {
					kinds[*v != 0]++
				}
			}
			h++
			switch {
			case task.Kind.Answer() != corpus.Anomaly || len(kinds) != 1:
			case kinds[true] > 0:
				r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: dev has no normal text: head %q has no threshold of alarms, and its auroc is 0", task.Name, head.Name))
			default:
				r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: dev has no anomaly: auroc and average_precision of head %q are 0", task.Name, head.Name))
			}
		}
	}
}

// devScore is an evaluation of a group on dev with all figures that it will have, each 0.
func devScore(g *multitask.Group, dev []*corpus.Example) multitask.GroupScore {
	var score multitask.GroupScore
	h := 0
	for _, task := range g.Tasks {
		ts := multitask.TaskScore{Task: task.Name, Exact: task.Kind.Answer().Exact()}
		for _, head := range task.Heads {
			s := multitask.HeadScore{Head: head.Name}
			var gold []corpus.Target
			for _, e := range dev {
				if e.Targets[h].Labelled() {
					gold = append(gold, e.Targets[h])
				}
			}
			if len(gold) > 0 {
				s.Metrics = task.Kind.Judge(nil, nil)
				s.Loss.Units = unitsOf(head.Head, gold)
			}
			ts.Heads = append(ts.Heads, s)
			h++
		}
		score.Tasks = append(score.Tasks, ts)
	}
	exact := g.Exact()
	if len(exact) > 1 && slices.ContainsFunc(dev, func(e *corpus.Example) bool {
		return !slices.ContainsFunc(exact, func(h int) bool { return !e.Targets[h].Labelled() })
	}) {
		score.AllRight = new(float64)
	}
	return score
}

// unitsOf counts what a head has a loss for in gold answers: of a head that asks about what a batch hides, the texts.
func unitsOf(head heads.Head, gold []corpus.Target) float64 {
	if _, prepares := head.(heads.Preparer); prepares {
		return float64(len(gold))
	}
	return head.Units(gold)
}

// checkLabelled wants an answer for a group's head number h in its training examples.
func (r *Run) checkLabelled(train []*corpus.Example, h int, task Task, head Head, mistakes *plugin.Mistakes) {
	if !slices.ContainsFunc(train, func(e *corpus.Example) bool { return e.Targets[h].Labelled() }) {
		mistakes.Add(head.Place, "task %q: head %q has no label in its training data, %s", task.Name, head.Name, task.Data.training().Name)
	}
}

// checkNoLabels refuses labels of a head whose answers have none.
func (r *Run) checkNoLabels(task Task, head Head, answer corpus.Answer, mistakes *plugin.Mistakes) {
	what := fmt.Sprintf("task %q: head %q answers %s, which has no labels", task.Name, head.Name, answer)
	switch {
	case head.Labels != nil || task.Labels != nil || len(task.LabelMaps[head.Name]) > 0:
		mistakes.Add(head.Place, "%s; leave labels and label_maps out", what)
	case head.NumLabels > 1 && r.Experiment.JengaNLP:
		r.Remarks = append(r.Remarks, fmt.Sprintf("%s: %s: num_labels %d has no effect", head.Place, what, head.NumLabels))
	case head.NumLabels > 1:
		mistakes.Add(head.Place, "%s; leave num_labels out", what)
	}
}

// checkLabels holds the labels that training has against those that the experiment names, and returns the head's.
func (r *Run) checkLabels(task Task, head Head, found []string, mistakes *plugin.Mistakes) []string {
	named, mapped := head.Labels, task.LabelMaps[head.Name]
	if named == nil && len(mapped) == 0 {
		named = task.Labels
	}
	switch {
	case len(found) == 0: // said before
	case named != nil:
		for _, name := range found {
			if !slices.Contains(named, name) {
				mistakes.Add(head.Place, "task %q: head %q: the training data has label %q, which labels does not name; it names %s", task.Name, head.Name, name, list(named))
			}
		}
		found = named
	case len(mapped) > 0:
		// in the order of their numbers, those of the data that have none behind
		var names []string
		for _, n := range slices.Sorted(maps.Keys(mapped)) {
			names = append(names, mapped[n])
			if !slices.Contains(found, mapped[n]) {
				r.Remarks = append(r.Remarks, fmt.Sprintf("task %q: head %q: label_maps: no training text has label %d, %q", task.Name, head.Name, n, mapped[n]))
			}
		}
		found = append(names, slices.DeleteFunc(found, func(name string) bool { return slices.Contains(names, name) })...)
	}
	if n := head.NumLabels; n != 0 && n != len(found) {
		what := fmt.Sprintf("task %q: head %q: num_labels is %d, the data has %d labels: %s", task.Name, head.Name, n, len(found), list(found))
		if r.Experiment.JengaNLP {
			r.Remarks = append(r.Remarks, fmt.Sprintf("%s: %s", head.Place, what))
		} else {
			mistakes.Add(head.Place, "%s; without num_labels it has as many as there are", what)
		}
	}
	return found
}

// list writes some names for an error, a long list cut short.
func list(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s, … %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// build makes the model of all parts.
func (r *Run) build(kinds []tasks.Task, labels map[headPlace]*corpus.Labels, mistakes *plugin.Mistakes) error {
	e := r.Experiment
	m := &multitask.Model{Params: nn.NewParams(e.Seed)}
	freeze, lora := e.Model.Freeze, e.Model.LoRA
	if r.answers { // changes are part of the weights that were saved
		freeze, lora = "all", encoders.LoRA{}
	}
	encoder, err := e.Model.Encoder.Build(encoders.Site{
		Model:      r.encoderPath,
		Vocabulary: r.Tokenizer.Size(),
		MaxLength:  e.Tokenizer.MaxLength,
		Dropout:    e.Model.Dropout,
		DropoutSet: e.Model.DropoutSet || r.encoderPath == "",
		Freeze:     freeze,
		LoRA:       lora,
		Params:     m.Params.In("encoder"),
	})
	if err != nil {
		return r.placed(err)
	}
	if r.vectors != nil {
		if err := r.setVectors(encoder); err != nil {
			return err
		}
	}
	m.Encoder = encoder
	if err := checkSaves(m, r.encoderPath); err != nil {
		mistakes.Add(e.Model.Encoder.Place, "encoder %q %w", e.Model.Encoder.Type, err)
	}
	r.remark(e.Model.Encoder.Place, encoder)
	if !r.answers {
		r.remarkIdle(m)
	}

	var names []string
	for _, task := range e.Tasks {
		names = append(names, task.Name)
	}
	site := fusion.Site{Tasks: names, Width: encoder.Width(), Params: m.Params.In("fusion")}
	if deep, ok := encoder.(encoders.Deep); ok {
		site.Layers = deep.Layers()
	}
	m.Fusion, err = e.Model.Fusion.Build(site)
	if err != nil {
		mistakes.Append(err)
	}
	r.remark(e.Model.Fusion.Place, m.Fusion)
	for _, texts := range r.Texts {
		group := multitask.Group{Name: e.Tasks[texts.Tasks[0]].Name}
		for _, number := range texts.Tasks {
			group.Tasks = append(group.Tasks, r.buildTask(m, e.Tasks[number], kinds[number], labels, r.lenses(m, texts), mistakes))
		}
		m.Groups = append(m.Groups, group)
	}
	r.Model = m
	return mistakes.Err()
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
	if e.Training.Recompute && !m.Frozen() && !economical {
		say(plugin.Place{}, "training: recompute has no effect: encoder %q keeps all of a batch", e.Model.Encoder.Type)
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

// placed gives an error of the encoder the place that asks for what it has not: a file need not name the encoder.
func (r *Run) placed(err error) error {
	e := r.Experiment
	var mistake *plugin.Mistake
	var bounded encoders.Bounded
	switch {
	case !errors.As(err, &mistake):
		return err
	case errors.As(err, &bounded):
		return &plugin.Mistake{Place: e.Tokenizer.LengthPlace, Err: fmt.Errorf("tokenizer: max_length: %w; want at most %d", mistake.Err, bounded.MaxTokens())}
	case mistake.Place == (plugin.Place{}) && !r.answers:
		return &plugin.Mistake{Place: e.Model.BaseModel.Place, Err: mistake.Err}
	}
	return err
}

// checkSaves makes sure that a checkpoint can hold the encoder of m, which was read from path, or name it.
func checkSaves(m *multitask.Model, path string) error {
	_, saves := m.Encoder.(encoders.Saver)
	switch {
	case saves:
		return nil
	case path == "":
		return errors.New("starts from nothing, but cannot be saved; give it a base_model, and freeze: all")
	case !m.Frozen():
		return errors.New("learns, but cannot be saved; freeze: all leaves it as it is")
	}
	return nil
}

// remark passes on what a part has to say.
func (r *Run) remark(at plugin.Place, part any) {
	if remarker, ok := part.(plugin.Remarker); ok && !r.answers {
		for _, remark := range remarker.Remarks() {
			r.Remarks = append(r.Remarks, fmt.Sprintf("%s: %s", at, remark))
		}
	}
}

// checkAccepted holds the gold answers that were read against what a head can learn.
func (r *Run) checkAccepted(task Task, head Head, h heads.Head, mistakes *plugin.Mistakes) {
	accepter, ok := h.(heads.Accepter)
	if !ok {
		return
	}
	examples, number := r.targets(task.Name, head.Name)
	for _, e := range examples {
		if err := accepter.Accepts(e.Targets[number]); err != nil {
			mistakes.Append(fmt.Errorf("%s: task %q: head %q: %w", e.Place, task.Name, head.Name, err))
		}
	}
}

// trainingOf is what a head is told of its training data; nothing where the run answers.
func (r *Run) trainingOf(task Task, head Head, labels *corpus.Labels) heads.Training {
	t := heads.Training{Counts: make([]int, len(labels.Names())), Deviation: 1}
	examples, h := r.targets(task.Name, head.Name)
	var sum, squares float64
	for _, e := range examples {
		target := e.Targets[h]
		for _, id := range append([]int{target.LabelID}, append(target.TagIDs, target.LabelIDs...)...) {
			if id >= 0 {
				t.Counts[id]++
			}
		}
		switch {
		case target.TagIDs != nil:
			for _, id := range target.TagIDs {
				if id >= 0 {
					t.Units++
				}
			}
		case target.Labelled():
			t.Units++
		}
		if target.Value != nil {
			sum += *target.Value
		}
	}
	if t.Units == 0 {
		return t
	}
	t.Mean = sum / float64(t.Units)
	least, most := math.Inf(1), math.Inf(-1)
	for _, e := range examples {
		if v := e.Targets[h].Value; v != nil {
			squares += (*v - t.Mean) * (*v - t.Mean)
			least, most = min(least, *v), max(most, *v)
		}
	}
	if least < most { // else rounding may leave squares
		t.Deviation = math.Sqrt(squares / float64(t.Units))
	}
	return t
}

// targets returns the training examples of a task, and which of their targets are a head's.
func (r *Run) targets(task, head string) (examples []*corpus.Example, h int) {
	for _, texts := range r.Texts {
		for h, of := range r.Experiment.heads(texts) {
			if of.task.Name == task && of.head.Name == head {
				return texts.Examples[Train], h
			}
		}
	}
	panic(fmt.Sprintf("experiments: no head %q of task %q", head, task))
}

// lenses lists those of a group's heads.
func (r *Run) lenses(m *multitask.Model, texts Texts) []heads.Lenses {
	var all []heads.Lenses
	for _, of := range r.Experiment.heads(texts) {
		if lensed, ok := of.head.Part.Options.(heads.Lensed); ok {
			name := m.Params.In("heads").In(of.task.Name).In(of.head.Name).In("focus").Path()
			all = append(all, heads.Lenses{Name: name, Count: lensed.Lenses()})
		}
	}
	return all
}

func (r *Run) buildTask(m *multitask.Model, task Task, kind tasks.Task, labels map[headPlace]*corpus.Labels, lenses []heads.Lenses, mistakes *plugin.Mistakes) multitask.Task {
	built := multitask.Task{Name: task.Name, Kind: kind}
	for _, head := range task.Heads {
		set := labels[headPlace{task.Name, head.Name}]
		site := heads.Site{
			Task: task.Name, Name: head.Name,
			Answer: kind.Answer(), Labels: set.Names(),
			Width: m.Encoder.Width(), Dropout: r.Experiment.Model.Dropout,
			Training: r.trainingOf(task, head, set),
			Mask:     -1,
			Lenses:   lenses,
			Params:   m.Params.In("heads").In(task.Name).In(head.Name),
		}
		if id, ok := r.Tokenizer.Mask(); ok {
			site.Mask = id
		}
		if shows, ok := m.Encoder.(encoders.Attentive); ok {
			site.Attention.Layers, site.Attention.Heads = shows.Attention()
		}
		if tied, ok := m.Encoder.(encoders.Tied); ok {
			site.Words = tied.Words()
		}
		h, err := head.Part.Build(site)
		if err != nil {
			mistakes.Append(err)
		}
		r.checkAccepted(task, head, h, mistakes)
		r.remark(head.Place, h)
		built.Heads = append(built.Heads, multitask.Head{Name: head.Name, Head: h, Labels: set, Weight: head.Weight})
	}
	return built
}
