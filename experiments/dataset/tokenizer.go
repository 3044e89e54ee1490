package dataset

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// OpenTokenizer opens the tokenizer of the base model. Without a base model it returns a tokenizer with a vocabulary of
// one word, until trainTokenizer replaces it: how texts are split into words does not depend on the vocabulary.
func OpenTokenizer(e *config.Experiment) (corpus.Tokenizer, error) {
	base := e.Model.BaseModel
	if base.Name == "" {
		o := e.Tokenizer.Train
		return corpus.TrainWordPiece(slices.Values([]string{"a"}), o.VocabSize, o.Lowercase)
	}
	tokenizer, err := corpus.OpenTokenizer(TokenizerFolder(base.Name))
	if err != nil {
		return nil, &plugin.Mistake{Place: base.Place, Err: fmt.Errorf("model: base_model: %w", err)}
	}
	return tokenizer, nil
}

// TokenizerFolder returns the folder of a model's tokenizer: the model's folder, or that of its .onnx file.
func TokenizerFolder(model string) string {
	if strings.EqualFold(filepath.Ext(model), ".onnx") {
		return filepath.Dir(model)
	}
	return model
}

// trainTokenizer trains a tokenizer on the training texts if there is no base model.
func (d *Dataset) trainTokenizer() (err error) {
	if d.Experiment.Model.BaseModel.Name != "" {
		return nil
	}
	var failed error
	texts := func(yield func(string) bool) { failed = d.eachText(yield) }
	further := func(add func(word string) bool) { // words of the vectors
		if failed == nil && d.Experiment.Tokenizer.Vectors.Name != "" {
			failed = d.readVectors(add)
		}
	}
	o := d.Experiment.Tokenizer.Train
	if d.Experiment.Tokenizer.Type == config.WholeWords {
		d.Tokenizer, err = corpus.TrainWords(texts, o.VocabSize, o.Lowercase, further)
	} else {
		d.Tokenizer, err = corpus.TrainWordPiece(texts, o.VocabSize, o.Lowercase)
	}
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return d.vocabularyError(err)
	}
	return nil
}

// errEnough ends a pass whose other examples are not wanted.
var errEnough = errors.New("enough")

func (d *Dataset) eachText(yield func(string) bool) error {
	for g := range d.Groups {
		err := d.each(&d.Groups[g], config.Train, "words of %s", func(e *corpus.Example) error {
			if !yield(e.Text) || e.Paired && !yield(e.Pair) {
				return errEnough
			}
			return nil
		})
		if errors.Is(err, errEnough) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (d *Dataset) vocabularyError(err error) error {
	var files []string
	for _, task := range d.Experiment.Tasks {
		if name := TrainingFile(task.Data).Name; name != "" && !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return &plugin.Mistake{Place: d.Experiment.Place("tokenizer"),
		Err: fmt.Errorf("tokenizer: training on the texts of %s: %w", strings.Join(files, ", "), err)}
}

// openVectors reads the vectors of the words in the vocabulary of a run's tokenizer. Frozen embeddings are in no
// snapshot and are initialised from the vectors again.
func (d *Dataset) openVectors() error {
	if d.Experiment.Tokenizer.Vectors.Name == "" {
		return nil
	}
	known := map[string]bool{}
	for id := range d.Tokenizer.Size() {
		known[d.Tokenizer.Token(int32(id))] = true
	}
	return d.readVectors(func(word string) bool { return known[word] })
}

func (d *Dataset) readVectors(keep func(word string) bool) (err error) {
	vectors := d.Experiment.Tokenizer.Vectors
	if d.Vectors, err = corpus.OpenVectors(d.ctx, vectors.Name, keep); err != nil {
		return &plugin.Mistake{Place: vectors.Place, Err: fmt.Errorf("tokenizer: vectors: %w", err)}
	}
	return nil
}

const (
	splitExamples  = 2000 // training examples that the ways to split words are compared by
	goodAgreement  = 0.98 // below, predictions for plain text have other words than the data
	clearAdvantage = 0.01 // of another way over the tokenizer's, to be chosen
)

// chooseSplitter sets split_words of a group's tasks, if it is not set and the training data gives the words, to the
// way that agrees best with them, before other files are read, and warns if no way agrees well.
func (r *reader) chooseSplitter(group *Group) {
	d := r.data
	perWord := func(number int) bool { return d.Tasks[number].Output().PerWord }
	if !slices.ContainsFunc(group.Tasks, perWord) {
		return
	}
	given, err := d.wordsGiven(group)
	if err != nil {
		r.mistakes.Append(err)
	}
	if err != nil || len(given) == 0 {
		return
	}
	first := d.Experiment.Tasks[group.Tasks[0]]
	agreement := func(way string) float64 {
		return corpus.SplitAgreement(corpus.Splitter(way, d.Tokenizer), given)
	}

	// the best way, of equal ones the first
	way := first.Data.SplitWords
	if way == "" {
		way = corpus.SplitPunctuation
		best := agreement(way) + clearAdvantage
		for _, other := range []string{corpus.SplitEnds, corpus.SplitClitics, corpus.SplitTreebank,
			corpus.SplitWhitespace} {
			if f1 := agreement(other); f1 > best {
				way, best = other, f1
			}
		}
		for _, number := range group.Tasks {
			d.Experiment.Tasks[number].Data.SplitWords = way
			d.splitters[number] = corpus.Splitter(way, d.Tokenizer)
		}
	}
	if f1 := agreement(way); f1 < goodAgreement {
		for _, number := range group.Tasks {
			d.SplitAgreement[d.Experiment.Tasks[number].Name] = f1
		}
		r.warnings = append(r.warnings, taskWarning(first, "plain texts are split into words by split_words: %s, "+
			"which agrees with the words of the training data by F1 %.1f %%; predictions for given words are better",
			way, 100*f1))
	}
}

// wordsGiven returns the first training examples whose records have words, at most splitExamples.
func (d *Dataset) wordsGiven(group *Group) ([]*corpus.Example, error) {
	if group.Stream != nil {
		return group.Stream.read(group.Stream.found.Given)
	}
	var given []*corpus.Example
	for _, e := range group.Examples[config.Train] {
		if e.WordsGiven && len(given) < splitExamples {
			given = append(given, e)
		}
	}
	return given, nil
}

// AddWords splits the text of an encoded example without words into them, as that of plain texts of a task, and marks
// the tokens of each. The tokens stay as they are.
func (d *Dataset) AddWords(task int, e *corpus.Example) {
	e.Words = d.splitters[task](e.Text)
	e.MarkWords()
}
