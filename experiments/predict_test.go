package experiments

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
)

func TestInputTakesPlainTextAndJSON(t *testing.T) {
	for _, test := range []struct{ line, text, pair, err string }{
		{line: "play adele", text: "play adele"},
		{line: "\ufeffplay adele", text: "play adele"},
		{line: "[1, 2]", text: "[1, 2]"},
		{line: "\ufeff{\"text\": \"play\", \"pair\": \"adele\"}", text: "play", pair: "adele"},
		{line: `{"words": ["play", "adele"], "label": "music"}`, text: "play adele"},
		{line: `{"text": "play"`, err: "line 1: unexpected EOF; want plain text, or a JSON object with text, pair or words"},
		{line: `{"text": "play"} adele`, err: "line 1: the line goes on after the JSON object; want plain text, or a JSON object with text, pair or words"},
		{line: `{"txt": "play"}`, err: "line 1: a JSON object with neither text nor words; want plain text, or a JSON object with text, pair or words"},
		{line: "play \xff", err: "line 1: not UTF-8"},
	} {
		e, err := Input(test.line, 1)
		switch {
		case test.err != "":
			if err == nil || err.Error() != test.err {
				t.Errorf("Input(%q) = %v, want %s", test.line, err, test.err)
			}
		case err != nil:
			t.Errorf("Input(%q) = %v", test.line, err)
		case e.Text != test.text || e.Pair != test.pair:
			t.Errorf("Input(%q) = %q, %q, want %q, %q", test.line, e.Text, e.Pair, test.text, test.pair)
		}
	}
}

func TestATextWithoutWordsHasNoTags(t *testing.T) {
	answers, err := openSmall(t).Predictor().Answer([]*corpus.Example{{Text: ""}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := jsonOf(t, answers[0]), `"things":{"things":{"spans":[],"tags":[]}}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}
