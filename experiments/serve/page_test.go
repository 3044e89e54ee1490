package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/jenga-nlp/jenga/corpus"
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
			Team outputs.LabelJSON
		}
		Things struct {
			Things struct{ Spans []outputs.TagSpanJSON }
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
		prediction := kind.Sample().Right(kind.Sample().Judged(4, len(in.Example.Words), set), set)
		answer := kind.JSON(prediction, in)
		if got := view(answer, in.Example); strings.HasPrefix(got, "JSON") || len(got) < 3 {
			t.Errorf("%s is shown as %q", kind.Name(), got)
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
		s, err := New([]string{folder}, options())
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
