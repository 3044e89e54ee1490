package hubcache

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
)

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
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, `\:`) || !filepath.IsLocal(name) ||
		strings.ContainsFunc(name, unprintable) {
		return fmt.Errorf("%.200q is not a path below the model's folder", name)
	}
	return nil
}
