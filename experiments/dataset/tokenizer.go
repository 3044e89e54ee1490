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
		if d.Vectors, err = corpus.OpenVectors(o.Vectors.Name, trainer.Add); err != nil {
			return &plugin.Mistake{Place: o.Vectors.Place, Err: fmt.Errorf("tokenizer: vectors: %w", err)}
		}
	}
	d.Tokenizer, err = trainer.Tokenizer()
	return err
}
