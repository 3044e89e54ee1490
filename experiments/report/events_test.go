package report

import (
	"encoding/json"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

func TestARemarkIsALine(t *testing.T) {
	got, err := json.Marshal(Line(multitask.Remark{Text: "the disk is full"}))
	if want := `{"event":"remark","remark":"the disk is full"}`; err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
}
