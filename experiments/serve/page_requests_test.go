package serve

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
)

// Requests for integrated gradients and attention are expensive: what is under way is not asked for again.
func TestThePageAsksForEachPartOnce(t *testing.T) {
	s, err := New([]string{looking(t)}, options())
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
