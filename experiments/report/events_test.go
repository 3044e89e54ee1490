package report

import (
	"encoding/json"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

func TestAWarningIsALine(t *testing.T) {
	got, err := json.Marshal(Line(multitask.Warning{Text: "the disk is full"}))
	if want := `{"event":"warning","warning":"the disk is full"}`; err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
}
