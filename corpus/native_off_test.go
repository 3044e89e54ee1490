//go:build !native

package corpus

import (
	"path/filepath"
	"testing"
)

func TestErrorOfOtherTokenizersNamesBuildTag(t *testing.T) {
	for name, model := range map[string]string{"bpe": "BPE", "unigram": "Unigram"} {
		folder := filepath.Join("testdata", "native", name)
		_, err := OpenTokenizer(folder)
		want := filepath.Join(folder, "tokenizer.json") + `: the model is of type "` + model +
			`"; this build of jenga reads WordPiece alone; scripts/native.sh makes the library that reads all, for go build -tags native`
		if err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}
