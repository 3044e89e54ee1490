package hubcache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Model{
		"distilbert-base-uncased": {"distilbert-base-uncased", "main"},
		"org/a.b_c":               {"org/a.b_c", "main"},
		"org/name@v1.0":           {"org/name", "v1.0"},
		"name@refs/pr/1":          {"name", "refs/pr/1"},
	} {
		if got, err := Parse(text); got != want || err != nil {
			t.Errorf("Parse(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]string{
		"": `"" is not the name of a hub model; want NAME or ORG/NAME, such as distilbert-base-uncased, and ` +
			`@REVISION for another revision than main`,
		"../x":       `"../x" is not the name`,
		"./x":        `"./x" is not the name`,
		"/x":         `"/x" is not the name`,
		"a--b":       `"a--b" is not the name`,
		"a b":        `"a b" is not the name`,
		"-a":         `"-a" is not the name`,
		"a/b/c":      `"a/b/c" has 3 parts; the name of a hub model is NAME or ORG/NAME`,
		"a.git":      `"a.git": the name of a hub model does not end in .git`,
		"a@":         `"" is not a revision; want a branch, a tag, or a commit's hash, such as a@main`,
		"a@../../x":  `"../../x" is not a revision`,
		"a@refs/../": `"refs/../" is not a revision`,
		"a@b@c":      `"b@c" is not a revision`,

		strings.Repeat("a", 97): "the name of a hub model has at most 96 characters; have 97",
	} {
		if _, err := Parse(text); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("Parse(%q): %v, want %s", text, err, want)
		}
	}
}

// Whatever a model is called, its files lie below the root.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"org/name@refs/pr/1", "../..@..", "a--b", `a\b`, "a@C:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		if again, err := Parse(m.String()); again != m || err != nil {
			t.Errorf("%q is %v, which is read again as %v, %v", text, m, again, err)
		}
		repo := NewRepo("root", m.Name)
		for _, path := range []string{repo.Snapshot(m.Revision), repo.ref(m.Revision), repo.locks} {
			if !filepath.IsLocal(path) || !strings.HasPrefix(path, "root"+string(filepath.Separator)) {
				t.Errorf("%q leads to %s", text, path)
			}
		}
	})
}

func TestRoot(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home) // Windows
	t.Setenv("PLACE", "there")
	for _, test := range []struct{ env, want string }{
		{"", filepath.Join(home, ".cache", "huggingface", "hub")},
		{"XDG_CACHE_HOME=/c", "/c/huggingface/hub"},
		{"HF_HOME=/h XDG_CACHE_HOME=/c", "/h/hub"},
		{"HF_HOME=~/h", filepath.Join(home, "h", "hub")},
		{"HF_HOME=~h", filepath.Join("~h", "hub")},
		{"HF_HUB_CACHE=/x/$PLACE HF_HOME=/h", "/x/there"},
		{"HUGGINGFACE_HUB_CACHE=/old HF_HOME=/h", "/old"},
		{"HF_HUB_CACHE=/x HUGGINGFACE_HUB_CACHE=/old", "/x"},
	} {
		for _, name := range []string{"XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"} {
			t.Setenv(name, "")
		}
		for setting := range strings.FieldsSeq(test.env) {
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv(name, value)
		}
		if got, err := Root(); filepath.ToSlash(got) != filepath.ToSlash(test.want) || err != nil {
			t.Errorf("%s: %s, %v; want %s", test.env, got, err, test.want)
		}
	}
}

const hash = "0123456789abcdef0123456789abcdef01234567"

// newRepo returns the part of a new cache for org/name, with a blob named "tag".
func newRepo(t *testing.T) (r Repo, root string) {
	t.Helper()
	root = t.TempDir()
	t.Setenv("HF_HUB_CACHE", root)
	r = NewRepo(root, "org/name")
	write(t, r.Blob("tag"), "content")
	return r, root
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestFind(t *testing.T) {
	r, root := newRepo(t)
	for _, file := range []string{"config.json", "onnx/model.onnx", "config.json"} {
		if err := r.Link(hash, file, "tag"); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(r.Snapshot(hash), file)); err != nil || string(got) != "content" {
			t.Errorf("%s: %q, %v; want content", file, got, err)
		}
	}
	for _, revision := range []string{"main", "refs/pr/1", hash} {
		if err := r.SetCommit(revision, hash); err != nil {
			t.Fatal(err)
		}
	}
	write(t, r.ref("gone"), "no such folder")
	write(t, r.ref("out"), "../../..")
	write(t, r.ref("padded"), hash+"\n")
	snapshot := filepath.Join(root, "models--org--name", "snapshots", hash)
	for text, want := range map[string]string{
		"org/name": snapshot, "org/name@refs/pr/1": snapshot, "org/name@" + hash: snapshot, "org/name@padded": snapshot,
		"org/name@v1": "", "org/name@gone": "", "org/name@out": "", "org/other": "", "../name": "",
		"org/name@" + strings.Repeat("0", 40): "",
	} {
		if got := Find(text); got != want {
			t.Errorf("Find(%q) = %q, want %q", text, got, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(root, "models--org--name", "refs")); err != nil || len(entries) != 5 {
		t.Errorf("refs has %v, %v; want main, refs and the three of the test", entries, err)
	}
}

// A file of a commit is a relative link, so that the cache can be moved.
func TestACacheCanBeMoved(t *testing.T) {
	r, root := newRepo(t)
	if err := r.Link(hash, "a/b.txt", "tag"); err != nil {
		t.Fatal(err)
	}
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Rename(filepath.Join(root, "models--org--name"), moved); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(moved, "snapshots", hash, "a", "b.txt")); err != nil ||
		string(got) != "content" {
		t.Errorf("%q, %v; want content", got, err)
	}
}

func TestWithoutLinksFilesAreCopied(t *testing.T) {
	r, root := newRepo(t)
	path := filepath.Join(root, "file") // where neither kind of link can be made
	write(t, path, "before, and longer")
	if err := linkOrCopy("tag", r.Blob("tag"), path); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "content" {
		t.Errorf("%q, %v; want content", got, err)
	}
	if err := linkOrCopy("none", r.Blob("none"), path); err == nil {
		t.Error("a blob that does not exist is linked")
	}
}

func TestNamesStayInTheCache(t *testing.T) {
	r, _ := newRepo(t)
	for _, bad := range []string{"", ".", "..", "../x", "/x", "a/../../x", `a\b`, "C:x", "a\x00", "a\nb", "a\x1b[2J"} {
		if CheckFile(bad) == nil || CheckETag(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
		if r.Link(hash, bad, "tag") == nil || r.Link(bad, "file", "tag") == nil || r.Link(hash, "file", bad) == nil {
			t.Errorf("%q is linked", bad)
		}
		if r.SetCommit(bad, hash) == nil || r.SetCommit("main", bad) == nil {
			t.Errorf("%q is written to refs", bad)
		}
	}
	if err := CheckETag(strings.Repeat("a", maxETag+1)); err == nil {
		t.Error("a long etag is accepted")
	}
}

func TestLock(t *testing.T) {
	r, root := newRepo(t)
	waits := 0
	unlock, err := r.Lock(t.Context(), "tag", func() { waits++ })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".locks", "models--org--name", "tag.lock")); err != nil {
		t.Error(err) // where huggingface_hub has it
	}
	limited, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := r.Lock(limited, "tag", func() { waits++ }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a second lock: %v, want the deadline's error", err)
	}
	if other, err := r.Lock(t.Context(), "other", func() { waits++ }); err != nil {
		t.Errorf("the lock of another blob: %v", err)
	} else {
		other()
	}
	unlock()
	if again, err := r.Lock(t.Context(), "tag", func() { waits++ }); err != nil {
		t.Errorf("the lock after it was freed: %v", err)
	} else {
		again()
	}
	if waits != 1 {
		t.Errorf("waited %d times, want once", waits)
	}
}
