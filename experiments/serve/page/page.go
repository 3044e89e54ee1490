// Package page is the web page of a server: a form for texts, the answers of all tasks, and where the model looked. Its
// files speak to the server's API and to nothing else, so that it works without a network. Standalone writes an
// explanation as a file of its own.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"net/http"
	"path"
	"time"
)

//go:embed assets
var assets embed.FS

// policy is the page's Content-Security-Policy: its own files and its own server, no markup made from strings, and no
// frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// kinds are the media types of the files by extension; those of package mime depend on the machine.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

type file struct {
	name, tag string
	content   []byte
}

// Handler serves the page at / and its other files at /page/NAME.
func Handler() http.Handler {
	files := map[string]file{}
	for _, name := range names() {
		content := read(name)
		sum := sha256.Sum256(content)
		at := "/page/" + name
		if name == "index.html" {
			at = "/"
		}
		files[at] = file{name, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, content}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := files[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		for name, value := range map[string]string{
			"Content-Type": kinds[path.Ext(f.name)], "ETag": f.tag,
			"Cache-Control":           "no-cache", // browsers keep it, and ask whether it is still the same
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
			"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			w.Header().Set(name, value)
		}
		http.ServeContent(w, r, f.name, time.Time{}, bytes.NewReader(f.content))
	})
}

func names() (all []string) {
	entries, err := assets.ReadDir("assets")
	if err != nil {
		panic("page: " + err.Error()) // they are in the binary
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func read(name string) []byte {
	content, err := assets.ReadFile("assets/" + name)
	if err != nil {
		panic("page: " + err.Error())
	}
	return content
}
