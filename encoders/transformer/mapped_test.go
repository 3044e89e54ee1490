package transformer

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

var _ io.Closer = (*encoder)(nil)

// openFrozen opens a model as for prediction.
func openFrozen(t *testing.T, path, freeze string) *encoder {
	t.Helper()
	e, err := New(Options{}, encoders.Env{Model: path, Freeze: freeze, Params: nn.NewParams(1).In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	return e.(*encoder)
}

// copyOf copies a tiny model, its values changed by edit, to a folder that may be changed.
func copyOf(t *testing.T, name string, edit func(tensor string, values []float32)) string {
	t.Helper()
	dir := folder(t, map[string]string{"config.json": content(t, filepath.Join(tinyModel(name), "config.json"))})
	tensors := readTensors(t, filepath.Join(tinyModel(name), "model.safetensors"))
	for _, tensor := range tensors {
		edit(tensor.Name, tensor.Data)
	}
	writeTensors(t, filepath.Join(dir, "model.safetensors"), tensors)
	return dir
}

// skipUnmapped skips a test of a mapped encoder on systems without mapping.
func skipUnmapped(t *testing.T, e *encoder) {
	t.Helper()
	if len(e.source.mapped) == 0 {
		t.Skip("this system or processor does not use mapped values")
	}
}

func TestAFrozenEncodersWordsAreTheFiles(t *testing.T) {
	for _, freeze := range []string{"all", "embeddings", "1"} {
		t.Run(freeze, func(t *testing.T) {
			e, read := openFrozen(t, tinyModel("bert"), freeze), openModel(t, tinyModel("bert"))
			skipUnmapped(t, e)
			equalParameters(t, e, read)
			texts := stateTexts(tinyLengths, e.config.Vocabulary)
			if !slices.Equal(evaluate(t, e, texts), evaluate(t, read, texts)) {
				t.Error("the states have other bits than those of an encoder that was read")
			}
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if e := openModel(t, tinyModel("bert")); len(e.source.mapped) > 0 {
		t.Error("an encoder that learns has its words in the file, where they cannot be changed")
	}
}

func TestAMappedEncoderIsSavedOverItsOwnFile(t *testing.T) {
	dir := copyOf(t, "bert", func(string, []float32) {})
	e := openFrozen(t, dir, "all")
	if err := e.Save(dir); err != nil {
		t.Fatal(err)
	}
	equalParameters(t, openModel(t, dir), e)
}

func TestANaNInAWordEmbeddingIsFoundWhenItIsRead(t *testing.T) {
	dir := copyOf(t, "bert", func(tensor string, values []float32) {
		if strings.HasSuffix(tensor, "word_embeddings.weight") {
			values[len(values)-2] = float32(math.Inf(1))
		}
	})
	e := openFrozen(t, dir, "all")
	skipUnmapped(t, e)
	last := int32(e.config.Vocabulary - 1)
	encode := func(ids ...int32) error {
		_, err := e.Encode(nn.NewPass(1), pack(ids), nn.LastLayer)
		return err
	}
	if err := encode(0, last-1); err != nil {
		t.Errorf("words with numbers: %v", err)
	}
	err := encode(0, last)
	if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, "model.safetensors")+": tensor ") ||
		!strings.Contains(err.Error(), "holds +Inf as value") {
		t.Errorf("a word embedding of +Inf gives the error %v", err)
	}
}

func TestAFileThatIsTruncatedInUseIsAnError(t *testing.T) {
	dir := copyOf(t, "bert", func(string, []float32) {})
	path := filepath.Join(dir, "model.safetensors")
	e := openFrozen(t, dir, "all")
	skipUnmapped(t, e)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	_, encoding := e.Encode(nn.NewPass(1), pack([]int32{1}), nn.LastLayer)
	_, reading := e.Words([]int32{1})
	for _, err := range []error{encoding, reading} {
		if err == nil || !strings.HasPrefix(err.Error(), path+": tensor ") ||
			!strings.Contains(err.Error(), "was truncated while it was in use") {
			t.Errorf("a truncated file gives the error %v", err)
		}
	}
}

func TestAClosedEncoderPanics(t *testing.T) {
	e := openFrozen(t, tinyModel("bert"), "all")
	skipUnmapped(t, e)
	for range 2 {
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		if r, _ := recover().(string); r != "transformer: an encoder is used after Close" {
			t.Errorf("panic %q", r)
		}
	}()
	e.Encode(nn.NewPass(1), pack([]int32{0}), nn.LastLayer)
}
