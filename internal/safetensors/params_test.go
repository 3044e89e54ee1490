package safetensors

import (
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func TestErrorsOfReadParamsNameTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := Write(path, []Tensor{{Name: "w", DType: "I8", Shape: []int{2},
		Raw: make([]byte, 2)}}, nil); err != nil {
		t.Fatal(err)
	}
	params := nn.NewParams(1)
	params.Zeros("w", 2)
	want := path + `: tensor "w" has type I8; F32, F16 and BF16 are read`
	if err := ReadParams(path, "the experiment", params.All(), params); err == nil || err.Error() != want {
		t.Errorf("ReadParams: error %v, want %s", err, want)
	}
}
