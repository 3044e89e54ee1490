package experiments

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

var (
	// fileBlock is a block of a page after the name of a file at the end of a sentence.
	fileBlock = regexp.MustCompile("(?s)`([a-z./]+)`[^`\n]*:\n\n```[a-z]*\n(.*?)```\n")
	yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```\n")
	// counts are the examples of a task, as a comment behind its name.
	counts = regexp.MustCompile(`(?m)^- name: (\S+) # (\d+) examples, (\d+) with a target$`)
)

// TestDataPage loads the examples of docs/data.md.
func TestDataPage(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	page, err := os.ReadFile(filepath.Join("..", "docs", "data.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, files := strings.Count(string(page), "\n```")/2, len(fileBlock.FindAllString(string(page), -1))
	if entries := len(yamlBlock.FindAllString(string(page), -1)); blocks != files+entries {
		t.Errorf("%d blocks: %d files that a sentence names and %d of yaml; want no others", blocks, files, entries)
	}
	loaded, types := 0, map[string]bool{}
	for _, section := range regexp.MustCompile(`(?m)^##+ `).Split(string(page), -1)[1:] {
		title, text, _ := strings.Cut(section, "\n")
		block := yamlBlock.FindStringSubmatch(text)
		if block == nil {
			continue
		}
		t.Run(title, func(t *testing.T) {
			e, ready := load(t, text, block[1])
			for _, task := range e.Tasks {
				types[task.Part.Type] = true
			}
			expected := counts.FindAllStringSubmatch(block[1], -1)
			if len(expected) != len(e.Tasks) {
				t.Errorf("%d tasks, and the examples of %d are counted", len(e.Tasks), len(expected))
			}
			for _, want := range expected {
				examples, labelled := count(ready, want[1])
				if strconv.Itoa(examples) != want[2] || strconv.Itoa(labelled) != want[3] {
					t.Errorf("task %s: %d examples, %d with a target; the page has %s and %s", want[1], examples,
						labelled, want[2], want[3])
				}
			}
			if title == "Spans at offsets" {
				checkTags(t, ready, text)
			}
		})
		loaded++
	}
	if loaded < 20 {
		t.Errorf("%d examples on the page, want 20 or more", loaded)
	}
	for _, name := range tasks.Registry().Names() {
		if !types[name] {
			t.Errorf("the page has no example of a task of type %s", name)
		}
	}
}

// TestReadmeCSV loads the tasks of the first experiment in README.md on its CSV, with an encoder from scratch.
func TestReadmeCSV(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Your own CSV\n")
	section, _, _ = strings.Cut(section, "\n## ")
	block := yamlBlock.FindStringSubmatch(section)
	if block == nil {
		t.Fatal("no experiment in this section")
	}
	_, tasks, _ := strings.Cut(block[1], "tasks:\n")
	tasks, _, _ = strings.Cut(tasks, "training:")
	e, ready := load(t, section, tasks)
	if len(e.Tasks) != 2 {
		t.Errorf("%d tasks, want team and tone", len(e.Tasks))
	}
	for _, task := range e.Tasks {
		examples, labelled := count(ready, task.Name)
		if dev := len(ready.Data.Groups[0].Examples[config.Dev]); examples != 3 || labelled != 3 || dev != 1 {
			t.Errorf("task %s: %d examples, %d of them labelled, and %d of dev; want 3, 3 and 1 of the 4 rows",
				task.Name, examples, labelled, dev)
		}
	}
}

// load writes the files of a section of the page to a new folder, and prepares the training of an experiment with its
// tasks.
func load(t *testing.T, text, tasks string) (*config.Experiment, *run.Run) {
	t.Helper()
	t.Chdir(t.TempDir())
	files := fileBlock.FindAllStringSubmatch(text, -1)
	if len(files) == 0 {
		t.Fatal("no file in this section")
	}
	for _, file := range files {
		if err := os.MkdirAll(filepath.Dir(file[1]), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file[1], []byte(file[2]), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	experiment := `model: {encoder: {type: transformer, layers: 1, width: 8, heads: 2, feed_forward: 8}}
tokenizer: {max_length: 64, train: {vocab_size: 100}}
tasks:
` + tasks
	if err := os.WriteFile("page.yaml", []byte(experiment), 0o666); err != nil {
		t.Fatal(err)
	}
	e, err := config.Read(t.Context(), "page.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	ready, err := run.Prepare(t.Context(), e, nil, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	return e, ready
}

// count returns how many training examples a task has, and how many of them have a target for one of its heads.
func count(ready *run.Run, task string) (examples, labelled int) {
	for g := range ready.Data.Groups {
		group := &ready.Data.Groups[g]
		if group.Stream != nil { // of one head
			if of := ready.Data.Heads(group)[0]; of.Task.Name == task {
				n := ready.Data.Count(group, 0, config.Train)
				return n.Examples, n.Labelled
			}
		}
		for _, e := range group.Examples[config.Train] {
			has := false
			found := false
			for h, of := range ready.Data.Heads(group) {
				if of.Task.Name == task {
					found = true
					has = has || e.Targets[h] != nil
				}
			}
			if found {
				examples++
			}
			if has {
				labelled++
			}
		}
	}
	return examples, labelled
}

// checkTags compares the tags that the page has for the first text of a section.
func checkTags(t *testing.T, ready *run.Run, text string) {
	t.Helper()
	want := regexp.MustCompile("first text, `([^`]*)`, are `([^`]*)`").FindStringSubmatch(text)
	if want == nil {
		t.Fatal("no tags of the first text in this section")
	}
	e := ready.Data.Groups[0].Examples[config.Train][0]
	var words []string
	for _, word := range e.Words {
		words = append(words, e.Text[word.Start:word.End])
	}
	tags := outputs.AllAs[outputs.TagsTarget](e.Targets)[0].Tags
	if got := strings.Join(words, " "); got != want[1] {
		t.Errorf("words %q, want %q", got, want[1])
	}
	if got := strings.Join(tags, " "); got != want[2] {
		t.Errorf("tags %q, want %q", got, want[2])
	}
}
