package hub

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
)

// trick sends the response to some requests instead of the server.
type trick func(w http.ResponseWriter, r *http.Request) bool

// of plays a trick on requests of one method and path only.
func of(method, path string, play trick) trick {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return r.Method == method && strings.HasSuffix(r.URL.Path, path) && play(w, r)
	}
}

// times plays a trick n times.
func times(n int, play trick) trick {
	var mu sync.Mutex
	return func(w http.ResponseWriter, r *http.Request) bool {
		mu.Lock()
		defer mu.Unlock()
		if n == 0 {
			return false
		}
		n--
		return play(w, r)
	}
}

func status(code int, header ...string) trick {
	return func(w http.ResponseWriter, r *http.Request) bool {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(code)
		return true
	}
}

// cut sends the first half of a text, of the length of the weights, and closes the connection.
func cut(text string) trick {
	return func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", fmt.Sprint(len(weights)))
		w.Write([]byte(text[:len(text)/2]))
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// body sends a text with a header.
func body(code int, text string, header ...string) trick {
	return func(w http.ResponseWriter, r *http.Request) bool {
		status(code, header...)(w, r)
		w.Write([]byte(text))
		return true
	}
}

// other is as long as the weights.
var other = strings.Repeat("weighty ", 1000)

// first plays the first of some tricks that sends a response.
func first(tricks ...trick) trick {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return slices.ContainsFunc(tricks, func(play trick) bool { return play(w, r) })
	}
}

// trouble is what a server does before it works.
type trouble struct {
	name   string
	play   trick
	pauses []time.Duration // before the request is repeated
	gets   int             // requests for the weights to the storage
}

// passingTrouble returns trouble that a pull gets over.
func passingTrouble() []trouble {
	weightsOf := func(tricks ...trick) trick { return of("GET", "/model.safetensors", first(tricks...)) }
	longer := fmt.Sprintf("bytes %d-%d/%d", len(weights)/2, len(weights)-1, len(weights)+1000)
	const second = time.Second
	return []trouble{
		{"a cut", weightsOf(times(1, cut(weights))), []time.Duration{second}, 2},
		{"a cut after other content", weightsOf(times(1, cut(other))), []time.Duration{second}, 3},
		{"429 with Retry-After", times(1, status(429, "Retry-After", "7")), []time.Duration{7 * second}, 1},
		{"429 with a shorter Retry-After than ours", times(2, status(429, "Retry-After", "0")),
			[]time.Duration{second, 2 * second}, 1},
		{"5xx of all kinds of requests", first(times(1, status(500)), of("HEAD", "/vocab.txt", times(1, status(502))),
			weightsOf(times(2, status(503)))), []time.Duration{second, second, second, 2 * second}, 3},
		{"an address that expired", weightsOf(times(1, status(403))), []time.Duration{second}, 2},
		{"a server that ignores ranges", weightsOf(times(1, cut(weights)), body(200, weights)),
			[]time.Duration{second}, 2},
		{"a range of another length", weightsOf(times(1, cut(weights)), times(1, body(206, "x",
			"Content-Range", longer))), []time.Duration{second, 2 * second}, 3},
		{"a range that is not there", weightsOf(times(1, cut(weights)), times(1, status(416))),
			[]time.Duration{second, 2 * second}, 3},
		{"redirects within the hub", func(w http.ResponseWriter, r *http.Request) bool {
			moves := strings.HasPrefix(r.URL.Path, "/api/models/org/small/") && r.URL.RawQuery == ""
			if moves {
				http.Redirect(w, r, r.URL.EscapedPath()+"?moved", http.StatusTemporaryRedirect)
			}
			return moves
		}, nil, 1},
	}
}

// After trouble that passes the cache is as after any other pull.
func TestPullGetsOverTrouble(t *testing.T) {
	for _, c := range passingTrouble() {
		t.Run(c.name, func(t *testing.T) {
			x := newTest(t, small())
			x.server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasSuffix(r.URL.Path, hubtest.Commit+"/model.safetensors") {
					return false // the hub redirects to the storage
				}
				return c.play(w, r)
			}
			if _, err := x.pull(t, "org/small"); err != nil {
				t.Fatal(err)
			}
			x.wantStored(t, usual, "main")
			if !slices.Equal(x.pauses, c.pauses) {
				t.Errorf("pauses %v, want %v; notes %q", x.pauses, c.pauses, x.notes)
			}
			gets := 0
			for _, request := range x.requests() {
				if request == "GET /model.safetensors" {
					gets++
				}
			}
			if gets != c.gets {
				t.Errorf("%d requests for the weights, want %d", gets, c.gets)
			}
		})
	}
}
