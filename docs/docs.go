// Package docs holds the page that describes the parts that ship, docs/parts.md, for the command that prints it.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed parts.md
var parts string

// chapters are the headings of the page by kind of part; the registries have these kinds.
var chapters = map[string]string{
	"encoder": "Encoders", "fusion": "Fusion", "head": "Heads", "task": "Tasks", "sampling": "Samplers",
	"weighting": "Weightings", "optimizer": "Optimizers", "lr_scheduler": "Schedules", "section": "Sections",
}

// Part returns what the page says of a part, or of a section of an experiment file, without the table of its options:
// Markdown, whose only mark-up is code. It is "" for a part of another module.
func Part(kind, name string) string {
	text, _, _ := strings.Cut(chapter(kind, name), "\n| ")
	return strings.TrimSpace(text)
}

// Option returns what the page says of an option of a part, or of a key of a section, "" for one of another module.
func Option(kind, name, key string) string {
	_, row, found := strings.Cut(chapter(kind, name), "\n| `"+key+"` | ")
	if !found {
		return ""
	}
	row, _, _ = strings.Cut(row, " |\n")
	return strings.ReplaceAll(row[strings.LastIndex(row, " | ")+len(" | "):], `\|`, "|")
}

// chapter returns all that the page says of a part.
func chapter(kind, name string) string {
	_, all, _ := strings.Cut(parts, "\n## "+chapters[kind])
	all, _, _ = strings.Cut(all, "\n## ")
	_, text, found := strings.Cut(all, "\n### "+name+"\n")
	if !found || chapters[kind] == "" {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n### ")
	return text
}
