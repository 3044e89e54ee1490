package hub

import (
	"net/http"
	"strings"
	"testing"
)

func TestPullWithoutAccess(t *testing.T) {
	refuse := func(code int, name string) trick { return status(code, "X-Error-Code", name) }
	onlyFiles := func(next trick) trick {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return strings.Contains(r.URL.Path, "/resolve/") && next(w, r)
		}
	}
	for _, c := range []struct {
		name, model, token string
		intercept          trick
		want               string
	}{
		{"unknown", "distilbert-base-uncaesd", token, nil,
			`HUB has no model "distilbert-base-uncaesd"; did you mean "distilbert-base-uncased"?`},
		{"unknown, and similar to none", "qwerty", token, nil, `HUB has no model "qwerty"`},
		{"an unknown revision", "org/small@v2", token, nil,
			`org/small has no revision "v2"; did you mean "v1"? available: main, v1`},
		{"private or unknown", "org/small", "", refuse(401, "RepoNotFound"),
			`HUB has no public model "org/small"; set HF_TOKEN if it is a private one`},
		{"a bad token", "org/small", token, refuse(401, ""),
			`HUB: status 401 (Unauthorized): no access to org/small; check HF_TOKEN, or the file of the token, ` +
				`and the name`},
		{"terms, without a token", "org/small", "", refuse(401, "GatedRepo"),
			`org/small is only for users who accepted its terms: accept them at http://HUB/org/small, ` +
				`and set HF_TOKEN`},
		{"terms of the files alone", "org/small", token, onlyFiles(refuse(403, "GatedRepo")),
			`org/small is only for users who accepted its terms; the token's user can do so at http://HUB/org/small`},
		{"private files", "org/small", "", onlyFiles(refuse(401, "")),
			`config.json: HUB: status 401 (Unauthorized): org/small is not public; set HF_TOKEN`},
		{"files that vanish", "org/small", "", onlyFiles(refuse(404, "EntryNotFound")),
			`config.json: HUB: status 404 (Not Found)`},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTest(t, small())
			x.Client.token = c.token
			if c.intercept != nil {
				x.server.Intercept = c.intercept
			}
			_, err := x.pull(t, c.model)
			x.wantError(t, err, c.want)
		})
	}
}
