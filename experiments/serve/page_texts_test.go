package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/serve/page"
)

func TestThePageShowsTheWindowsOfALongText(t *testing.T) {
	s := start(t, options(), looking(t))
	p := open(t, browser(t), s.url, desk)
	p.predict(strings.Repeat("the invoice came_late, or the menu hangs ", 4))
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
		"h2": "ltr",
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

// pairs trains tasks that read texts, pairs, and questions with their contexts.
func pairs(t *testing.T) string {
	var moods, alike, who strings.Builder
	for i := range 12 {
		fmt.Fprintf(&moods, `{"text": "day number %d", "label": "%s"}`+"\n", i, []string{"fine", "bad"}[i%2])
		fmt.Fprintf(&alike, `{"text": "day %d", "pair": "night %d", "value": %d}`+"\n", i, i%5, i%2)
		fmt.Fprintf(&who, `{"question": "who came %d?", "context": "it was the cook", "answers": ["cook"]}`+"\n", i)
	}
	sample.Tasks(t, `  - {name: mood, type: classification, data: {path: mood.jsonl, split: {dev: 0.2}}}
  - {name: alike, type: similarity, data: {path: alike.jsonl, split: {dev: 0.2}}}
  - {name: who, type: question_answering, data: {path: who.jsonl, split: {dev: 0.2}}}
training: {num_epochs: 1, batch_size: 4}
`, map[string]string{"mood.jsonl": moods.String(), "alike.jsonl": alike.String(), "who.jsonl": who.String()})
	return trainedFrom(t, "exp.yaml", "days")
}

func TestThePageHasASecondFieldForPairs(t *testing.T) {
	p := open(t, browser(t), start(t, options(), pairs(t), trained(t, "mails")).url, screen{360, "light"})
	cards := `[...document.querySelectorAll('.card')].map((card) => card.dataset.task).sort().join()`
	p.predict("who came?")
	p.wait(cards + ` === 'mood'`)
	if got := p.text("#notices"); !strings.Contains(got, "No answer of alike, who: a second text is needed.") {
		t.Errorf("the notice is %q", got)
	}
	if got := p.text("#pair-hint"); !strings.Contains(got, "Needed by alike, who") {
		t.Errorf("the hint is %q", got)
	}
	js[any](p, `document.getElementById('pair').focus()`)
	p.insert("🙂 it was the cook")
	p.press(kb.Enter, chromedp.ModifierCtrl)
	p.wait(cards + ` === 'alike,mood,who'`)
	p.look()
	if got := js[int](p, `document.querySelectorAll('#look .choice option').length`); got < 4 {
		t.Errorf("%d options: pairs are read together and separately", got)
	}

	js[any](p, `document.getElementById('run').value = 'mails'`)
	js[any](p, `document.getElementById('run').dispatchEvent(new Event('change'))`)
	p.wait(`document.getElementById('pair-field').hidden && document.getElementById('answers').hidden`)
	p.predict("the invoice came_late")
	p.wait(cards + ` === 'team,things'`)
}
