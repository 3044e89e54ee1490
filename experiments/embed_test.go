package experiments

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

func TestARunsEncoderIsOpenedAsItWasTrained(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	run, _ := trainSmall(t, smallExperiment(t, ""), folder)
	for _, test := range []struct {
		freeze string
		learns bool
	}{{"none", true}, {"all", false}} {
		params := nn.NewParams(0)
		encoder, tokenizer, err := OpenEncoder(filepath.Join(folder, lastDir), encoders.Site{Freeze: test.freeze, Params: params.In("encoder")})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := encoder.(encoders.Trainable); !ok || tokenizer.Size() != run.Tokenizer.Size() {
			t.Errorf("an encoder that learns: %v, of %d tokens; want one of %d", ok, tokenizer.Size(), run.Tokenizer.Size())
		}
		trained := run.Model.Params.In("encoder").All()
		for i, w := range params.All() {
			if w.Name != trained[i].Name || !slices.Equal(w.Data, trained[i].Data) || w.Frozen == test.learns {
				t.Errorf("freeze %s: %s is frozen: %v, or differs from the run's last", test.freeze, w.Name, w.Frozen)
			}
		}
	}
	if _, _, err := OpenEncoder("nowhere", encoders.Site{}); err == nil || !strings.HasPrefix(err.Error(), "nowhere: no run, no folder") {
		t.Errorf("error %v, want one that says what was looked for", err)
	}
}
