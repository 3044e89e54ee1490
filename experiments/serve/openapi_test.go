package serve

import (
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// documented returns the compiler of the schemas of /openapi.json.
func documented(t *testing.T, s served) *jsonschema.Compiler {
	t.Helper()
	_, text := s.send(t, "GET", "/openapi.json", "")
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("openapi.json", document); err != nil {
		t.Fatal(err)
	}
	return c
}

// valid returns an error for a JSON text that a schema of the document does not describe.
func valid(t *testing.T, c *jsonschema.Compiler, name, text string) error {
	t.Helper()
	schema, err := c.Compile("openapi.json#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

func TestAnswersMatchTheDocument(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	c := documented(t, s)
	for _, test := range []struct{ method, path, body, request, response string }{
		{"POST", "/v1/predict", `{"text": "the card", "top": 2}`, "PredictRequest", "Predictions"},
		{"POST", "/v1/predict", `{"texts": [{"words": ["a"]}], "tasks": ["team"]}`, "PredictRequest", "Predictions"},
		{"POST", "/v1/predict", `{"text": "the card", "min_probability": 1}`, "PredictRequest", "Predictions"},
		{"POST", "/v1/predict", `{"text": "a", "min_probability": {"team": 1}, "thresholds": {"team.team": 0.5}}`,
			"PredictRequest", "Predictions"},
		{"POST", "/v1/predict", `{"texts": ["the card", {"text": "a", "pair": "b"}]}`, "PredictRequest", "Predictions"},
		{"POST", "/v1/predict", `{"text": 1}`, "", "Error"},
		{"POST", "/v1/embed", `{"text": "the card", "pool": "cls"}`, "EmbedRequest", "Embeddings"},
		{"POST", "/v1/explain", `{"text": "the card", "steps": 3}`, "ExplainRequest", "Explanation"},
		{"POST", "/v1/explain", `{"words": ["a", "card"], "attention": false, "gradients": false, "steps": 0}`,
			"ExplainRequest",
			"Explanation"},
		{"POST", "/v1/explain", `{"texts": ["the card"]}`, "", "Error"},
		{"GET", "/v1/tasks", "", "", "Runs"},
	} {
		_, answer := s.send(t, test.method, test.path, test.body)
		for name, text := range map[string]string{test.request: test.body, test.response: answer} {
			if name == "" {
				continue
			}
			if err := valid(t, c, name, text); err != nil {
				t.Errorf("%s %s is no %s: %v\n%s", test.path, test.body, name, err, text)
			}
		}
	}
}

func TestTheDocumentDescribesNoMistakes(t *testing.T) {
	c := documented(t, start(t, options(), trained(t, "mails")))
	for _, body := range []string{`{"txt": "a"}`, `{"text": ""}`, `{"texts": []}`, `{"tasks": ["teams"]}`,
		`{"text": "a", "min_probability": 2}`, `{"text": "a", "min_probability": {"things": 0.5}}`,
		`{"text": "a", "thresholds": {"team": {"billing": 0.5}}}`} {
		if valid(t, c, "PredictRequest", body) == nil {
			t.Errorf("%s is a PredictRequest", body)
		}
	}
	if body := `{"text": "a", "steps": 1, "gradients": false}`; valid(t, c, "ExplainRequest", body) == nil {
		t.Errorf("%s is an ExplainRequest", body)
	}
}
