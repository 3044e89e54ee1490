package experiments

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

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
