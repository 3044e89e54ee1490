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

// A threshold that is tuned, or a statistic that is fitted, is frozen and changes all the same; a table of word vectors
// does not.
func TestCopiesDoNotFollowWhatIsFitted(t *testing.T) {
	fitted := &nn.Param{Name: "thresholds", Shape: []int{2}, Data: []float32{1, 2}, Frozen: true}
	table := &nn.Param{Name: "words", Shape: []int{2, 1}, Data: []float32{3, 4}, Frozen: true, Table: true}
	copied := CopyParams([]*nn.Param{fitted, table}, nil)
	fitted.Data[0] = 9
	if copied[0].Data[0] != 1 || &copied[1].Data[0] != &table.Data[0] {
		t.Errorf("copies %v and %v, want [1 2], and the table itself", copied[0].Data, copied[1].Data)
	}
}
