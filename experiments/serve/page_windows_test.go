package serve

import (
	"bytes"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/serve/page"
)

func TestThePageShowsTheWindowsOfALongText(t *testing.T) {
	s := start(t, options(), looking(t))
	p := open(t, browser(t), s.url, desk)
	p.predict(strings.Repeat("the invoice came_late ", 6))
	p.look()
	first := p.text(".panel .tokens")
	if got := p.text("#notices"); !strings.Contains(got, " windows.") {
		t.Errorf("the notice is %q", got)
	}
	p.choose("Window", "1")
	p.wait(`document.querySelector('.panel .tokens').textContent !== %s`, first)
	p.to("Attention")
	p.wait(`document.querySelector('.map canvas') !== null`)
}

func TestThePageIsAsWideWithTextsFromRightToLeft(t *testing.T) {
	s := start(t, options(), looking(t))
	p := open(t, browser(t), s.url, screen{360, "light"})
	p.predict("لقد وصلت the invoice came_late متأخرة")
	p.look()
	for selector, want := range map[string]string{
		"#text": "rtl", `[data-task="things"] .text`: "rtl", ".panel .tokens": "rtl", ".panel .token bdi": "ltr",
		`[data-task="things"] mark`: "ltr", "h2": "ltr",
	} {
		if got := js[string](p, `getComputedStyle(document.querySelector(%s)).direction`, selector); got != want {
			t.Errorf("%s is %s, want %s", selector, got, want)
		}
	}
	p.to("Lens")
	if got := js[bool](p, `document.documentElement.scrollWidth > innerWidth`); got {
		t.Error("the page is wider than the screen")
	}
}

// An explanation that fails is a line, and the answers are there.
func TestThePageAnswersWhereNothingIsExplained(t *testing.T) {
	o := options()
	o.MaxExplained = 4
	p := open(t, browser(t), start(t, o, trained(t, "mails")).url, desk)
	p.predict("the invoice came_late and the window hangs")
	p.wait(`document.querySelector('#look .notice') !== null`)
	if got := p.text("#look .notice"); !strings.Contains(got, "want at most 4") || p.text(".card") == "" {
		t.Errorf("the notice is %q", got)
	}
	p.forgive("error: Failed to load resource")

	js[any](p, `document.getElementById('look-toggle').click()`)
	requests := func() int {
		p.mu.Lock()
		defer p.mu.Unlock()
		return len(p.hosts)
	}
	before := requests()
	p.predict("the invoice")
	if n := requests() - before; n != 1 {
		t.Errorf("%d requests for a text with the section closed, want that for its answers alone", n)
	}
}

func TestAStandalonePageShowsAnExplanation(t *testing.T) {
	s := start(t, options(), looking(t))
	const text = "the invoice </script><b>came_late</b>"
	var b bytes.Buffer
	if err := page.Standalone(&b, json.RawMessage(explainedText(t, s, text))); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "explanation.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := open(t, browser(t), (&url.URL{Scheme: "file", Path: path}).String(), screen{360, "dark"})
	p.wait(`document.querySelector('.panel .token') !== null`)
	if got := p.text("main .text"); got != text || js[int](p, `document.querySelectorAll('main b').length`) != 0 {
		t.Errorf("the text is %q, want %q", got, text)
	}
	p.choose("Method", "integrated_gradients")
	p.wait(`document.querySelector('.signs')?.textContent.includes('without the text')`)
	for _, name := range []string{"Attention", "Fusion", "Lens"} {
		p.to(name)
		p.wait(`document.querySelector('.panel .token') !== null`)
	}
	if os.Getenv("JENGA_AXE") != "" {
		p.accessible(axe(t), "a page of its own")
	}
}
