// Package docs holds the pages that the commands print: docs/parts.md, which describes the parts that ship, and
// docs/commands.md, the commands.
package docs

import (
	_ "embed"
	"strings"
)

//go:embed parts.md
var parts string

//go:embed commands.md
var commands string

// chapters are the headings of the page by kind of part; the registries have these kinds.
var chapters = map[string]string{
	"encoder": "Encoders", "fusion": "Fusion", "head": "Heads", "task": "Tasks", "sampling": "Samplers",
	"weighting": "Weightings", "optimizer": "Optimizers", "lr_scheduler": "Schedules", "section": "Sections",
}

// Commands is the page of the commands.
func Commands() string { return commands }

// FlagsTable begins the table of a command's flags, which is written from the program: it lists them with --help.
const FlagsTable = "\n| flag | default | what it is |\n"

// Command returns what the page says of a command, as text, and its examples, a line each; "" for one that it lacks.
func Command(name string) (text, examples string) {
	_, all, _ := strings.Cut(commands, "\n## "+name+"\n\n")
	all, _, _ = strings.Cut(all, "\n## ")
	all, _, _ = strings.Cut(all, FlagsTable)
	text, examples, _ = strings.Cut(all, "```sh\n")
	text = strings.TrimSpace(strings.ReplaceAll(text, "```\n", ""))
	return text, strings.TrimSpace(strings.ReplaceAll(examples, "```", ""))
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
