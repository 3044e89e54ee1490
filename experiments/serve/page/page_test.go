package page

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/printable"
)

// get returns the response of the handler to a request.
func get(t *testing.T, at string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", at, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestEveryFileIsServedUnderThePolicy(t *testing.T) {
	var page []string // what index.html names
	named := regexp.MustCompile(`(?:href|src)="([^"#]+)"`)
	for _, found := range named.FindAllStringSubmatch(string(read("index.html")), -1) {
		page = append(page, "/"+found[1])
	}
	if len(page) < 4 {
		t.Fatalf("the page names %v alone", page)
	}
	for _, at := range append(page, "/") {
		w := get(t, at)
		h := w.Header()
		if w.Code != http.StatusOK || w.Body.Len() == 0 || h.Get("Content-Type") == "" {
			t.Errorf("%s: %d %v, %d bytes", at, w.Code, h, w.Body.Len())
		}
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cache-Control": "no-cache",
		} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", at, name, got, want)
			}
		}
		again := get(t, at, "If-None-Match", h.Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s again: %d and %d bytes", at, again.Code, again.Body.Len())
		}
	}
	for _, at := range []string{"/page/", "/page/nothing.js", "/page/index.html", "/page/..%2fpage.go", "/index.html"} {
		if w := get(t, at); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", at, w.Code)
		}
	}
}

// The policy forbids these, and a browser that does not know it must find none either.
func TestFilesHaveNoMarkupFromStringsAndNoOtherHosts(t *testing.T) {
	forbidden := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|` +
		`javascript:|localStorage|console\.| on[a-z]+="|style="|<script>|<style>|setAttribute\('style`)
	host := regexp.MustCompile(`(?:https?:)?//[a-z]+\.`)
	for _, name := range names() {
		text := string(read(name))
		if found := forbidden.FindString(text); found != "" {
			t.Errorf("%s has %q", name, found)
		}
		for _, found := range host.FindAllString(text, -1) {
			if found != "http://www." { // the names of XML namespaces
				t.Errorf("%s names the host %s", name, found)
			}
		}
	}
}

func TestFilesAreSmall(t *testing.T) {
	for _, name := range names() {
		lines := strings.Split(string(read(name)), "\n")
		if len(lines) > 300 {
			t.Errorf("%s has %d lines", name, len(lines))
		}
		for i, line := range lines {
			if n := utf8.RuneCountInString(line); n > 120 && path.Ext(name) != ".svg" {
				t.Errorf("%s:%d has %d columns", name, i+1, n)
			}
		}
	}
}

func TestStandaloneIsOneFileWithItsData(t *testing.T) {
	const hostile = `</script><script>alert(1)</script><!-- & é` + "\u009b31m\u2028\u202e\x7f\x1b"
	var b bytes.Buffer
	if err := Standalone(&b, map[string]any{"prediction": map[string]any{"text": hostile}}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "</script>"); n != 2 || strings.Contains(text, "alert(1)</script>") {
		t.Errorf("the text ends an element: %d scripts", n)
	}
	_, data, _ := strings.Cut(text, `id="data">`)
	data, _, _ = strings.Cut(data, "</script>")
	if !printable.IsLine(data) {
		t.Errorf("a terminal obeys characters of %q", data)
	}
	var back struct{ Prediction struct{ Text string } }
	if err := json.Unmarshal([]byte(data), &back); err != nil || back.Prediction.Text != hostile {
		t.Errorf("the data is %q, %v", back.Prediction.Text, err)
	}
	for _, element := range []string{"style", "script type=\"module\""} {
		_, content, _ := strings.Cut(text, "<"+element+">")
		content, _, _ = strings.Cut(content, "</"+strings.Fields(element)[0]+">")
		if len(content) < 1000 || !strings.Contains(text, "'"+hashOf(content)+"'") {
			t.Errorf("the policy lacks the hash of %s, %d bytes", element, len(content))
		}
	}
	if regexp.MustCompile(`(?m)^(import|export) |src=|href=`).MatchString(text) {
		t.Error("it needs another file")
	}
	if err := Standalone(&b, func() {}); err == nil {
		t.Error("what has no JSON is written")
	}
}

// Modules are joined into one, in which a name has one meaning.
func TestModulesHaveDifferentNamesAtTheTop(t *testing.T) {
	declared := regexp.MustCompile(`(?m)^(?:export )?(?:async )?(?:const|let|function|class) ([A-Za-z_]\w*)`)
	at := map[string]string{}
	for _, name := range names() {
		if path.Ext(name) != ".js" || name == "main.js" { // it is not joined
			continue
		}
		for _, found := range declared.FindAllStringSubmatch(string(read(name)), -1) {
			if other, twice := at[found[1]]; twice {
				t.Errorf("%s is declared in %s and in %s", found[1], other, name)
			}
			at[found[1]] = name
		}
	}
	if len(at) < 20 {
		t.Errorf("found %d names", len(at))
	}
}
