package predict

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// squad has the parts of a file in SQuAD's format that this test selects.
type squad struct {
	Data []article `json:"data"`
}

type article struct {
	Title      string      `json:"title"`
	Paragraphs []paragraph `json:"paragraphs"`
}

type paragraph struct {
	Context   string            `json:"context"`
	Questions []json.RawMessage `json:"qas"`
}

// A model can overfit fifty questions only if the character offsets in a file are exact up to its predictions, over
// windows that each have a part of the paragraph.
func TestQuestionsAreMemorised(t *testing.T) {
	shared.SkipUnlessLong(t)
	dir, folder := shared.Dir(t), t.TempDir()
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	text, err := os.ReadFile(filepath.Join(dir, "data/xquad_en/xquad.en.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all squad
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	text, err = json.Marshal(squad{Data: []article{{"short", short(all, 90, 50)}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "memorise.yaml")
	for name, content := range map[string]string{
		filepath.Join(folder, "questions.json"): string(text),
		path: `
model: {base_model: minilm-l6, dropout: 0}
tokenizer: {max_length: 96}
tasks:
  - {name: answer, type: question_answering, data: {train: questions.json, dev: questions.json}}
training: {learning_rate: 2.0e-4, batch_size: 4, num_epochs: 16, metric_for_best_model: eval_answer_answer_exact_match}
`,
	} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, done := trainSmall(t, path, filepath.Join(folder, "run"))
	if !(done.Value >= 0.98) {
		t.Errorf("%s is %v, want 0.98 at least", done.Metric, done.Value)
	}
	t.Logf("%s %.1f", done.Metric, 100*done.Value)
}

// short returns paragraphs of at most words words, with the given number of questions in all.
func short(all squad, words, questions int) []paragraph {
	var chosen []paragraph
	for _, a := range all.Data {
		for _, p := range a.Paragraphs {
			if questions > 0 && len(strings.Fields(p.Context)) <= words {
				p.Questions = p.Questions[:min(len(p.Questions), questions)]
				questions -= len(p.Questions)
				chosen = append(chosen, p)
			}
		}
	}
	return chosen
}
