package jsonfile

import "testing"

func TestErrorsSayWhereAndWhatIsWanted(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"whole", `{"name": "a", "shares": [0.5], "parts": [{"size": 3}], "sums": {"a": "b"}}`, ""},
		{"no JSON", "{\n\n\"name\"", "a/b.json:3: unexpected end of JSON input"},
		{"nothing", "", "a/b.json:1: unexpected end of JSON input"},
		{"a list", "[]", "a/b.json: it holds a JSON array; want an object"},
		{"no string", "{\n\"name\": 3}", "a/b.json:2: name is a number; want a string"},
		{"no whole number", "{\n\"parts\": [\n{\"size\": \"3\"}]}",
			"a/b.json:3: parts.size is a string; want a whole number"},
		{"a number with a fraction", `{"parts": [{"size": 0.5}]}`,
			"a/b.json:1: parts.size is a number 0.5; want a whole number"},
		{"no number", `{"shares": [true]}`, "a/b.json:1: shares is a bool; want a number"},
		{"no flag", `{"frozen": 1}`, "a/b.json:1: frozen is a number; want true or false"},
		{"no list", `{"parts": 3}`, "a/b.json:1: parts is a number; want a list"},
		{"no object in a list", `{"parts": [3]}`, "a/b.json:1: parts is a number; want an object"},
		{"no map", `{"sums": []}`, "a/b.json:1: sums is an array; want an object"},
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
			}
			got := ""
			if err := Unmarshal("a/b.json", []byte(test.data), &into); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("the error is %q, want %q", got, test.want)
			}
		})
	}
}
