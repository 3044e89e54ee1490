package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
	"github.com/jenga-nlp/jenga/internal/hubcache"
)

const token = "hf_secret"

var weights = strings.Repeat("weights ", 1000)

// small returns the files of a model with weights of all kinds, and some that are never wanted.
func small() map[string]string {
	return map[string]string{
		"config.json": `{"model_type": "bert"}`, "tokenizer.json": "{}", "vocab.txt": "[UNK]\n",
		"model.safetensors": weights, "onnx/model.onnx": "graph", "onnx/model.onnx_data": "tensors",
		"pytorch_model.bin": "pickle", "tf_model.h5": "more", "README.md": "words",
	}
}

// test is a client of a hub that plays tricks.
type test struct {
	*Client
	server *hubtest.Server
	notes  []string
	pauses []time.Duration

	mu   sync.Mutex
	sent []*http.Request
}

func newTest(t *testing.T, files map[string]string) *test {
	t.Helper()
	x := &test{server: hubtest.New(t, files)}
	x.server.Log = func(r *http.Request) {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.sent = append(x.sent, r.Clone(r.Context()))
	}
	t.Setenv("HF_TOKEN", token)
	x.Client = x.client(t)
	return x
}

// requests returns the requests that came, such as "GET /org/small/resolve/COMMIT/config.json", with the hash of the
// commit replaced.
func (x *test) requests() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var lines []string
	for _, r := range x.sent {
		lines = append(lines, r.Method+" "+strings.Replace(r.URL.Path, hubtest.Commit, "COMMIT", 1))
	}
	return lines
}

// headers returns the values of a header in all requests to one of the two hosts.
func (x *test) headers(host *httptest.Server, name string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	var values []string
	for _, r := range x.sent {
		if "http://"+r.Host == host.URL {
			values = append(values, r.Header.Get(name))
		}
	}
	return values
}

// client returns another client of the same hub and cache.
func (x *test) client(t *testing.T) *Client {
	t.Helper()
	c, err := New(func(e Event) {
		if e.Note != "" {
			x.notes = append(x.notes, e.Note)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.wait = func(ctx context.Context, d time.Duration) error {
		x.pauses = append(x.pauses, d)
		return ctx.Err()
	}
	t.Cleanup(c.http.CloseIdleConnections)
	return c
}

func (x *test) pull(t *testing.T, text string) (Pulled, error) {
	t.Helper()
	m, err := hubcache.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return x.Pull(t.Context(), m, false)
}

// stored returns the model's files in the cache: links with their targets, others with their content.
func (x *test) stored(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	root := filepath.Join(x.root, "models--org--small")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir() {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if target, err := os.Readlink(path); err == nil {
			found[filepath.ToSlash(name)] = "-> " + filepath.ToSlash(target)
			return nil
		}
		text, err := os.ReadFile(path)
		found[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// wantStored compares the cache with one that has the named files, and refs.
func (x *test) wantStored(t *testing.T, names []string, refs ...string) {
	t.Helper()
	want := map[string]string{}
	for _, name := range names {
		tag := hubtest.ETag(name, x.server.Files[name])
		want["blobs/"+tag] = x.server.Files[name]
		up := strings.Repeat("../", 2+strings.Count(name, "/"))
		want["snapshots/"+hubtest.Commit+"/"+name] = "-> " + up + "blobs/" + tag
	}
	for _, ref := range refs {
		want["refs/"+ref] = hubtest.Commit
	}
	got := x.stored(t)
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if got[name] != want[name] {
			t.Errorf("the cache has %s: %.80q, want %.80q", name, got[name], want[name])
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("the cache lacks %s", name)
	}
}

var usual = []string{"config.json", "tokenizer.json", "vocab.txt", "model.safetensors"}

func TestPull(t *testing.T) {
	x := newTest(t, small())
	got, err := x.pull(t, "org/small")
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(os.Getenv("HF_HOME"), "hub", "models--org--small", "snapshots", hubtest.Commit)
	size := int64(len(`{"model_type": "bert"}{}[UNK]`) + 1 + len(weights))
	if want := (Pulled{Folder: folder, Commit: hubtest.Commit, Files: 4, Bytes: size}); got != want {
		t.Errorf("Pull: %+v, want %+v", got, want)
	}
	x.wantStored(t, usual, "main")
	if found := hubcache.Find("org/small"); found != folder {
		t.Errorf("Find: %q, want %q", found, folder)
	}

	// the token is for the hub alone
	for _, value := range x.headers(x.server.Hub, "Authorization") {
		if value != "Bearer "+token {
			t.Errorf("the hub gets Authorization %q", value)
		}
	}
	if got := x.headers(x.server.Storage, "Authorization"); !slices.Equal(got, []string{""}) {
		t.Errorf("the storage gets Authorization %q, want one request without", got)
	}

	// a second time only etags and lengths are compared; another revision of the same commit is one more reference
	before := len(x.requests())
	if _, err := x.pull(t, "org/small@refs/pr/1"); err != nil {
		t.Fatal(err)
	}
	for _, request := range x.requests()[before:] {
		if strings.HasPrefix(request, "GET /org") || strings.HasPrefix(request, "GET /model") {
			t.Errorf("a second pull sends %s", request)
		}
	}
	x.wantStored(t, usual, "main", "refs/pr/1")
	if _, err := x.pull(t, "org/small@"+hubtest.Commit); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, usual, "main", "refs/pr/1")
}

func TestPullONNX(t *testing.T) {
	x := newTest(t, small())
	m, _ := hubcache.Parse("org/small")
	got, err := x.Pull(t.Context(), m, true)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"onnx/model.onnx": "graph", "model.onnx": "graph",
		"model.onnx_data": "tensors", "config.json": `{"model_type": "bert"}`} {
		if text, err := os.ReadFile(filepath.Join(got.Folder, name)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v; want %q", name, text, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(got.Folder, "model.safetensors")); err == nil {
		t.Error("the safetensors are downloaded too")
	}
}

func TestPullShards(t *testing.T) {
	files := small()
	delete(files, "model.safetensors")
	files["model-1 of 2.safetensors"], files["model-2 of 2.safetensors"] = "one", "two"
	files["model.safetensors.index.json"] = `{"weight_map": {"a": "model-1 of 2.safetensors",
		"b": "model-2 of 2.safetensors", "c": "model-1 of 2.safetensors"}}`
	x := newTest(t, files)
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, []string{"config.json", "tokenizer.json", "vocab.txt", "model.safetensors.index.json",
		"model-1 of 2.safetensors", "model-2 of 2.safetensors"}, "main")
}

// What a server cannot make the client do is an error that says why, and leaves no revision behind.
func TestPullOfBadModels(t *testing.T) {
	index := func(shard string) map[string]string {
		return map[string]string{"model.safetensors": "-", "x/y.safetensors": "",
			"model.safetensors.index.json": fmt.Sprintf(`{"weight_map": {"a": %q}}`, shard)}
	}
	for _, c := range []struct {
		name  string
		files map[string]string // changes of small(); "-" removes one
		want  string
	}{
		{"a path out of the cache", map[string]string{"../../../.bashrc": ""},
			`HUB: a file of org/small: "../../../.bashrc" is not a path below the model's folder`},
		{"an absolute path", map[string]string{"/etc/passwd": ""},
			`HUB: a file of org/small: "/etc/passwd" is not a path below the model's folder`},
		{"a path of Windows", map[string]string{`..\x`: ""},
			`HUB: a file of org/small: "..\\x" is not a path below the model's folder`},
		{"control characters", map[string]string{"a\x1b[2J": ""},
			`HUB: a file of org/small: "a\x1b[2J" is not a path below the model's folder`},
		{"a shard out of the cache", index("../../x.safetensors"),
			`INDEX: weight_map names "../../x.safetensors"; want a .safetensors file beside the index`},
		{"a shard in another folder", index("x/y.safetensors"),
			`INDEX: weight_map names "x/y.safetensors"; want a .safetensors file beside the index`},
		{"a pickle as a shard", index("pytorch_model.bin"),
			`INDEX: weight_map names "pytorch_model.bin"; want a .safetensors file beside the index`},
		{"a shard that is not there", index("z.safetensors"),
			`INDEX: weight_map names "z.safetensors", which the model does not have`},
		{"an index without shards", map[string]string{"model.safetensors": "-", "model.safetensors.index.json": "{}"},
			`INDEX: weight_map names 0 files; want 1 to 1000`},
		{"a pickle", map[string]string{"model.safetensors": "-", "onnx/model.onnx": "-"},
			`org/small has no safetensors, only pickles such as "pytorch_model.bin", which are not downloaded ` +
				`because they can run code; a pull request of the model often has safetensors: ` +
				`org/small@refs/pr/1; or in Python, transformers' AutoModel.from_pretrained("org/small")` +
				`.save_pretrained(FOLDER) writes them`},
		{"a pickle beside a graph", map[string]string{"model.safetensors": "-", "pytorch_model.bin": "-"},
			"org/small has no model.safetensors and no model.safetensors.index.json; it has an ONNX graph"},
		{"no config", map[string]string{"config.json": "-"},
			"org/small has no config.json: it is no model of transformers"},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := small()
			for name, text := range c.files {
				if files[name] = text; text == "-" {
					delete(files, name)
				}
			}
			x := newTest(t, files)
			_, err := x.pull(t, "org/small")
			x.wantError(t, err, c.want)
			if found := hubcache.Find("org/small"); found != "" {
				t.Errorf("the cache has %s", found)
			}
			if slices.ContainsFunc(x.requests(), func(r string) bool { return strings.HasSuffix(r, ".bin") }) {
				t.Errorf("a pickle is requested: %q", x.requests())
			}
		})
	}
}

// wantError compares an error with the expected text, where HUB, STORAGE and INDEX stand for the hosts and for the
// downloaded index.
func (x *test) wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error; want %s", want)
	}
	tag := hubtest.ETag(indexFile, x.server.Files[indexFile])
	got := strings.NewReplacer(
		filepath.Join(x.root, "models--org--small", "blobs", tag), "INDEX",
		x.server.Hub.URL, "http://HUB", x.server.Hub.Listener.Addr().String(), "HUB",
		x.server.Storage.Listener.Addr().String(), "STORAGE").Replace(err.Error())
	if got != want {
		t.Errorf("the error is\n%s\nwant\n%s", got, want)
	}
	if strings.Contains(got, token) {
		t.Error("the error has the token")
	}
}
