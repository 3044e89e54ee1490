// Package hubcache reads and writes the cache of models in which huggingface_hub, the Python library, keeps its
// downloads. Both can use one cache, at the same time:
//
//	ROOT/models--ORG--NAME/blobs/ETAG                 a file's content
//	ROOT/models--ORG--NAME/blobs/ETAG.incomplete      its beginning: a download that was cut off
//	ROOT/models--ORG--NAME/snapshots/COMMIT/FILE      a relative link to the blob, or a copy
//	ROOT/models--ORG--NAME/refs/REVISION              the commit of a branch, tag or other reference
//	ROOT/.locks/models--ORG--NAME/ETAG.lock           locked while the blob is written
package hubcache

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/printable"
)

// Home returns the folder of Hugging Face's tools: $HF_HOME, else huggingface in the user's folder of caches.
func Home() (string, error) {
	if home := expand(os.Getenv("HF_HOME")); home != "" {
		return home, nil
	}
	caches := os.Getenv("XDG_CACHE_HOME")
	if caches == "" {
		user, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		caches = filepath.Join(user, ".cache")
	}
	return expand(filepath.Join(caches, "huggingface")), nil
}

// Root returns the folder of the cache: $HF_HUB_CACHE, else hub in [Home].
func Root() (string, error) {
	// the second name is an older one, which huggingface_hub still reads
	set := cmp.Or(os.Getenv("HF_HUB_CACHE"), os.Getenv("HUGGINGFACE_HUB_CACHE"))
	if set != "" {
		return expand(set), nil
	}
	home, err := Home()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, "hub"), nil
}

// expand replaces variables and a leading ~ in the path of a setting, as huggingface_hub does.
func expand(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || os.IsPathSeparator(rest[0])) {
		if home, err := os.UserHomeDir(); err == nil {
			path = home + rest
		}
	}
	return os.ExpandEnv(path)
}

// Find returns the folder of the model that [Parse] reads from text, "" if it is not in the cache.
func Find(text string) string {
	m, err := Parse(text)
	if err != nil {
		return ""
	}
	root, err := Root()
	if err != nil {
		return ""
	}
	return NewRepo(root, m.Name).Find(m.Revision)
}

// Names lists the models of which the cache has files, whatever they are.
func Names() []string {
	root, err := Root()
	if err != nil {
		return nil
	}
	entries, _ := os.ReadDir(root) // sorted; without a cache there are none
	var names []string
	for _, e := range entries {
		if folder, ok := strings.CutPrefix(e.Name(), folderPrefix); ok {
			names = append(names, strings.ReplaceAll(folder, "--", "/"))
		}
	}
	return names
}

// folderPrefix begins the name of each model's folder; a cache has data sets too.
const folderPrefix = "models--"

// Repo is the part of a cache that belongs to one model.
type Repo struct{ folder, locks string }

// NewRepo returns the part of the cache at root for the model with a name that [Parse] accepts.
func NewRepo(root, name string) Repo {
	folder := folderPrefix + strings.ReplaceAll(name, "/", "--")
	return Repo{filepath.Join(root, folder), filepath.Join(root, ".locks", folder)}
}

// Blob returns the path of a file's content by its etag.
func (r Repo) Blob(etag string) string { return filepath.Join(r.folder, "blobs", etag) }

// Snapshot returns the folder of a commit's files.
func (r Repo) Snapshot(commit string) string { return filepath.Join(r.folder, "snapshots", commit) }

// ref returns the path of the file that holds the commit of a revision.
func (r Repo) ref(revision string) string {
	return filepath.Join(r.folder, "refs", filepath.FromSlash(revision))
}

// commitOf returns the commit to which a revision refers, "" if it is no reference.
func (r Repo) commitOf(revision string) string {
	const maxHash = 1 << 10
	text, err := files.ReadFile(r.ref(revision), maxHash)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// Find returns the folder of a revision's files, "" if it is not in the cache. A revision that is no reference is a
// commit.
func (r Repo) Find(revision string) string {
	commit := cmp.Or(r.commitOf(revision), revision)
	if CheckFile(commit) != nil || strings.Contains(commit, "/") {
		return ""
	}
	snapshot := r.Snapshot(commit)
	if info, err := os.Stat(snapshot); err != nil || !info.IsDir() {
		return ""
	}
	return snapshot
}

// Size returns how many bytes the file at path has; ok is false if there is no regular file.
func Size(path string) (size int64, ok bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return 0, false
	}
	return info.Size(), true
}

// Model names a model of the hub and one of its revisions.
type Model struct {
	Name     string // NAME or ORG/NAME
	Revision string // a branch, a tag, a reference such as refs/pr/1, or a commit's hash
}

// DefaultRevision is the revision of a model that is named without one.
const DefaultRevision = "main"

// String returns the text that [Parse] reads.
func (m Model) String() string {
	if m.Revision == DefaultRevision {
		return m.Name
	}
	return m.Name + "@" + m.Revision
}

// The rules of huggingface_hub (utils/_validators.py) for names, and a stricter one for revisions: git allows more.
var (
	namePart = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_])?$`)
	revision = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_./+-]*$`)
	commit   = regexp.MustCompile(`^[0-9a-f]{40}$`)
	etag     = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)
)

const (
	maxName     = 96 // characters, as in huggingface_hub
	maxRevision = 200
	maxETag     = 128
)

// Parse reads NAME, ORG/NAME, or one of them followed by @REVISION.
func Parse(text string) (Model, error) {
	name, rev, given := strings.Cut(text, "@")
	if !given {
		rev = DefaultRevision
	}
	m := Model{name, rev}
	parts := strings.Split(name, "/")
	for _, part := range parts {
		if !namePart.MatchString(part) || strings.Contains(part, "--") || strings.Contains(part, "..") {
			return m, fmt.Errorf("%q is not the name of a hub model; want NAME or ORG/NAME, such as "+
				"distilbert-base-uncased, and @REVISION for another revision than main", text)
		}
	}
	switch {
	case len(parts) > 2:
		return m, fmt.Errorf("%q has %d parts; the name of a hub model is NAME or ORG/NAME", text, len(parts))
	case len(name) > maxName:
		return m, fmt.Errorf("the name of a hub model has at most %d characters; have %d", maxName, len(name))
	case strings.HasSuffix(name, ".git"):
		return m, fmt.Errorf("%q: the name of a hub model does not end in .git", name)
	case !revision.MatchString(rev) || len(rev) > maxRevision || CheckFile(rev) != nil:
		return m, fmt.Errorf("%q is not a revision; want a branch, a tag, or a commit's hash, such as %s@main", rev,
			name)
	}
	return m, nil
}

// IsCommit reports whether text is the whole hash of a commit.
func IsCommit(text string) bool { return commit.MatchString(text) }

// CheckETag returns an error unless a blob can have the name text.
func CheckETag(text string) error {
	if !etag.MatchString(text) || len(text) > maxETag || CheckFile(text) != nil {
		return fmt.Errorf("%.200q is not an etag that can name a file; want letters and digits", text)
	}
	return nil
}

// CheckFile returns an error unless name is a path with slashes that stays in its folder on each system, of characters
// that a terminal can show.
func CheckFile(name string) error {
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`) || !filepath.IsLocal(name) ||
		!printable.Is(name) {
		return fmt.Errorf("%.200q is not a path below the model's folder", name)
	}
	return nil
}
