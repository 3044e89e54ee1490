package hub

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
	"github.com/jenga-nlp/jenga/internal/hubcache"
)

// A file whose etag is another at the second request is downloaded by the next command, under its new name.
func TestAFileThatChanges(t *testing.T) {
	x := newTest(t, small())
	change := true
	x.server.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if change && r.Method == "GET" && strings.HasSuffix(r.URL.Path, "/resolve/"+hubtest.Commit+"/vocab.txt") {
			change, x.server.Files["vocab.txt"] = false, "[UNK]\n[PAD]\n"
		}
		return false
	}
	_, err := x.pull(t, "org/small")
	x.wantError(t, err, "vocab.txt: the file changed during the download; the same command starts it again")
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, usual, "main")
}

// incomplete writes the beginning of the weights into the cache, as an earlier download left it.
func (x *test) incomplete(t *testing.T, text string) {
	t.Helper()
	tag := hubtest.ETag("model.safetensors", weights)
	path := hubcache.NewRepo(x.root, hubtest.Name).Blob(tag) + ".incomplete"
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestPullGoesOnFromWhatIsThere(t *testing.T) {
	for _, c := range []struct {
		name, kept string
		ranges     []string // of the requests for the weights from the storage
	}{
		{"the beginning", weights[:100], []string{"bytes=100-"}},
		{"all of it", weights, nil},
		{"something else", "x" + weights[1:100], []string{"bytes=100-", ""}},
		{"all of something else", other, []string{""}},
		{"more", weights + "x", []string{""}},
		{"nothing", "", []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newTest(t, small())
			x.incomplete(t, c.kept)
			if _, err := x.pull(t, "org/small"); err != nil {
				t.Fatal(err)
			}
			x.wantStored(t, usual, "main")
			if got := x.headers(x.server.Storage, "Range"); !slices.Equal(got, c.ranges) {
				t.Errorf("ranges %q, want %q", got, c.ranges)
			}
			for _, value := range x.headers(x.server.Storage, "If-Range") {
				if value != "" {
					t.Errorf("the storage, whose etags are others, gets If-Range %s", value)
				}
			}
		})
	}
	t.Run("of a file on the hub itself", func(t *testing.T) {
		x := newTest(t, small())
		tag := hubtest.ETag("config.json", x.server.Files["config.json"])
		path := hubcache.NewRepo(x.root, hubtest.Name).Blob(tag)
		x.incomplete(t, "")
		if err := os.WriteFile(path+".incomplete", []byte("{"), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := x.pull(t, "org/small"); err != nil {
			t.Fatal(err)
		}
		x.wantStored(t, usual, "main")
		if got := x.headers(x.server.Hub, "If-Range"); !slices.Contains(got, `"`+tag+`"`) {
			t.Errorf("If-Range %q, want one to be the etag", got)
		}
	})
	t.Run("a blob of another length", func(t *testing.T) {
		x := newTest(t, small())
		x.incomplete(t, "")
		blob := hubcache.NewRepo(x.root, hubtest.Name).Blob(hubtest.ETag("model.safetensors", weights))
		if err := os.Rename(blob+".incomplete", blob); err != nil {
			t.Fatal(err)
		}
		if _, err := x.pull(t, "org/small"); err != nil {
			t.Fatal(err)
		}
		x.wantStored(t, usual, "main")
	})
}

// Where all is in the cache, nothing is written: a shared one may be read-only.
func TestACompleteCacheMayBeReadOnly(t *testing.T) {
	x := newTest(t, small())
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(x.root, ".locks")); err != nil {
		t.Fatal(err)
	}
	times := func() (all []time.Time) {
		filepath.WalkDir(x.root, func(_ string, d fs.DirEntry, _ error) error {
			info, err := d.Info()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, info.ModTime())
			return nil
		})
		return all
	}
	before := times()
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	if after := times(); !slices.Equal(before, after) {
		t.Errorf("times of files and folders %v, before %v", after, before)
	}
}

// Without a hash as etag nothing can show that two halves belong together.
func TestWithoutAChecksumNothingIsResumed(t *testing.T) {
	x := newTest(t, small())
	x.server.Intercept = of("HEAD", "/config.json", status(200, "ETag", `W/"abc"`, "Content-Length", "2"))
	m, _ := hubcache.Parse("org/small")
	repo := hubcache.NewRepo(x.root, m.Name)
	address := x.address(m.Name, "resolve", hubtest.Commit, "config.json")
	b, err := x.stat(t.Context(), address, file{"config.json", "", 9})
	if err != nil || b.etag != "abc" || b.size != 2 || b.newSum() != nil {
		t.Fatalf("stat: %+v, %v", b, err)
	}
	x.incomplete(t, "")
	if err := os.WriteFile(repo.Blob("abc")+".incomplete", []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	x.server.Intercept = of("GET", "/config.json", func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			t.Errorf("Range %s", r.Header.Get("Range"))
		}
		return body(200, "{}")(w, r)
	})
	if err := x.download(t.Context(), repo, b); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(repo.Blob("abc")); err != nil || string(got) != "{}" {
		t.Errorf("%q, %v; want {}", got, err)
	}
}

func TestAFullDiskKeepsWhatIsThere(t *testing.T) {
	x := newTest(t, small())
	room := 50
	x.write = func(f *os.File, data []byte) (int, error) {
		n, err := f.Write(data[:min(room, len(data))])
		if room -= n; n < len(data) && err == nil {
			err = &os.PathError{Op: "write", Path: "BLOB", Err: syscall.ENOSPC}
		}
		return n, err
	}
	delete(x.server.Files, "tokenizer.json")
	_, err := x.pull(t, "org/small")
	x.wantError(t, err, "model.safetensors: write BLOB: no space left on device; the same command goes on after the "+
		"22 of 8000 bytes that are there")
	if !errors.Is(err, syscall.ENOSPC) {
		t.Error("the cause is lost")
	}

	x.write = (*os.File).Write
	if _, err := x.pull(t, "org/small"); err != nil {
		t.Fatal(err)
	}
	x.wantStored(t, []string{"config.json", "vocab.txt", "model.safetensors"}, "main")
	if got, want := x.headers(x.server.Storage, "Range"), []string{"", "bytes=22-"}; !slices.Equal(got, want) {
		t.Errorf("ranges %q, want %q", got, want)
	}
}
