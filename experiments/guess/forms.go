package guess

import (
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// sentences finds words given one by one: those of conll and slots, or lists.
func (a *assigner) sentences() bool {
	var words *column
	for _, c := range a.columns {
		if named(c.name, "words") && c.lists == c.n && c.n > 0 && c.flags+c.objectItems == 0 {
			words = c
			break
		}
	}
	if words == nil {
		return false
	}
	a.use("words", words.name)
	a.note(fmt.Sprintf("words: %s, %s in %s", words.name, plugin.Count(words.listItems, "word"), a.rows(words.n)))
	kind := corpus.FileType(a.Train)
	if a.Format.Type != "" {
		kind = a.Format.Type
	}
	if kind == "conllu" || kind == "conll" {
		for _, c := range a.columns { // words and tags are copies of two of them
			if c.name != "words" && c.name != "tags" {
				a.used[c.name] = true
			}
		}
		if kind == "conllu" {
			a.note("tags: upos; data: {tags: xpos} would read another column: lemma, xpos, feats, deprel")
		} else if n := len(a.columns) - 2; n > 2 {
			a.note(fmt.Sprintf("tags: the last of %d columns; data: {tags: \"2\"} would read the second", n))
		}
		return true
	}

	// the text of the words, if it has nothing else
	for _, c := range a.columns {
		if c.name == words.name || !named(c.name, "text") || !c.isSingle() {
			continue
		}
		if a.made(map[string]string{"words": words.name, "text": c.name}) {
			a.use("text", c.name)
			break
		}
	}
	return true
}

// made reports whether examples can be made of the first records with columns as fields.
func (a *assigner) made(fields map[string]string) bool {
	first := a.records[:min(len(a.records), 200)]
	renamed, err := corpus.Format{Fields: fields}.Rename(a.Train, first)
	if err != nil {
		return false
	}
	for _, r := range renamed {
		if _, err := r.Example(); err != nil {
			return false
		}
	}
	return true
}

// questions finds questions about contexts with extracted answers.
func (a *assigner) questions() bool {
	var question, context, answers string
	for _, c := range a.columns {
		switch {
		case named(c.name, "question") && c.isSingle() && question == "":
			question = c.name
		case named(c.name, "context") && c.isSingle() && context == "":
			context = c.name
		case strings.HasPrefix(strings.ToLower(c.name), "answer") && c.n > 0 && answers == "":
			answers = c.name
		}
	}
	if question == "" || context == "" || answers == "" {
		return false
	}
	n, found, without, problems := 0, 0, 0, 0
	for _, r := range a.records {
		text, _, _ := r.String(context)
		r.Fields = map[string]any{"answers": r.Fields[answers], "is_impossible": r.Fields["is_impossible"]}
		spans, ok, err := r.Answers(text)
		switch n++; {
		case err != nil:
			problems++
		case !ok:
		case len(spans) == 0:
			without++
		default:
			found++
		}
	}
	if found == 0 || problems*10 > n {
		return false
	}

	a.use("question", question)
	a.use("context", context)
	a.used[answers] = true
	a.used["is_impossible"] = true
	task := Task{Name: "answer", Type: "question_answering", Fields: []Field{{"answers", answers}},
		Reason: fmt.Sprintf("answers: %d of %s are parts of their context", found, a.rows(n))}
	if without > 0 {
		task.Head = "type: span, no_answer: true"
		task.Reason += fmt.Sprintf(", %d have no answer", without)
	}
	if problems > 0 {
		task.Reason += fmt.Sprintf("; %d are not, and jenga check lists them", problems)
	}
	a.Tasks = append(a.Tasks, task)
	if c := a.column("title"); c != nil && len(c.values) > 1 && len(c.values)*2 <= c.n {
		a.By, a.used["title"] = "title", true
		a.note(fmt.Sprintf("split by title: no article is in two splits; %d articles", len(c.values)))
	}
	return true
}
