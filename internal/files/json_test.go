package files

import (
	"os"
	"path/filepath"
	"testing"
)

func TestErrorsHavePlaceAndExpectedValue(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"whole", `{"name": "a", "shares": [0.5], "parts": [{"size": 3}], "sums": {"a": "b"}}`, ""},
		{"not JSON", "{\n\n\"name\"", "a/b.json:3: not JSON: unexpected end of JSON input"},
		{"empty", "", "a/b.json:1: not JSON: unexpected end of JSON input"},
		{"a list", "[]", "a/b.json: it holds a JSON array; want an object"},
		{"not a string", "{\n\"name\": 3}", "a/b.json:2: name is a number; want a string"},
		{"not a whole number", "{\n\"parts\": [\n{\"size\": \"3\"}]}",
			"a/b.json:3: parts.size is a string; want a whole number"},
		{"a number with a fraction", `{"parts": [{"size": 0.5}]}`,
			"a/b.json:1: parts.size is a number 0.5; want a whole number"},
		{"not a whole number in a map", `{"ids": {"a": "5"}}`, "a/b.json:1: ids is a string; want a whole number"},
		{"not a number", `{"shares": [true]}`, "a/b.json:1: shares is a bool; want a number"},
		{"not a boolean", `{"frozen": 1}`, "a/b.json:1: frozen is a number; want true or false"},
		{"not a list", `{"parts": 3}`, "a/b.json:1: parts is a number; want a list"},
		{"not an object in a list", `{"parts": [3]}`, "a/b.json:1: parts is a number; want an object"},
		{"not a map", `{"sums": []}`, "a/b.json:1: sums is an array; want an object"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var into struct {
				Name   string    `json:"name"`
				Frozen bool      `json:"frozen"`
				Shares []float32 `json:"shares"`
				Parts  []struct {
					Size int `json:"size"`
				} `json:"parts"`
				Sums map[string]string `json:"sums"`
				IDs  map[string]int32  `json:"ids"`
			}
			got := ""
			if err := UnmarshalJSON("a/b.json", []byte(test.data), &into); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("the error is %q, want %q", got, test.want)
			}
		})
	}
}

type Inner struct {
	Epsilon float64 `json:"epsilon"`
	Sizes   []struct {
		Deep
	} `json:"sizes"`
}

type Deep struct {
	Width int `json:"width"`
}

func TestErrorsOfEmbeddedStructsNameTheKeysAlone(t *testing.T) {
	for data, want := range map[string]string{
		`{"epsilon": "1"}`:                  "a.json:1: epsilon is a string; want a number",
		`{"sizes": [{"width": true}]}`:      "a.json:1: sizes.width is a bool; want a whole number",
		`{"Inner": true, "deeper": true}`:   "a.json:1: deeper is a bool; want an object",
		`{"deeper": {"a": {"width": "2"}}}`: "a.json:1: deeper.width is a string; want a whole number",
		`{"kept": {"Inner": "2"}}`:          "a.json:1: Kept.Inner is a string; want a whole number",
	} {
		var into struct {
			Inner
			Deeper map[string]*Deep `json:"deeper"`
			Kept   struct{ Inner int }
		}
		if err := UnmarshalJSON("a.json", []byte(data), &into); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", data, err, want)
		}
	}
}

func TestReadIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(path, []byte(`{"size": 3}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var into struct{ Size int }
	if err := ReadJSON(path, 11, &into); err != nil || into.Size != 3 {
		t.Errorf("Read: %v and size %d, want 3", err, into.Size)
	}
	want := path + ": more than 10 bytes, which is the most that is read"
	if err := ReadJSON(path, 10, &into); err == nil || err.Error() != want {
		t.Errorf("Read: %v, want %s", err, want)
	}
}
