package serve

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/predict"
)

// looking trains the small sample with a fusion that has weights, a head with lenses, and windows for long texts.
func looking(t *testing.T) string {
	t.Helper()
	path := sample.Small(t, "")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.NewReplacer("max_length: 64", "max_length: 16", "num_epochs: 15", "num_epochs: 8",
		"    type: classification\n", `    type: classification
    long: windows
    stride: 4
    heads: [{name: team, type: focus, attention_heads: 2, lens_per_head: true, lstm_layers: 0}]
`).Replace(string(text))
	sample.Write(t, path, changed)
	return trainedFrom(t, path, "mails")
}

// explanation is the part of an explanation's JSON that the page is compared with.
type explanation struct {
	Readings []struct{ Windows []predict.Window }
}

// explainedText returns the API's explanation of a text.
func explainedText(t *testing.T, s served, text string) json.RawMessage {
	t.Helper()
	body, err := json.Marshal(map[string]any{"text": text, "offsets": "utf16", "steps": 64})
	if err != nil {
		t.Fatal(err)
	}
	return post[json.RawMessage](t, s, "/v1/explain", string(body))
}

func explainedWindow(t *testing.T, s served, text string) predict.Window {
	t.Helper()
	var x explanation
	if err := json.Unmarshal(explainedText(t, s, text), &x); err != nil || len(x.Readings) == 0 {
		t.Fatal(err)
	}
	return x.Readings[0].Windows[0]
}

// look waits for the explanation of the text that was predicted last.
func (p *tab) look() {
	p.t.Helper()
	p.wait(`document.querySelector('#look .token') !== null &&
		!document.getElementById('look-body').hasAttribute('aria-busy')`)
}

// column returns the cells of a column of the table that is shown, from 0.
func (p *tab) column(n int) []string {
	p.t.Helper()
	return js[[]string](p, `[...document.querySelectorAll('.panel tbody tr')].map((row) =>
		row.children[%s].textContent)`, n)
}

// numbers returns a column as numbers.
func (p *tab) numbers(column int) (all []float64) {
	p.t.Helper()
	for _, cell := range p.column(column) {
		number, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimPrefix(cell, "+"), "−", "-"), 64)
		if err != nil {
			p.t.Fatal(err)
		}
		all = append(all, number)
	}
	return all
}

// near fails the test if the numbers of a column are not those wanted, but for their rounding.
func near[T float32 | float64](p *tab, what string, column int, want []T) {
	p.t.Helper()
	got := p.numbers(column)
	if len(got) != len(want) {
		p.t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Abs(got[i]-float64(want[i])) > 1e-4+1e-3*math.Abs(float64(want[i])) {
			p.t.Errorf("%s of token %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}

// showNumbers opens the table of the panel by keyboard, unless it is open.
func (p *tab) showNumbers() {
	p.t.Helper()
	if js[bool](p, `document.querySelector('.panel table') !== null`) {
		return
	}
	js[any](p, `[...document.querySelectorAll('.panel .disclosure button')].at(-1).focus()`)
	p.press(kb.Enter)
	p.wait(`document.querySelector('.panel table') !== null`)
}

// choose chooses an option of a <select> of the panel, by its label.
func (p *tab) choose(label, value string) {
	p.t.Helper()
	js[any](p, `(() => {
		const all = [...document.querySelectorAll('.look .choice')];
		const select = all.find((one) => one.firstChild.textContent === %s).querySelector('select');
		select.focus();
		select.value = %s;
		select.dispatchEvent(new Event('change'));
	})()`, label, value)
	p.wait(`document.activeElement.closest('.choice')?.firstChild.textContent === %s`, label) // it keeps the focus
}

// to moves to a tab by arrow keys.
func (p *tab) to(name string) {
	p.t.Helper()
	js[any](p, `document.querySelector('[role=tab][aria-selected=true]').focus()`)
	for range 4 {
		if js[string](p, `document.activeElement.textContent`) == name {
			return
		}
		p.press(kb.ArrowRight)
	}
	p.t.Fatalf("no tab %q", name)
}

func TestThePageShowsTokensAndWhatTheyAdd(t *testing.T) {
	s := start(t, options(), looking(t))
	p := open(t, browser(t), s.url, desk)
	const text = "👩‍👩‍👧 the invoice é came_late"
	p.predict(text)
	p.look()
	w := explainedWindow(t, s, text)
	p.showNumbers()
	var tokens, texts []string
	for _, token := range w.Tokens {
		tokens = append(tokens, token.Token)
		texts = append(texts, js[string](p, `%s.slice(%s, %s)`, text, token.Start, token.End))
	}
	if got := p.column(1); !slices.Equal(got, tokens) {
		t.Errorf("tokens %q, want %q", got, tokens)
	}
	if got := p.column(2); !slices.Equal(got, texts) {
		t.Errorf("texts of tokens %q, want %q", got, texts)
	}
	if got := p.text(".panel .token.special"); !strings.Contains(got, "[CLS]") {
		t.Errorf("the first special token is %q", got)
	}
	team := w.Answers["team"]["team"][0]
	near(p, "gradient × input", 3, team.GradientInput)
	checkSigns(p, team.GradientInput)

	p.choose("Method", "integrated_gradients")
	p.wait(`document.querySelector('.signs')?.textContent.includes('without the text')`)
	p.showNumbers()
	near(p, "integrated gradients", 3, team.IntegratedGradients)

	things := w.Answers["things"]["things"]
	p.choose("Answer", fmt.Sprintf("things/things/%d", len(things)-1))
	p.showNumbers()
	near(p, "integrated gradients of a word's tag", 3, things[len(things)-1].IntegratedGradients)
	word := things[len(things)-1]
	called := js[string](p, `document.querySelector('#look .panel select').selectedOptions[0].textContent`)
	if word.Word == nil || !strings.HasPrefix(called, "things: "+word.Label+" – “") {
		t.Errorf("the answer is called %q", called)
	}
}

// checkSigns requires a sign of each token that adds more than a twentieth of what the first one does.
func checkSigns(p *tab, values []float64) {
	p.t.Helper()
	most := 0.0
	for _, v := range values {
		most = max(most, math.Abs(v))
	}
	var want []string
	for _, v := range values {
		switch {
		case v >= 0.05*most:
			want = append(want, "plus")
		case v <= -0.05*most:
			want = append(want, "minus")
		default:
			want = append(want, "")
		}
	}
	got := js[[]string](p, `[...document.querySelectorAll('.panel .token')].map((one) => one.dataset.sign ?? '')`)
	if !slices.Equal(got, want) {
		p.t.Errorf("the signs are %q, want %q", got, want)
	}
}

func TestThePageShowsAttentionFusionAndLensesByKeyboard(t *testing.T) {
	s := start(t, options(), looking(t))
	p := open(t, browser(t), s.url, desk)
	const text = "the invoice came_late"
	p.predict(text)
	p.look()
	w := explainedWindow(t, s, text)

	p.to("Attention")
	p.wait(`document.querySelector('.map canvas') !== null`)
	p.choose("Head", "1")
	js[any](p, `document.querySelector('.detail [aria-pressed=true]').focus()`)
	p.press(kb.ArrowRight)
	p.press(kb.ArrowRight)
	if got := js[string](p, `document.activeElement.dataset.i`); got != "2" {
		t.Fatalf("two arrow keys go to token %q", got)
	}
	p.showNumbers()
	near(p, "attention", 3, w.Attention[0][1][2])
	p.wait(`(() => {
		const c = document.querySelector('canvas');
		const {data} = c.getContext('2d').getImageData(0, 0, c.width, c.height);
		return c.width === %s && new Set(data).size > 10;
	})()`, len(w.Tokens))

	p.to("Fusion")
	p.showNumbers()
	near(p, "fusion weight of team", 3, w.Fusion["team"])
	near(p, "fusion weight of things", 4, w.Fusion["things"])

	p.to("Lens")
	lens := w.Lenses["team"]["team"]
	p.choose("Lens", "1")
	js[any](p, `document.querySelector('.lens [aria-pressed=true]').focus()`)
	p.press(kb.End)
	last := len(w.Tokens) - 1
	p.showNumbers()
	near(p, "centre", 4, lens.Centre[1])
	near(p, "aperture", 5, lens.Aperture[1])
	var gaussian []float64
	for j := range w.Tokens {
		distance := float64(j)/float64(last) - float64(lens.Centre[1][last])
		gaussian = append(gaussian, math.Exp(-distance*distance/(2*math.Pow(float64(lens.Aperture[1][last]), 2))))
	}
	near(p, "lens", 3, gaussian)
	p.wait(`document.querySelectorAll('.lens circle').length === %s`, len(w.Tokens))
}

// screens are those that pages are tested on: wide and narrow, light and dark.
var screens = []screen{{1200, "light"}, {1200, "dark"}, {360, "light"}, {360, "dark"}}

// axe returns axe-core, which checks contrast, names and roles. JENGA_AXE names the file axe.min.js of npm's package
// axe-core; .ci/run has the version.
func axe(t *testing.T) string {
	t.Helper()
	path := os.Getenv("JENGA_AXE")
	if path == "" {
		const message = "JENGA_AXE does not name axe.min.js: the page is not checked by axe-core"
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(script)
}

// accessible fails the test if axe finds something on the page as it is, or if it is wider than the screen. It leaves a
// picture of the page in the folder that JENGA_SCREENSHOTS names.
func (p *tab) accessible(axe, where string) {
	p.t.Helper()
	js[any](p, axe+"\nnull")
	for _, found := range js[[]string](p, `axe.run(document, {resultTypes: ['violations']}).then(({violations}) =>
		violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html + ' ' + n.failureSummary).join('; ')))`) {
		p.t.Errorf("%s: %s", where, found)
	}
	if wide := js[int](p, `document.documentElement.scrollWidth - document.documentElement.clientWidth`); wide > 0 {
		p.t.Errorf("%s: the page is %d pixels wider than the screen", where, wide)
	}
	if folder := os.Getenv("JENGA_SCREENSHOTS"); folder != "" {
		picture, err := chromedp.Run(p.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			p.t.Fatal(err)
		}
		name := strings.ReplaceAll(p.t.Name()+" "+where, "/", " ") + ".png"
		if err := os.WriteFile(filepath.Join(folder, name), picture, 0o644); err != nil {
			p.t.Fatal(err)
		}
	}
}

func TestThePageIsAccessibleOnEveryScreen(t *testing.T) {
	script := axe(t)
	s := start(t, options(), looking(t))
	b := browser(t)
	for _, screen := range screens {
		t.Run(fmt.Sprint(screen), func(t *testing.T) {
			p := open(t, b, s.url, screen)
			p.wait(`document.getElementById('served').textContent !== ''`)
			p.accessible(script, "before an answer")
			p.predict("the invoice came_late, " + strings.Repeat("a_long_word", 20) + " a menu 🙂 hangs")
			p.look()
			p.showNumbers()
			p.accessible(script, "with answers and tokens")
			for _, name := range []string{"Attention", "Fusion", "Lens"} {
				p.to(name)
				p.wait(`document.querySelector('.panel .token') !== null`)
				p.showNumbers()
				p.accessible(script, name)
			}
			js[any](p, `document.getElementById('text').value = ''`)
			js[any](p, `document.getElementById('text').focus()`)
			p.press(kb.Enter, chromedp.ModifierCtrl)
			p.wait(`!document.getElementById('text-error').hidden`)
			p.accessible(script, "with an error")
		})
	}
}
