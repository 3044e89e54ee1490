package hub

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
	"github.com/jenga-nlp/jenga/internal/hubcache"
)

// failure is what a server does that makes a pull fail.
type failure struct {
	name  string
	play  trick
	want  string // the error
	keeps int    // bytes of the weights
}

// apiFailures are those of the first request.
func apiFailures() []failure {
	const api = "http://HUB/api/models/org/small/revision/main"
	return []failure{
		{"5xx", status(503), "HUB: status 503 (Service Unavailable) (6 times)", 0},
		{"a long Retry-After", status(429, "Retry-After", "3600"),
			"HUB: status 429 (Too Many Requests); the server wants no request for 1h0m0s", 0},
		{"a message of the hub", status(400, "X-Error-Message", "no\u0085way"),
			`HUB: status 400 (Bad Request): "no\u0085way"`, 0},
		{"no JSON", body(200, "<html>"),
			api + ":1: not JSON: invalid character '<' looking for beginning of value", 0},
		{"endless JSON", func(w http.ResponseWriter, _ *http.Request) bool {
			for w.Header().Set("A", "b"); ; {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return true
				}
			}
		}, api + ": more than 16777216 bytes, which is the most that is read", 0},
		{"a commit that is none", body(200, `{"sha": "../../x", "siblings": []}`),
			`HUB: the commit of org/small is "../../x"; want a hash of 40 digits`, 0},
		{"an API elsewhere", func(w http.ResponseWriter, r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, "/api") && status(302, "Location", "http://example.com/x")(w, r)
		}, `HUB: status 302 (Found), a redirect to "http://example.com/x"`, 0},
		{"endless redirects", func(w http.ResponseWriter, r *http.Request) bool {
			return status(302, "Location", r.URL.Path)(w, r)
		}, "HUB: more than 10 redirects", 0},
		{"a redirect to a file", status(302, "Location", "file:///etc/passwd"),
			`HUB redirects to "file:///etc/passwd"; want an address of https or http`, 0},
		{"a redirect to nowhere", status(302), `HUB: status 302 (Found), a redirect to ""`, 0},
	}
}

// statFailures are those of the request for an etag and a length.
func statFailures() []failure {
	head := func(header ...string) trick { return of("HEAD", "/config.json", status(200, header...)) }
	return []failure{
		{"no etag", head(), `config.json: "" is not an etag that can name a file; want letters and digits`, 0},
		{"an etag that is a path", head("ETag", `"../../x"`),
			`config.json: "../../x" is not an etag that can name a file; want letters and digits`, 0},
		{"an etag that is a folder", head("ETag", `".."`),
			`config.json: ".." is not an etag that can name a file; want letters and digits`, 0},
		{"no length", of("HEAD", "/config.json", func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("ETag", `"a"`)
			http.NewResponseController(w).Flush()
			return true
		}), "config.json: HUB states no length of the file", 0},
		{"a config of gigabytes", head("ETag", `"a"`, "X-Linked-Size", "5000000000"),
			"config.json: 5000000000 bytes; such a file has at most 67108864", 0},
	}
}

// weightsFailures are those of the storage. All their errors begin with the name of the weights.
func weightsFailures() []failure {
	return []failure{
		{"a longer file", body(200, weights+"x", "Content-Length", "8001"),
			"model.safetensors: STORAGE: the response has 8001 bytes; want 8000, the length that the hub states", 0},
		{"a shorter file", body(200, weights[1:], "Content-Length", "7999"),
			"model.safetensors: STORAGE: the response has 7999 bytes; want 8000, the length that the hub states", 0},
		{"a longer file of no stated length", func(w http.ResponseWriter, r *http.Request) bool {
			w.Write([]byte(weights))
			w.Write([]byte(weights))
			return true
		}, "model.safetensors: STORAGE: more than 8000 bytes, the length that the hub states", -1},
		{"a shorter file of no stated length", func(w http.ResponseWriter, r *http.Request) bool {
			http.NewResponseController(w).Flush() // or the server states it
			w.Write([]byte(weights[:5]))
			return true
		}, "model.safetensors: STORAGE: the response ended after 5 of 8000 bytes (6 times)", 5},
		{"other content", body(200, other), "model.safetensors: wrong checksum: its hash is " +
			hubtest.ETag("model.safetensors", other) + ", but the hub states " + weightsTag +
			"; nothing of it is kept", 0},
		{"another status", status(204), "model.safetensors: STORAGE: status 204 (No Content)", 0},
	}
}

// weightsTag is the etag of the weights.
var weightsTag = hubtest.ETag("model.safetensors", weights)

// After trouble that stays no revision refers to what there is.
func TestPullFails(t *testing.T) {
	for _, c := range slices.Concat(apiFailures(), statFailures(), weightsFailures()) {
		t.Run(c.name, func(t *testing.T) {
			x := newTest(t, small())
			x.server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
				if strings.HasPrefix(c.want, "model.safetensors") && r.URL.Path != "/model.safetensors" {
					return false
				}
				return c.play(w, r)
			}
			_, err := x.pull(t, "org/small")
			x.wantError(t, err, c.want)
			if found := hubcache.Find("org/small"); found != "" {
				t.Errorf("the cache has %s", found)
			}
			kept := len(x.stored(t)["blobs/"+weightsTag+".incomplete"])
			if kept != c.keeps && c.keeps >= 0 {
				t.Errorf("%d bytes of the weights are kept, want %d", kept, c.keeps)
			}
			if _, whole := x.stored(t)["blobs/"+weightsTag]; whole {
				t.Error("the weights are in the cache")
			}
		})
	}
}

// A redirect from https to http is refused: the content could be changed on its way.
func TestRedirectsStaySafe(t *testing.T) {
	from, _ := endpointOf("https://hub.example.com")
	to, _ := endpointOf("http://example.com/x")
	if err := checkRedirect(from, to); err == nil {
		t.Errorf("redirected to %s", to)
	}
	if err := checkRedirect(from, from); err != nil {
		t.Error(err)
	}
}

// Nothing of an address but its place goes to where it redirects: neither a user that it names nor the address itself.
func TestRedirectsPassNothingOn(t *testing.T) {
	x := newTest(t, small())
	storage := strings.Replace(x.server.Storage.URL, "http://", "http://user:word@", 1)
	x.server.Intercept = of("GET", hubtest.Commit+"/model.safetensors",
		status(302, "Location", storage+"/model.safetensors"))
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Authorization", "Referer"} {
		if got := x.headers(x.server.Storage, name); !slices.Equal(got, []string{""}) {
			t.Errorf("the storage gets %s %q, want one request without", name, got)
		}
	}
}
