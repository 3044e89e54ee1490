package jenga

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var (
	fenced    = regexp.MustCompile("(?ms)^```[^\n]*\n.*?^```$")
	inline    = regexp.MustCompile("`[^`\n]+`")
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	link      = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	notAnchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// pagesOf returns the pages of the documentation, with '/' as separator.
func pagesOf(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages in docs, %v", len(pages), err)
	}
	for i := range pages {
		pages[i] = filepath.ToSlash(pages[i])
	}
	return append([]string{"README.md", "CONTRIBUTING.md"}, pages...)
}

// anchorsOf returns the names that GitHub gives to a page's headings.
func anchorsOf(page string) map[string]bool {
	anchors := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(page, ""), -1) {
		name := strings.ToLower(link.ReplaceAllString(h[1], "]"))
		name = strings.ReplaceAll(notAnchor.ReplaceAllString(name, ""), " ", "-")
		for n := 1; anchors[name]; n++ {
			if with := name + "-" + strconv.Itoa(n); !anchors[with] {
				name = with
			}
		}
		anchors[name] = true
	}
	return anchors
}

// brokenLinks returns a line for each link of a page that leads nowhere. A page of docs has links to docs alone, since
// they are built into HTML without the rest of the repository.
func brokenLinks(name, page string, read func(string) ([]byte, error)) (broken []string) {
	text := inline.ReplaceAllString(fenced.ReplaceAllString(page, ""), "")
	for _, l := range link.FindAllStringSubmatch(text, -1) {
		if strings.Contains(l[1], "://") {
			continue
		}
		path, anchor, _ := strings.Cut(l[1], "#")
		to := name
		if path != "" {
			to = filepath.ToSlash(filepath.Join(filepath.Dir(name), path))
		}
		content, err := read(to)
		switch {
		case err != nil:
			broken = append(broken, name+": "+l[1]+": no such file")
		case strings.HasPrefix(name, "docs/") && !strings.HasPrefix(to, "docs/"):
			broken = append(broken, name+": "+l[1]+": not in docs")
		case anchor != "" && !anchorsOf(string(content))[anchor]:
			broken = append(broken, name+": "+l[1]+": no such heading")
		case strings.Contains(anchor, "--"): // which mkdocs makes one
			broken = append(broken, name+": "+l[1]+": GitHub and mkdocs give this heading different names")
		}
	}
	return broken
}

// Every link between pages leads to a file and a heading.
func TestLinksOfPages(t *testing.T) {
	for _, name := range pagesOf(t) {
		for _, line := range brokenLinks(name, fileText(t, name), os.ReadFile) {
			t.Error(line)
		}
	}
}

func TestBrokenLinks(t *testing.T) {
	files := map[string]string{"docs/a.md": "# A, the `first`\n\n## Twice\n\n## Twice\n\n## Here & there\n",
		"docs/b.png": "", "README.md": "# Readme\n"}
	read := func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, os.ErrNotExist
	}
	for text, broken := range map[string]bool{
		"[a](a.md)":                            false,
		"[a](a.md#a-the-first)":                false,
		"[a](a.md#twice-1) ![b](b.png)":        false,
		"`[a](c.md)` <https://example.com>":    false,
		"```\n[a](c.md)\n```\n":                false,
		"[a](https://example.com/c.md#x)":      false,
		"[a](a.md#twice-2)":                    true,
		"[a](a.md#the-first)":                  true,
		"[a](c.md)":                            true,
		"![b](../docs/c.png)":                  true,
		"[here](#nowhere)":                     true,
		"[a](../README.md)":                    true,
		"[a](a.md#here--there)":                true,
		"[two](a.md) and\n[lines](c.md#twice)": true,
	} {
		if got := brokenLinks("docs/d.md", text, read); (len(got) > 0) != broken {
			t.Errorf("%q: broken %v", text, got)
		}
	}
}

// The list of pages names each one.
func TestTheListOfPagesIsWhole(t *testing.T) {
	list := fileText(t, "docs/README.md")
	for _, name := range pagesOf(t) {
		page, of := strings.CutPrefix(name, "docs/")
		if of && page != "README.md" && !strings.Contains(list, "("+page+")") {
			t.Errorf("docs/README.md does not name %s", name)
		}
	}
}
