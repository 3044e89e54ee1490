package dataset

import (
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// openTokenizer opens the tokenizer of the model that the encoder starts from. One that is still to be trained on the
// texts knows one word until then: how it splits texts does not depend on its vocabulary.
func openTokenizer(e *config.Experiment) (corpus.Tokenizer, error) {
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

// TokenizerFolder is where the tokenizer of a model lies: in its folder, or beside its .onnx file.
func TokenizerFolder(model string) string {
	if strings.EqualFold(filepath.Ext(model), ".onnx") {
		return filepath.Dir(model)
	}
	return model
}

// trainTokenizer makes a vocabulary from the training texts for an encoder that starts from nothing.
func (d *Dataset) trainTokenizer() (err error) {
	if d.Experiment.Model.BaseModel.Name != "" {
		return nil
	}
	texts := func(yield func(string) bool) {
		for _, g := range d.Groups {
			for _, e := range g.Examples[config.Train] {
				if !yield(e.Text) || e.Paired && !yield(e.Pair) {
					return
				}
			}
		}
	}
	o := d.Experiment.Tokenizer
	if o.Type == config.WholeWords {
		return d.trainWords(texts)
	}
	d.Tokenizer, err = corpus.TrainWordPiece(texts, o.Train.VocabSize, o.Train.Lowercase)
	return err
}

// trainWords makes a vocabulary of whole words: those of texts, and of vectors what else there is room for.
func (d *Dataset) trainWords(texts iter.Seq[string]) error {
	o := d.Experiment.Tokenizer
	trainer, err := corpus.NewWordTrainer(texts, o.Train.VocabSize, o.Train.Lowercase)
	if err != nil {
		return err
	}
	if o.Vectors.Name != "" {
		if err := d.readVectors(trainer.Add); err != nil {
			return err
		}
	}
	d.Tokenizer, err = trainer.Tokenizer()
	return err
}

// openVectors reads the vectors of the words that the tokenizer of a run knows. What of an encoder's embeddings does
// not learn is in no snapshot and begins with them again.
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

// readVectors reads the vectors of the words that keep takes.
func (d *Dataset) readVectors(keep func(word string) bool) (err error) {
	vectors := d.Experiment.Tokenizer.Vectors
	if d.Vectors, err = corpus.OpenVectors(vectors.Name, keep); err != nil {
		return &plugin.Mistake{Place: vectors.Place, Err: fmt.Errorf("tokenizer: vectors: %w", err)}
	}
	return nil
}
