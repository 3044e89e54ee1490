package serve

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestTextsAreInTheLogOnlyIfAsked(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var log bytes.Buffer
		o := options()
		o.Log, o.LogTexts = slog.New(slog.NewJSONHandler(&log, nil)), asked
		s := start(t, o, trained(t, "mails"))
		for _, path := range []string{"/v1/predict", "/v1/embed"} {
			post[any](t, s, path, `{"text": "my secret"}`)
		}
		s.send(t, "POST", "/v1/predict", `{"my secret": 1}`)
		if got := strings.Count(log.String(), "my secret"); got != map[bool]int{true: 2}[asked] {
			t.Errorf("asked %v: the text is in the log %d times\n%s", asked, got, log.String())
		}
		if !strings.Contains(log.String(), `"path":"/v1/predict","status":200`) {
			t.Errorf("no line for the request\n%s", log.String())
		}
	}
}

func TestMetricsCount(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	post[any](t, s, "/v1/predict", `{"texts": ["the card", "a menu"]}`)
	post[any](t, s, "/v1/predict", `{"texts": ["a menu", "", {"text": "a", "pair": "b"}]}`) // one is answered
	s.send(t, "POST", "/v1/predict", `{}`)
	s.send(t, "GET", "/", "")
	_, text := s.send(t, "GET", "/metrics", "")
	for _, want := range []string{
		`jenga_requests_total{path="/v1/predict",status="200"} 2`,
		`jenga_requests_total{path="/v1/predict",status="400"} 1`, `jenga_requests_total{path="/",status="200"} 1`,
		`jenga_texts_total{run="mails"} 3`, "jenga_batch_texts_sum 5", "jenga_batch_seconds_count 2",
		`jenga_request_seconds_count{path="/v1/predict"} 3`, "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}

func TestTheDashboardHasNamesOfMetricsThatThereAre(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	s.send(t, "POST", "/v1/predict", `{"text": "a"}`)
	_, metrics := s.send(t, "GET", "/metrics", "")
	file, err := os.ReadFile("../../docs/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(file, &dashboard); err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`\b(?:jenga|process|go)_\w+`)
	found := 0
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			for _, name := range names.FindAllString(target.Expr, -1) {
				if found++; !strings.Contains(metrics, "\n"+name+"{") && !strings.Contains(metrics, "\n"+name+" ") {
					t.Errorf("%s: no such metric", name)
				}
			}
		}
	}
	if found < len(dashboard.Panels) || found == 0 {
		t.Errorf("%d metrics in %d panels", found, len(dashboard.Panels))
	}
}
