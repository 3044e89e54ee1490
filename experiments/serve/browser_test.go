package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// browsers are the commands of Chromium that tests look for.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "headless-shell"}

// chromium is the browser of all tests, once one needs it.
var chromium struct {
	start sync.Once
	ctx   context.Context
	end   func()
	err   error
}

func TestMain(m *testing.M) {
	os.Exit(shared.RunTests(m, func() {
		if chromium.end != nil {
			chromium.end()
		}
	}))
}

// browser returns Chromium. Without one the test is skipped; in CI it fails.
func browser(t *testing.T) context.Context {
	t.Helper()
	if testing.Short() {
		t.Skip("the page is tested without -short")
	}
	at := slices.IndexFunc(browsers, func(name string) bool { _, err := exec.LookPath(name); return err == nil })
	if at < 0 {
		message := "no Chromium (" + strings.Join(browsers, ", ") + "): the page is not tested"
		if os.Getenv("CI") != "" {
			t.Fatal(message)
		}
		t.Skip(message)
	}
	chromium.start.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browsers[at]),
			chromedp.Flag("lang", "en-US"))
		if os.Getuid() == 0 {
			options = append(options, chromedp.NoSandbox) // which Chromium does not start for root
		}
		ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
		chromium.ctx, _ = chromedp.NewContext(ctx)
		chromium.end = func() { chromedp.Cancel(chromium.ctx); cancel() }
		chromium.err = chromedp.Do(chromium.ctx)
	})
	if chromium.err != nil {
		t.Fatal(chromium.err)
	}
	return chromium.ctx
}

// tab is a page in a browser.
type tab struct {
	t   *testing.T
	ctx context.Context

	mu       sync.Mutex
	problems []string // of the console, and exceptions
	hosts    []string // that requests were sent to
}

// screen is how a page is seen.
type screen struct {
	width  int64  // in CSS pixels
	scheme string // light or dark
}

var desk = screen{1200, "light"}

// open opens a page in a new tab. Errors in its console and requests to other hosts fail the test at its end.
func open(t *testing.T, browser context.Context, address string, s screen) *tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(browser)
	t.Cleanup(cancel)
	ctx, cancelTime := context.WithTimeout(ctx, 30*time.Second)
	t.Cleanup(cancelTime)
	p := &tab{t: t, ctx: ctx}
	if err := chromedp.Listen(ctx, p.note); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.Navigate("about:blank"))
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.scheme}}
	media := emulation.SetEmulatedMediaParams{Features: features}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		t.Fatal(err)
	}
	p.do(chromedp.EmulateViewport(s.width, 900), chromedp.Navigate(address))
	t.Cleanup(func() { p.check(address) })
	return p
}

// note keeps what the page does.
func (p *tab) note(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text = e.ExceptionDetails.Exception.Description
		}
		p.problems = append(p.problems, "exception: "+text)
	case *runtime.EventConsoleAPICalled:
		p.problems = append(p.problems, fmt.Sprintf("console: %s", e.Type))
	case *log.EventEntryAdded:
		p.problems = append(p.problems, e.Entry.Level.String()+": "+e.Entry.Text+" "+e.Entry.URL)
	case *network.EventRequestWillBeSent:
		if at, err := url.Parse(e.Request.URL); err == nil && at.Host != "" {
			p.hosts = append(p.hosts, at.Host)
		}
	}
}

// check fails the test if there were problems, or requests to other hosts than that of the page's address.
func (p *tab) check(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.problems) > 0 {
		p.t.Errorf("the browser reports %q", p.problems)
	}
	at, err := url.Parse(address)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, host := range p.hosts {
		if host != at.Host {
			p.t.Errorf("a request to %s", host)
		}
	}
}

// forgive forgets the problems that begin with a prefix, which a test provokes.
func (p *tab) forgive(prefix string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.problems = slices.DeleteFunc(p.problems, func(one string) bool { return strings.HasPrefix(one, prefix) })
}

func (p *tab) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// js evaluates an expression in the page; arguments replace its verbs, %s, as JSON. Promises are awaited.
func js[T any](p *tab, expression string, arguments ...any) T {
	p.t.Helper()
	var texts []any
	for _, a := range arguments {
		text, err := json.Marshal(a)
		if err != nil {
			p.t.Fatal(err)
		}
		texts = append(texts, string(text))
	}
	if len(texts) > 0 {
		expression = fmt.Sprintf(expression, texts...)
	}
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%.200s: %v", expression, err)
	}
	return value
}

// wait waits until an expression is true.
func (p *tab) wait(expression string, arguments ...any) {
	p.t.Helper()
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if js[bool](p, "Boolean("+expression+")", arguments...) {
			return
		}
	}
	p.t.Fatalf("%s %q: never true; the page is\n%s", expression, arguments, js[string](p, `document.body.innerText`))
}

// press presses a key, as kb has it, with modifiers.
func (p *tab) press(key string, modifiers ...chromedp.Modifier) {
	p.t.Helper()
	p.do(chromedp.KeyEvent(key, chromedp.KeyModifiers(modifiers...)))
}

// insert types a text where the focus is, as an input method does.
func (p *tab) insert(text string) {
	p.t.Helper()
	if _, err := chromedp.Call(p.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		p.t.Fatal(err)
	}
}

// predict replaces the text, submits it by keyboard and waits for the answers of that text, which read is true of.
func (p *tab) predict(text string) {
	p.t.Helper()
	p.wait(`document.getElementById('served').textContent !== ''`)
	js[any](p, `document.getElementById('cards').replaceChildren()`)
	js[any](p, `document.getElementById('text').focus() ?? document.getElementById('text').select()`)
	p.insert(text)
	p.press(kb.Enter, chromedp.ModifierCtrl)
	p.wait(`document.querySelector('.card') !== null`)
}

// text returns the text of an element, "" if there is none.
func (p *tab) text(selector string) string {
	p.t.Helper()
	return js[string](p, `document.querySelector(%s)?.textContent ?? ''`, selector)
}
