package checkpoint

import (
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

func TestErrorsOfReadNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := safetensors.Write(path, []safetensors.Tensor{{Name: "w", DType: "I8", Shape: []int{2},
		Raw: make([]byte, 2)}}, nil); err != nil {
		t.Fatal(err)
	}
	params := nn.NewParams(1)
	params.Zeros("w", 2)
	want := path + `: tensor "w" has type I8; F32, F16 and BF16 are read`
	if err := Read(path, "the experiment", params.All(), params); err == nil || err.Error() != want {
		t.Errorf("Read: error %v, want %s", err, want)
	}
}
