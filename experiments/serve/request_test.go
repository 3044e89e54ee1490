package serve

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/experiments/quantize"
	trainedrun "github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
)

// bodies have the status of their answer, and what is in its error, of the runs mails and others.
var bodies = []struct {
	path, body string
	status     int
	want       string
}{
	{"/v1/predict", ``, 400, "the body: the record ends early; want a JSON object with text or texts"},
	{"/v1/predict", `[1]`, 400, "the body: "},
	{"/v1/predict", `{"text": "a"`, 400, "the body: "},
	{"/v1/predict", `{"text": "a"} {}`, 400, "the body: "},
	{"/v1/predict", "{\"text\": \"\xff\"}", 400, "the body is not UTF-8: byte 0xff at offset 10"},
	{"/v1/predict", `{"text": ` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}`, 400, "deep"},
	{"/v1/predict", `{"text": "` + strings.Repeat("a", 10_000) + `"}`, 413, "the body has more than 10000 bytes"},
	{"/v1/predict", `{"run": "mails"}`, 400, "no text"},
	{"/v1/predict", `{"txt": "a", "run": "mails"}`, 400, `unknown field "txt"; did you mean "text"?`},
	{"/v1/predict", `{"text": "a", "texts": ["a"], "run": "mails"}`, 400, "want one of the two"},
	{"/v1/predict", `{"texts": [], "run": "mails"}`, 400, "want a list of at least one text"},
	{"/v1/predict", `{"texts": "a", "run": "mails"}`, 400, "want a list of at least one text"},
	{"/v1/predict", `{"texts": ["a"` + strings.Repeat(`,"a"`, 20) + `], "run": "mails"}`, 422,
		"21 of them; want at most 20"},
	{"/v1/predict", `{"text": "a"}`, 400, "several runs are served; want run: mails or others"},
	{"/v1/predict", `{"text": "a", "run": "mail"}`, 404, `no run "mail"; did you mean "mails"?`},
	{"/v1/predict", `{"text": "a", "run": 3}`, 400, "run: want a string that is not empty"},
	{"/v1/predict", `{"text": "a", "run": "mails", "offsets": ""}`, 400, "offsets: want a string that is not empty"},
	{"/v1/predict", `{"text": "a", "run": "mails", "tasks": ["teams"]}`, 400, `did you mean "team"?`},
	{"/v1/predict", `{"text": "a", "run": "mails", "tasks": "team"}`, 400, "tasks: want a list"},
	{"/v1/predict", `{"text": "a", "run": "mails", "tasks": []}`, 400, "tasks: want a list"},
	{"/v1/predict", `{"text": "a", "run": "mails", "tasks": [1]}`, 400, "tasks: want a list"},
	{"/v1/predict", `{"text": "a", "run": "mails", "top": -1}`, 400, "top: want a whole number from 0 to 1000"},
	{"/v1/predict", `{"text": "a", "run": "mails", "top": 1.5}`, 400, "top: want a whole number from 0 to 1000"},
	{"/v1/predict", `{"text": "a", "run": "mails", "top": 2.0}`, 200, ""},
	{"/v1/predict", `{"text": "a", "run": "mails", "top": 1001}`, 400, "top: want a whole number from 0 to 1000"},
	{"/v1/predict", `{"text": "a", "run": "mails", "top": "1"}`, 400, "top: want a whole number from 0 to 1000"},
	{"/v1/predict", `{"text": "a", "run": "mails", "offsets": "runes"}`, 400, `offsets "runes": want one of`},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": 0.5}`, 200, ""},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": {"team": 1, "team.team": 0}}`, 200, ""},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": 1.01}`, 400,
		"min_probability: 1.01: want a number from 0 to 1"},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": "0.5"}`, 400, "min_probability: want a number"},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": null}`, 400, "min_probability: want a number"},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": 1e999}`, 400, "min_probability: want a number"},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": {"teams": 0.5}}`, 400,
		`min_probability: no task with labels "teams"; did you mean "team"?`},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": {"things": 0.5}}`, 400,
		"min_probability: no task"},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": {"": 0.5}}`, 400,
		"min_probability: want a number"},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": {"team": {"billing": 1}}}`, 400,
		"min_probability: want a number"},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": {"team": 0.5}}`, 200, ""},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": {}}`, 200, ""},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": 0.5}`, 400, "thresholds: want an object"},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": {"team": -1}}`, 400,
		`thresholds: "team": -1: want a number from 0 to 1`},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": {"team": [1]}}`, 400,
		`thresholds: "team": want a number`},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": {"team": {"billing": 0.5}}}`, 400,
		`thresholds: "team": it predicts one label; want a number`},
	{"/v1/predict", `{"text": "a", "run": "mails", "thresholds": {"team": {}}}`, 400,
		`thresholds: "team": it predicts one label; want a number`},
	{"/v1/predict", `{"text": "a", "run": "mails", "min_probability": {}}`, 200, ""},
	{"/v1/predict", `{"text": 3, "run": "mails"}`, 422, "the body: text: want a string"},
	{"/v1/predict", `{"words": "a", "run": "mails"}`, 422, "the body: words: want a list of strings"},
	{"/v1/predict", `{"words": ["a", 1], "run": "mails"}`, 422, "the body: words: want a list of strings"},
	{"/v1/predict", `{"text": "a", "pair": null, "run": "mails"}`, 422, "the body: pair: want a string"},
	{"/v1/predict", `{"text": " ", "run": "mails"}`, 200, ""},
	{"/v1/predict", `{"text": "", "run": "mails"}`, 422, "the body: the text is empty"},
	{"/v1/predict", `{"words": [], "run": "mails"}`, 422, "the body: the text is empty"},
	{"/v1/predict", `{"words": ["a", ""], "run": "mails"}`, 422, "the body: word 2 is empty"},
	{"/v1/predict", `{"question": "", "context": "a", "run": "mails"}`, 422, "the body: the text is empty"},
	{"/v1/explain", `{"text": "", "run": "mails"}`, 422, "the body: the text is empty"},
	{"/v1/predict", `{"text": "a", "words": ["a"], "run": "mails"}`, 422, "text and words: want one of them"},
	{"/v1/predict", `{"question": "a", "run": "mails"}`, 422, "question: want context beside it"},
	{"/v1/predict", `{"text": "a", "context": "b", "run": "mails"}`, 422, "context: want question beside it"},
	{"/v1/predict", `{"question": "a", "context": "b", "pair": "c", "run": "mails"}`, 422, "in place of pair"},
	{"/v1/predict", `{"pair": "b", "run": "mails"}`, 422, "no text, words or question"},
	{"/v1/predict", `{"text": "a", "pair": "b", "run": "mails"}`, 422, "the model was trained on single ones"},
	{"/v1/embed", `{"text": "a", "run": "mails", "pool": "max"}`, 400, `pool "max": want mean or cls`},
	{"/v1/embed", `{"text": "a", "run": "mails", "top": 1}`, 400, `unknown field "top"`},
	{"/v1/embed", `{"texts": ["a", ""], "run": "mails"}`, 422, "texts[1]: the text is empty"},
}

func TestMistakesInRequests(t *testing.T) {
	s := start(t, options(), trained(t, "mails"), trained(t, "others"))
	for _, test := range bodies {
		response, text := s.send(t, "POST", test.path, test.body)
		var answer struct{ Error string }
		if err := json.Unmarshal([]byte(text), &answer); err != nil {
			t.Errorf("%.50s: %v: %s", test.body, err, text)
		}
		if response.StatusCode != test.status || !strings.Contains(answer.Error, test.want) {
			t.Errorf("%.60s: %d, %q; want %d, %q", test.body, response.StatusCode, answer.Error, test.status, test.want)
		}
	}
}

// A body that is too large by its length is refused before it comes: its client may send it slowly.
func TestALengthThatIsTooLargeIsRefusedAtOnce(t *testing.T) {
	o := options()
	o.MaxBody = 1000
	s := start(t, o, trained(t, "mails"))
	for _, length := range []string{"1001", "100000000000000"} {
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_, err = io.WriteString(c, "POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"+
			"Content-Length: "+length+"\r\n\r\n{")
		if err := cmp.Or(err, c.SetDeadline(time.Now().Add(5*time.Second))); err != nil {
			t.Fatal(err)
		}
		if response, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || response.StatusCode != 413 {
			t.Errorf("%s bytes: response %v, %v; want 413", length, response, err)
		}
	}
}

func TestAMistakeInOneOfManyTextsIsItsOwn(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	got := post[struct {
		Predictions []struct {
			Error string
			Tasks map[string]any
		}
	}](t, s, "/v1/predict", `{"texts": ["the card", 3, {"textt": "x"}, "", {"text": "a", "pair": "b"}, "a menu"]}`)
	for i, want := range []string{
		"", "texts[1]: want a text", `texts[2]: unknown field "textt"; did you mean "text"?`,
		"texts[3]: the text is empty",
		"trained on single ones", "",
	} {
		p := got.Predictions[i]
		if !strings.Contains(p.Error, want) || (p.Error == "") != (want == "") || (p.Tasks == nil) != (want != "") {
			t.Errorf("text %d: %+v, want %q", i, p, want)
		}
	}
}

func FuzzRequest(f *testing.F) {
	s := start(f, options(), trained(f, "mails"))
	for _, seed := range []string{
		`{"text": "the card"}`,
		`{"texts": ["a", {"text": "a", "pair": "b"}, {"words": ["a"]}], "tasks": ["team"], "top": 1}`,
		`{"question": "a?", "context": "b", "offsets": "utf16", "run": "mails", "pool": "cls"}`,
		`{"texts": [[{}]]}`, `{"top": 1e9}`,
		`{"text": "a", "min_probability": {"team": 0.5}, "thresholds": {"team": 1}}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/v1/predict", "/v1/embed"} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %q: %d\n%s", path, body, w.Code, w.Body)
			}
		}
	})
}

// FuzzTasks sends requests to a server whose run has a task of each kind, to all routes that read a body.
func FuzzTasks(f *testing.F) {
	s := start(f, options(), trainedrun.Kinds(f))
	for _, seed := range []string{
		`{"text": "so good, a bad day", "top": 3, "offsets": "bytes"}`,
		`{"texts": ["so [MASK]", {"text": "so good", "pair": "so bad"}, {"words": ["so", "good"]}, {}, null]}`,
		`{"question": "so good", "context": "a bad day", "tasks": ["who"], "offsets": "utf16", "steps": 2}`,
		`{"text": "a", "pair": "b", "tasks": ["alike", "mood"], "attention": false, "gradients": true}`,
		`{"words": ["so", "", "good"], "tasks": ["names"], "pool": "cls", "top": 0}`,
		`{"text": "a", "min_probability": {"mood.lens": 0.5, "names": 1}, "thresholds": {"many": {"a": 0, "b": 1}}}`,
		`{"text": "text,label\n\"a, b\",good\n", "min_probability": 0.9, "thresholds": {"mood": 2}, "run": "kinds"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		for _, path := range []string{"/v1/predict", "/v1/embed", "/v1/explain"} {
			r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(body))
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, r)
			fine := w.Code == 200 || w.Code >= 400 && w.Code < 500 || w.Code == http.StatusServiceUnavailable
			if !fine || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s %q: %d\n%s", path, body, w.Code, w.Body)
			}
		}
	})
}

func TestALongTextIs422(t *testing.T) {
	o := options()
	o.Model.MaxTextTokens = 10
	s := start(t, o, trained(t, "mails"))
	for _, path := range []string{"/v1/predict", "/v1/embed"} {
		long, want := `"`+strings.Repeat("a ", 30)+`"`, ": the text is read as 32 tokens; want at most 10"
		response, text := s.send(t, "POST", path, `{"text": `+long+`}`)
		if response.StatusCode != 422 || !strings.Contains(text, "the body"+want) {
			t.Errorf("%s: %s\n%s", path, response.Status, text)
		}
		if _, text = s.send(t, "POST", path, `{"texts": ["a", `+long+`]}`); !strings.Contains(text, "texts[1]"+want) {
			t.Errorf("%s: of a list\n%s", path, text)
		}
	}
}

func TestFieldsThatTheDataNamesAreFormsOfATextToo(t *testing.T) {
	columns := inputs.Columns{Names: map[string][]string{"text": {"body", "subject"}, "words": {"tokens"},
		"question": {"question"}}}
	for fields, want := range map[string]string{
		`{"body": "a"}`: "", `{"tokens": ["a"]}`: "", `{"body": "a", "pair": "b"}`: "",
		`{"body": "a", "words": ["a"]}`:  "body and words: want one of them",
		`{"text": "a", "tokens": ["a"]}`: "text and tokens: want one of them",
	} {
		given, err := corpus.ParseObject(fields)
		if err != nil {
			t.Fatal(err)
		}
		if err := checkText(given, columns); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: error is %v, want %q", fields, err, want)
		}
	}
}

// A request's least probability marks a label as no answer, and leaves it and its probability in the answer.
func TestImprobableAnswersAreMarked(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	for body, want := range map[string]bool{
		`{"text": "the card"}`:                                                       false,
		`{"text": "the card", "min_probability": 1}`:                                 true,
		`{"text": "the card", "min_probability": {"team": 1}}`:                       true,
		`{"text": "the card", "min_probability": {"team.team": 0}, "top": 2}`:        false,
		`{"text": "the card", "thresholds": {"team": 1}}`:                            true,
		`{"text": "the card", "thresholds": {"team": 0}, "min_probability": 1}`:      true,
		`{"text": "the card", "thresholds": {"team.team": 0}, "min_probability": 0}`: false,
	} {
		got := post[predicted](t, s, "/v1/predict", body)
		var p struct {
			Tasks map[string]map[string]outputs.LabelAnswer
		}
		if err := json.Unmarshal(got.Predictions[0], &p); err != nil {
			t.Fatal(err)
		}
		label := p.Tasks["team"]["team"]
		if label.Abstained != want || label.Label == "" || !(label.Probability > 0 && label.Probability < 1) {
			t.Errorf("%s: %+v, want abstained %v, with a label", body, label, want)
		}
	}
}

// quantized trains the small sample, quantizes it, and returns the folder.
func quantized(t *testing.T, name string) string {
	t.Helper()
	s, err := quantize.Open(t.Context(), trained(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	folder := filepath.Join(t.TempDir(), name)
	if err := s.Write(t.Context(), folder, false, nil); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestAQuantizedRunIsServed(t *testing.T) {
	folder := quantized(t, "mails")
	s := start(t, options(), folder)
	if got := s.Precisions(); !slices.Equal(got, []string{"int8"}) {
		t.Errorf("precisions %q", got)
	}
	m, err := predict.Open(t.Context(), folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	predictions, err := m.Predict(t.Context(), "the card came_late")
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(predictions[0])
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"text": "the card came_late"}`
	got := post[predicted](t, s, "/v1/predict", body).Predictions[0]
	if !bytes.Equal(compact(t, got), compact(t, want)) {
		t.Errorf("the prediction is %s, want %s", got, want)
	}
	var x struct {
		explanation
		Prediction json.RawMessage
		Notes      []string
	}
	answer := post[json.RawMessage](t, s, "/v1/explain", body)
	if err := json.Unmarshal(answer, &x); err != nil || !bytes.Equal(compact(t, x.Prediction), compact(t, want)) {
		t.Errorf("%v: the explained prediction is %s, want %s", err, x.Prediction, want)
	}
	if w := x.Readings[0].Windows[0]; len(w.Attention) != 1 || len(w.Answers) != 2 ||
		w.Answers["team"]["team"][0].GradientInput != nil {
		t.Errorf("want attention and answers without gradients: %s", answer)
	}
	if len(x.Notes) != 1 || !strings.Contains(x.Notes[0], "a quantized encoder has no gradients") {
		t.Errorf("notes %q", x.Notes)
	}
}

func TestThePageSaysWhyAQuantizedRunHasNoGradients(t *testing.T) {
	s := start(t, options(), quantized(t, "mails"))
	p := open(t, browser(t), s.url, desk)
	p.predict("the invoice came_late")
	p.look()
	const why = "a quantized encoder has no gradients; the run that it was made of has them"
	want := []string{"There are none for this answer: " + why + ".", why}
	for _, method := range []string{"integrated_gradients", "gradient_input"} {
		p.choose("Method", method)
		got := js[[]string](p, `[...document.querySelectorAll('#look .hint')].map((one) => one.textContent)`)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the hints are %q, want %q", method, got, want)
		}
	}
}
