package serve

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

func TestExplain(t *testing.T) {
	folder := trained(t, "mails")
	s := start(t, options(), folder)
	got := post[json.RawMessage](t, s, "/v1/explain",
		`{"text": "the card hangs", "steps": 4, "offsets": "bytes", "top": 1, "tasks": ["team"]}`)
	m, err := predict.Open(folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	o := predict.ExplainOptions{Attention: true, Gradients: true, Steps: 4,
		Form: predict.Form{Unit: corpus.Bytes, Top: 1, Tasks: []string{"team"}}}
	x, err := m.Explain(t.Context(), o, &corpus.Example{Text: "the card hangs"})
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(struct {
		Run string `json:"run"`
		predict.Explanation
	}{"mails", x})
	if err != nil || string(got) != string(want) {
		t.Errorf("%s\nwant %s; %v", got, want, err)
	}
	if w := x.Readings[0].Windows[0]; len(w.Attention) == 0 || len(w.Fusion) == 0 || len(w.Answers) != 1 {
		t.Errorf("an explanation without parts: %+v", w)
	}
}

func TestMistakesOfExplainRequests(t *testing.T) {
	o := options()
	o.MaxExplained = 8
	s := start(t, o, trained(t, "mails"))
	for _, test := range []struct {
		body, want string
		status     int
	}{
		{`{"texts": ["a"]}`, `unknown field \"texts\"; did you mean \"text\"?`, http.StatusBadRequest},
		{`{"text": "a", "steps": 1001}`, "steps: want a whole number from 0 to 1000", http.StatusBadRequest},
		{`{"text": "a", "steps": 2, "gradients": false}`, "steps: integrated gradients need", http.StatusBadRequest},
		{`{"text": "a", "attention": 1}`, "attention: want true or false", http.StatusBadRequest},
		{`{"text": "a", "tasks": ["teams"]}`, `did you mean`, http.StatusBadRequest},
		{`{}`, "no text; want text, or words, or question and context", http.StatusBadRequest},
		{`{"text": "a menu that hangs and hangs and hangs"}`, "want at most 8", http.StatusUnprocessableEntity},
	} {
		response, text := s.send(t, "POST", "/v1/explain", test.body)
		if response.StatusCode != test.status || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s %s, want %d and %s", test.body, response.Status, text, test.status, test.want)
		}
	}
}

func TestExplanationsBeyondTheQueueAreRefused(t *testing.T) {
	o := options()
	o.Model.MaxWaiting = 1
	s := start(t, o, trained(t, "mails"))
	for range maxExplanations { // all slots are taken
		if err := s.explains.take(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var callers sync.WaitGroup
	statuses := make([]int, 3)
	for i := range statuses {
		callers.Go(func() {
			response, _ := s.send(t, "POST", "/v1/explain", `{"text": "the card"}`)
			if statuses[i] = response.StatusCode; statuses[i] == http.StatusTooManyRequests {
				s.explains.release() // the one that waits goes on
			}
		})
	}
	callers.Wait()
	answered, refused := 0, 0
	for _, status := range statuses {
		switch status {
		case http.StatusOK:
			answered++
		case http.StatusTooManyRequests:
			refused++
		}
	}
	if answered == 0 || refused == 0 || answered+refused != len(statuses) {
		t.Errorf("statuses %v, want one or two each of 200 and 429", statuses)
	}
	if s.waiting() != 0 {
		t.Errorf("%d texts wait", s.waiting())
	}
}
