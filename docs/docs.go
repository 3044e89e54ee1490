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
	_, chapter, _ := strings.Cut(parts, "\n## "+chapters[kind])
	chapter, _, _ = strings.Cut(chapter, "\n## ")
	_, text, found := strings.Cut(chapter, "\n### "+name+"\n")
	if !found || chapters[kind] == "" {
		return ""
	}
	text, _, _ = strings.Cut(text, "\n### ")
	text, _, _ = strings.Cut(text, "\n| ")
	return strings.TrimSpace(text)
}
