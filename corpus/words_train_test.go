package corpus

import (
	"slices"
	"strings"
	"testing"
)

func TestWordTrainer(t *testing.T) {
	texts := slices.Values([]string{"The red kite, the kite!", "A red kite unfolds"})
	trainer, err := NewWordTrainer(texts, 16, true)
	if err != nil {
		t.Fatal(err)
	}
	for word, want := range map[string]bool{"kite": true, "blue": true, "Blue": false, "blue kite": false,
		"don't": false, "##ing": false, "": false} {
		if got := trainer.Add(word); got != want {
			t.Errorf("Add(%q) = %v, want %v", word, got, want)
		}
	}
	w, err := trainer.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	// the most frequent first, equally frequent ones in byte order, then added ones
	want := append(bertNames.all(), "kite", "red", "the", "!", ",", "a", "unfolds", "blue")
	if !slices.Equal(w.vocabulary.tokens, want) {
		t.Errorf("tokens %q, want %q", w.vocabulary.tokens, want)
	}
	e := &Example{Text: "Blue kites unfold: the KITE"}
	var tokens []string
	for _, id := range w.Encode(e, 0).IDs {
		tokens = append(tokens, w.Token(id))
	}
	if got, want := strings.Join(tokens, " "), "[CLS] blue [UNK] [UNK] [UNK] the kite [SEP]"; got != want {
		t.Errorf("%q is %s, want %s", e.Text, got, want)
	}
	folder := t.TempDir()
	if err := w.Save(folder); err != nil {
		t.Fatal(err)
	}
	again, err := OpenTokenizer(folder)
	if err != nil || !slices.Equal(again.Encode(e, 0).IDs, w.Encode(e, 0).IDs) {
		t.Errorf("a saved and reopened tokenizer encodes differently: %v", err)
	}
}

func TestWordTrainerLimitsSize(t *testing.T) {
	trainer, err := NewWordTrainer(slices.Values([]string{"a b c d e f g h i j k l m n o p q r s t"}), 16, true)
	if err != nil {
		t.Fatal(err)
	}
	if w, err := trainer.Tokenizer(); err != nil || w.Size() != 16 || trainer.Add("more") {
		t.Errorf("%d tokens, error %v; want 16, and no token added", w.Size(), err)
	}
	for _, c := range []struct {
		text string
		size int
		want string
	}{{"a", 3, "vocabulary of 3 tokens, want 16 to 2097152"}, {" ", 20, "no words to train a vocabulary on"}} {
		if _, err := NewWordTrainer(slices.Values([]string{c.text}), c.size, true); err == nil ||
			err.Error() != c.want {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
}
