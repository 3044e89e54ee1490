package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/serve/page"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
)

func TestThePageNeedsNoTokenAndMayBeLeftAway(t *testing.T) {
	folder := trained(t, "mails")
	o := options()
	o.Token = "secret"
	s := start(t, o, folder)
	for _, path := range []string{"/", "/page/main.js"} {
		response, text := s.send(t, "GET", path, "")
		if response.StatusCode != http.StatusOK || response.Header.Get("Content-Security-Policy") == "" || text == "" {
			t.Errorf("%s: %s, %v", path, response.Status, response.Header)
		}
	}
	if response, text := s.send(t, "GET", "/v1/tasks", ""); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the tasks: %s %s", response.Status, text)
	}
	o.NoPage = true
	s = start(t, o, folder)
	for _, path := range []string{"/", "/page/main.js"} {
		if response, _ := s.send(t, "GET", path, ""); response.StatusCode != http.StatusNotFound {
			t.Errorf("%s without a page: %s", path, response.Status)
		}
	}
}

// marked is an answer with spans.
type marked struct {
	Tasks struct {
		Team struct {
			Team outputs.LabelAnswer
		}
		Things struct {
			Things struct{ Spans []outputs.TagSpanAnswer }
		}
	}
}

// answers returns what the API answers a text.
func answers(t *testing.T, s served, text string) (answer marked) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"text": text, "top": 5, "offsets": "utf16"})
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(post[predicted](t, s, "/v1/predict", string(body)).Predictions[0], &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestThePageAnswersByKeyboardAloneAsTheAPIDoes(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	p := open(t, browser(t), s.url, desk)
	p.wait(`document.activeElement.id === 'text'`) // without a click
	const text = "the invoice came_late"
	for _, key := range text {
		p.press(string(key))
	}
	p.press(kb.Enter, chromedp.ModifierCtrl)
	p.wait(`document.querySelectorAll('.card').length === 2`)

	want := answers(t, s, text).Tasks.Team.Team
	if got := p.text(`[data-task="team"] .verdict`); got != want.Label {
		t.Errorf("team is %q, want %q", got, want.Label)
	}
	var bars []string
	for _, top := range want.Top {
		digits := 1
		if top.Probability < 0.1 {
			digits = 2
		}
		bars = append(bars, fmt.Sprintf("%s%.*f %%", top.Label, digits, 100*float64(top.Probability)))
	}
	got := js[[]string](p, `[...document.querySelectorAll('[data-task="team"] li')].map((li) => li.textContent)`)
	if !slices.Equal(got, bars) || len(got) != 2 {
		t.Errorf("the bars are %q, want %q", got, bars)
	}
	said := p.text("#status")
	if !strings.HasPrefix(said, "2 answers in ") || !strings.Contains(said, "team: "+want.Label) {
		t.Errorf("screen readers hear %q", said)
	}

	// on by Tab and Enter: the button, the text again, another answer
	p.press(kb.Tab)
	if got := js[string](p, `document.activeElement.id`); got != "send" {
		t.Errorf("Tab goes on to %q, want the button", got)
	}
	p.press(kb.Tab, chromedp.ModifierShift)
	js[any](p, `document.activeElement.select()`)
	p.insert("a menu hangs")
	p.press(kb.Tab)
	p.press(kb.Enter)
	label := answers(t, s, "a menu hangs").Tasks.Team.Team.Label
	p.wait(`document.querySelector('[data-task="team"] .verdict').textContent === %s`, label)
}

func TestMarksAreAtTheRightCharacters(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	p := open(t, browser(t), s.url, desk)
	for _, text := range []string{
		"the invoice came_late", "👩‍👩‍👧 the invoice 🙂 came_late 🇰🇪", "لقد وصلت the invoice came_late متأخرة",
		"החשבון invoice 👍 came_late", "请看 the invoice came_late。付款", "e\u0301 the invoice\ncame_late",
		`<b>the</b> invoice <img src=x onerror=alert(1)> came_late`,
	} {
		p.predict(text)
		units := utf16.Encode([]rune(text))
		var want []string
		for _, span := range answers(t, s, text).Tasks.Things.Things.Spans {
			part := string(utf16.Decode(units[span.Start:span.End]))
			if part != span.Text {
				t.Errorf("%q: the API's span is %q, its text %q", text, part, span.Text)
			}
			want = append(want, part+"|"+span.Label)
		}
		if len(want) == 0 {
			t.Errorf("%q has no span", text)
		}
		got := js[[]string](p, `[...document.querySelectorAll('[data-task="things"] mark')].map((m) =>
			m.querySelector('.marked').textContent + '|' + m.querySelector('.name').textContent)`)
		if !slices.Equal(got, want) {
			t.Errorf("%q: marked are %q, want %q", text, got, want)
		}
		whole := js[string](p, `(() => {
			const all = document.querySelector('[data-task="things"] .text').cloneNode(true);
			all.querySelectorAll('.name').forEach((name) => name.remove());
			return all.textContent;
		})()`)
		if whole != text {
			t.Errorf("the text is shown as %q, want %q", whole, text)
		}
		if got := js[int](p, `document.querySelectorAll('main img, main script, main b').length`); got != 0 {
			t.Errorf("%q made %d elements", text, got)
		}
	}
}

func TestEveryKindOfAnswersHasAView(t *testing.T) {
	s := start(t, options(), trained(t, "mails"))
	p := open(t, browser(t), s.url, desk)
	set := corpus.NewLabels([]string{"O", "B-x", "I-x"})
	view := func(answer any, example *corpus.Example) string {
		return js[string](p, `import(new URL('page/kinds.js', location)).then(({answerView}) => {
			const {body, spoken} = answerView(%s, {text: %s, pair: %s});
			const all = document.createElement('div');
			all.append(...[body].flat(9).filter(Boolean));
			return (all.querySelector('.json') ? 'JSON ' : '') + all.textContent + '; ' + spoken;
		})`, answer, example.Text, example.Pair)
	}
	for _, kind := range outputs.Kinds() {
		in := parttest.Input(t, 4)
		in.Labels, in.Top, in.Unit, in.SplitWords = set, 3, corpus.UTF16, true
		prediction, _ := parttest.Predictions(kind, 4, len(in.Example.Words))
		answer := kind.JSON(prediction, in)
		if got := view(answer, in.Example); strings.HasPrefix(got, "JSON") || len(got) < 3 {
			t.Errorf("%s is shown as %q", kind.Name, got)
		}
	}
	for answer, want := range map[string]string{
		`{"label": "a", "probability": 0.4, "abstained": true, "set": ["a", "b"]}`: "no answera40.0 %Set: a, b; " +
			"no answer, likeliest a, 40.0 %",
		`{"value": 2, "alarm": false, "unit": "km"}`:         "JSON 2no alarm{\n  \"unit\": \"km\"\n}; 2 no alarm",
		`{"label": "a", "probability": null, "note": "<i>"}`: "JSON aa–{\n  \"note\": \"<i>\"\n}; a, –",
	} {
		if got := view(json.RawMessage(answer), &corpus.Example{}); got != want {
			t.Errorf("%s is shown as %q, want %q", answer, got, want)
		}
	}
	other := map[string]any{"label": []int{1}, "probability": "<b>"}
	if got := view(other, &corpus.Example{}); !strings.HasPrefix(got, "JSON") || !strings.Contains(got, `"<b>"`) {
		t.Errorf("an answer of another module is shown as %q", got)
	}
}

func TestThePageShowsFailuresBesideTheText(t *testing.T) {
	folder := trained(t, "mails")
	b := browser(t)
	for _, test := range []struct {
		name   string
		change func(o *Options)
		text   string
		want   string
	}{
		{"no text", func(*Options) {}, "  ", "Write a text first."},
		{"busy", func(o *Options) { o.MaxBytes = 20 }, "the invoice",
			"The server is busy. Too many texts wait for an answer. Try again in 1 s."},
		{"late", func(o *Options) { o.Timeout = time.Nanosecond }, "the invoice",
			"No answer in 1ns. Try again in 1 s."},
		{"too long", func(o *Options) { o.MaxBody = 200 }, strings.Repeat("the invoice ", 20),
			"The body has more than 200 bytes."},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := options()
			test.change(&o)
			p := open(t, b, start(t, o, folder).url, desk)
			p.fails(test.text, test.want)
		})
	}
	t.Run("the server is gone", func(t *testing.T) {
		s, err := New(t.Context(), []string{folder}, options())
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		web := httptest.NewServer(s.Handler())
		p := open(t, b, web.URL, desk)
		p.wait(`document.activeElement.id === 'text'`)
		web.Close()
		p.fails("the invoice", "The server does not answer. Is it still running?")
	})
}

// fails submits a text, which is answered by an error.
func (p *tab) fails(text, want string) {
	p.t.Helper()
	p.wait(`document.activeElement.id === 'text'`)
	p.insert(text)
	p.press(kb.Enter, chromedp.ModifierCtrl)
	p.wait(`!document.getElementById('text-error').hidden`)
	if got := p.text("#text-error"); got != want || p.text(".card") != "" {
		p.t.Errorf("the error is %q, want %q, and no answers", got, want)
	}
	if !js[bool](p, `document.getElementById('text').matches('[aria-invalid=true]:focus')`) {
		p.t.Error("the text is not marked as invalid, or has lost the focus")
	}
	p.forgive("error: Failed to load resource") // the browser's line for any status of this kind
}

func TestThePageAsksForTheToken(t *testing.T) {
	o := options()
	o.Token = "secret"
	p := open(t, browser(t), start(t, o, trained(t, "mails")).url, desk)
	p.wait(`document.activeElement.id === 'token'`)
	p.insert("wrong")
	p.press(kb.Enter)
	p.wait(`!document.getElementById('token-error').hidden`)
	js[any](p, `document.getElementById('token').select()`)
	p.insert("secret")
	p.press(kb.Enter)
	p.wait(`document.activeElement.id === 'text' && document.getElementById('token-field').hidden`)
	p.predict("the invoice came_late")
	if got := js[int](p, `localStorage.length + document.cookie.length`); got != 0 {
		t.Error("the browser keeps something beyond the tab")
	}
	if got := js[string](p, `Object.keys(sessionStorage).join()`); got != "jenga.token" {
		t.Errorf("the tab keeps %s, want the token alone", got)
	}
	p.forgive("error: Failed to load resource")
}

// Requests for integrated gradients and attention are expensive: what is under way is not asked for again.
func TestThePageAsksForEachPartOnce(t *testing.T) {
	s, err := New(t.Context(), []string{looking(t)}, options())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	handler, goes := s.Handler(), make(chan struct{})
	var gradients, attention atomic.Int32 // requests
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		for part, count := range map[string]*atomic.Int32{`"steps":64`: &gradients, `"attention":true`: &attention} {
			if bytes.Contains(body, []byte(part)) {
				count.Add(1)
				<-goes
			}
		}
		handler.ServeHTTP(w, r)
	}))
	defer web.Close()
	p := open(t, browser(t), web.URL, desk)
	p.predict("the invoice came_late")
	p.look()
	for range 3 {
		p.choose("Method", "integrated_gradients")
		p.wait(`document.querySelector('.panel').textContent.includes('Computing')`)
		p.choose("Method", "gradient_input")
		p.to("Attention")
		p.wait(`document.querySelector('.panel').textContent.includes('Loading')`)
		p.to("Tokens")
	}
	p.to("Attention")
	close(goes)
	p.wait(`document.querySelector('.map canvas') !== null`)
	p.to("Tokens")
	p.choose("Method", "integrated_gradients")
	p.wait(`document.querySelector('.signs')?.textContent.includes('without the text')`)
	p.choose("Method", "gradient_input") // which requests for other parts leave as it is
	p.wait(`document.querySelector('.signs') !== null`)
	if g, a := gradients.Load(), attention.Load(); g != 1 || a != 1 {
		t.Errorf("%d requests for integrated gradients and %d for attention, want one of each", g, a)
	}
}

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
