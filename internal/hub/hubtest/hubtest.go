// Package hubtest has a local server that plays a hub, for tests.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"
)

// Name and Commit are those of the one model that a server has. Its revisions are main and v1.
const (
	Name   = "org/small"
	Commit = "0123456789abcdef0123456789abcdef01234567"
)

// Server is a hub with one model. Files in the large file storage come from another host, to which it redirects.
type Server struct {
	Hub, Storage *httptest.Server
	Files        map[string]string // path to content

	// Intercept may send the response to a request instead of the server; then it returns true. Log is called before.
	Intercept func(w http.ResponseWriter, r *http.Request) bool
	Log       func(r *http.Request)
}

// New starts a server that has the files of a model, and directs the client of the test to it: HF_ENDPOINT, and HF_HOME
// as an empty folder.
func New(t testing.TB, files map[string]string) *Server {
	s := Start(files)
	t.Cleanup(s.Hub.Close)
	t.Cleanup(s.Storage.Close)
	for _, name := range []string{"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN",
		"HF_TOKEN_PATH", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_DISABLE_IMPLICIT_TOKEN", "JENGA_MODELS"} {
		t.Setenv(name, "")
	}
	t.Setenv("HF_ENDPOINT", s.Hub.URL)
	t.Setenv("HF_HOME", t.TempDir())
	return s
}

// Start starts a server that has the files of a model. The caller closes Hub and Storage.
func Start(files map[string]string) *Server {
	s := &Server{Files: files, Intercept: func(http.ResponseWriter, *http.Request) bool { return false },
		Log: func(*http.Request) {}}
	s.Hub = httptest.NewServer(s.handler(s.serveHub))
	s.Storage = httptest.NewServer(s.handler(s.serveStorage))
	return s
}

func (s *Server) handler(serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.Log(r)
		if !s.Intercept(w, r) {
			serve(w, r)
		}
	})
}

// ETag returns the etag of a file: the SHA-256 of its content in the large file storage, else git's SHA-1.
func ETag(name, content string) string {
	if InStorage(name) {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(content)))
	}
	return fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content)))
}

// InStorage reports whether a file is in the large file storage.
func InStorage(name string) bool {
	return slices.Contains([]string{".safetensors", ".onnx", ".onnx_data", ".bin"}, path.Ext(name))
}

// serveHub serves the API and the files of the git repository.
func (s *Server) serveHub(w http.ResponseWriter, r *http.Request) {
	api := "/api/models/" + Name
	revision, isInfo := strings.CutPrefix(r.URL.EscapedPath(), api+"/revision/")
	file, isFile := strings.CutPrefix(r.URL.Path, "/"+Name+"/resolve/"+Commit+"/")
	content, exists := s.Files[file]
	switch {
	case r.URL.Path == api+"/refs":
		writeJSON(w, map[string]any{"branches": []any{map[string]string{"name": "main"}},
			"tags": []any{map[string]string{"name": "v1"}, map[string]string{"name": "../x"}}})
	case isInfo && !slices.Contains([]string{"main", "v1", "refs%2Fpr%2F1", Commit}, revision):
		w.Header().Set("X-Error-Code", "RevisionNotFound")
		http.Error(w, "", http.StatusNotFound)
	case isInfo:
		siblings := []map[string]string{}
		for name := range s.Files {
			siblings = append(siblings, map[string]string{"rfilename": name})
		}
		writeJSON(w, map[string]any{"id": Name, "sha": Commit, "siblings": siblings})
	case isFile && exists:
		s.serveFile(w, r, file, content)
	default:
		w.Header().Set("X-Error-Code", "RepoNotFound")
		http.Error(w, "", http.StatusNotFound)
	}
}

// serveFile serves a file, or redirects to the storage.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, file, content string) {
	w.Header().Set("X-Repo-Commit", Commit)
	if !InStorage(file) {
		w.Header().Set("ETag", `"`+ETag(file, content)+`"`)
		http.ServeContent(w, r, file, time.Time{}, strings.NewReader(content))
		return
	}
	w.Header().Set("X-Linked-Etag", `"`+ETag(file, content)+`"`)
	w.Header().Set("X-Linked-Size", fmt.Sprint(len(content)))
	w.Header().Set("Location", s.Storage.URL+"/"+file)
	w.WriteHeader(http.StatusFound)
}

// serveStorage serves the files of the storage, with etags that are not the hub's.
func (s *Server) serveStorage(w http.ResponseWriter, r *http.Request) {
	file := strings.TrimPrefix(r.URL.Path, "/")
	w.Header().Set("ETag", `"storage"`)
	http.ServeContent(w, r, file, time.Time{}, strings.NewReader(s.Files[file]))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(v)
}
