package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

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
