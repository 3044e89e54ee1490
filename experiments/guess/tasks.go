package guess

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
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
		task.Head = []Option{{"type", "span"}, {"no_answer", true}}
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

// most labels of a classification.
const mostLabels = 500

// targets makes a task of each column that holds labels. Of columns without names only the one next to the text is
// taken: the others are as often years, sources and numbers of texts.
func (a *assigner) targets() {
	var found []Task
	var at []string // column of each
	for _, c := range a.columns {
		if a.used[c.name] || c.n == 0 {
			continue
		}
		task, reason := a.target(c)
		if task == nil {
			a.note(fmt.Sprintf("%s is left out: %s", c.name, reason))
			continue
		}
		task.Name, task.Reason = c.name, fmt.Sprintf("%s: %s", c.name, reason)
		if c.missing > 0 {
			task.Reason += fmt.Sprintf("; %s without a value", a.rows(c.missing))
		}
		found, at = append(found, *task), append(at, c.name)
	}
	if len(found) > 1 && a.Format.NoHeader && a.Format.Delimiter != " " {
		best := 0
		for i := range found {
			if a.distance(at[i]) <= a.distance(at[best]) {
				best = i
			}
		}
		for i := range found {
			if i != best {
				a.note(fmt.Sprintf("column %s; it is left out, as it is not next to the text", found[i].Reason))
			}
		}
		found = found[best : best+1]
	}
	a.Tasks = append(a.Tasks, found...)
	a.similarity()
}

// distance returns how many columns lie between a column and the nearest text, for columns that have numbers.
func (a *assigner) distance(name string) int {
	at, _ := strconv.Atoi(name)
	least := math.MaxInt
	for _, text := range a.texts {
		i, _ := strconv.Atoi(text)
		least = min(least, max(i-at, at-i))
	}
	return least
}

// similarity makes a similarity of a number about a pair, if it is the only task: the two texts of a pair are encoded
// separately then.
func (a *assigner) similarity() {
	paired := slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Name == "pair" })
	if !paired || len(a.Tasks) != 1 || a.Tasks[0].Type != "regression" {
		return
	}
	t := &a.Tasks[0]
	c := a.column(t.Fields[0].Column)
	t.Type = "similarity"
	t.Head = []Option{{"type", "similarity"}, {"range", []float64{math.Floor(min(c.least, 0)), math.Ceil(c.most)}}}
	t.Reason += "; of pairs: their similarity. type: regression would encode the two texts together"
}

// target returns the task that a column allows, nil with the reason if it allows none.
func (a *assigner) target(c *column) (task *Task, reason string) {
	words := slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Name == "words" })
	switch {
	case words && c.lists == c.n && a.aligned(c):
		return tagsTask(c)
	case c.lists == c.n && c.objectItems == c.listItems && c.listItems > 0:
		return a.entities(c)
	case c.objects == c.n:
		return a.lists(c)
	case c.lists == c.n && c.objectItems == 0 && c.listItems > 0 && len(c.items)*2 <= c.listItems+2:
		return &Task{Type: "multi_label", Fields: []Field{{"labels", c.name}}},
			fmt.Sprintf("lists of %s in %s", plugin.Count(len(c.items), "label"), a.rows(c.n))
	case !c.isSingle():
		return nil, "lists, objects or both, which are no labels"
	case hint(c.name) == "id":
		return nil, "no label by its name"
	case !words && !c.isNumeric() && a.tagged(c):
		a.Fields[0].Name = "words" // the text's words, with blanks between
		task, reason := tagsTask(c.split())
		return task, reason + ", one for each word of the text between blanks"
	case c.isNumeric():
		return a.number(c)
	}
	return a.label(c)
}

// aligned reports whether a column has a list as long as that of the words in each record that has both.
func (a *assigner) aligned(c *column) bool {
	for _, r := range a.records {
		words, _, _ := r.Strings(a.texts[0])
		tags, ok, err := r.Strings(c.name)
		if err != nil || ok && len(tags) != len(words) {
			return false
		}
	}
	return true
}

// tagged reports whether a column of texts has a tag for each word of the text between blanks.
func (a *assigner) tagged(c *column) bool { return len(a.texts) == 1 && c.words > c.n && a.aligned(c) }

// split returns the column with the words of its texts as items of lists.
func (c *column) split() *column {
	s := &column{name: c.name, n: c.n, items: map[string]int{}}
	for text, n := range c.values {
		for _, tag := range strings.Fields(text) {
			s.items[tag] += n
			s.listItems += n
		}
	}
	return s
}

// spanTag matches tags that mark spans, in BIO or BIOES.
var spanTag = regexp.MustCompile(`^(O|[BIES]-.+)$`)

// tagsTask makes a task of a tag for each word.
func tagsTask(c *column) (*Task, string) {
	task := &Task{Type: "ner", Fields: []Field{{"tags", c.name}}}
	labels := map[string]bool{}
	for tag := range c.items {
		if !spanTag.MatchString(tag) {
			task.Type = "tagging"
		} else if tag != "O" {
			labels[tag[2:]] = true
		}
	}
	if task.Type == "ner" && len(labels) > 0 {
		return task, fmt.Sprintf("tags of %s in %s", plugin.Count(len(labels), "kind")+" of spans",
			plugin.Count(c.listItems, "word"))
	}
	task.Type = "tagging"
	return task, fmt.Sprintf("%s in %s", plugin.Count(len(c.items), "tag"), plugin.Count(c.listItems, "word"))
}

// entities makes a task of labelled spans at offsets.
func (a *assigner) entities(c *column) (*Task, string) {
	labels, problems := map[string]bool{}, 0
	for _, r := range a.records {
		text, _, _ := r.String(a.texts[0])
		r.Fields = map[string]any{"entities": r.Fields[c.name]}
		entities, _, err := r.Entities(text)
		if err != nil {
			problems++
		}
		for _, e := range entities {
			labels[e.Label] = true
		}
	}
	if len(labels) == 0 {
		return nil, `lists of objects other than {"start", "end", "label"}`
	}
	reason := fmt.Sprintf("%s of %s in %s", plugin.Count(c.listItems, "span"), plugin.Count(len(labels), "kind"),
		a.rows(c.n))
	if problems > 0 {
		reason += fmt.Sprintf("; %d are mistaken, and jenga check lists them", problems)
	}
	return &Task{Type: "ner", Fields: []Field{{"entities", c.name}}}, reason
}

// lists makes a task of objects with lists of 0 and 1, the answers to lists of questions.
func (a *assigner) lists(c *column) (*Task, string) {
	heads := map[string]bool{}
	for _, r := range a.records {
		value := r.Fields[c.name]
		if text, ok := value.(string); ok {
			value, _ = corpus.ParseJSON(text)
		}
		object, _ := value.(map[string]any)
		for name, list := range object {
			items, ok := list.([]any)
			if !ok || nameOf(name) != name || slices.ContainsFunc(items, func(item any) bool {
				return item != json.Number("0") && item != json.Number("1")
			}) {
				return nil, "an object; jenga reads values, lists, and objects of lists of 0 and 1"
			}
			heads[name] = true
		}
	}
	if len(heads) == 0 {
		return nil, "empty objects"
	}
	return &Task{Type: "qa_qc", Fields: []Field{{"labels", c.name}}, Heads: slices.Sorted(maps.Keys(heads))},
		fmt.Sprintf("%s of 0 and 1 in %s", plugin.Count(len(heads), "list"), a.rows(c.n))
}

// number makes a task of a column of numbers: labels if they are few whole ones.
func (a *assigner) number(c *column) (*Task, string) {
	different := len(c.values)
	class := &Task{Type: "classification", Fields: []Field{{"label", c.name}}}
	switch h := hint(c.name); {
	case different == 1:
		return nil, fmt.Sprintf("one value, %s", c.one())
	case c.whole == c.n && (h == "label" && different <= mostLabels && different*2 <= c.n || different == 2):
		return class, fmt.Sprintf("%d labels in %s", different, a.rows(c.n))
	case c.whole == c.n && h != "number" && (c.increasing || different == c.n):
		return nil, fmt.Sprintf("another number in each of %s", a.rows(c.n))
	case c.whole == c.n && h != "number" && different <= 20:
		return class, fmt.Sprintf("%d labels in %s; type: regression would predict a number", different, a.rows(c.n))
	case max(-c.least, c.most) > outputs.LargestNumber:
		return nil, fmt.Sprintf("numbers up to %g; rescale them", max(-c.least, c.most))
	}
	return &Task{Type: "regression", Fields: []Field{{"value", c.name}}},
		fmt.Sprintf("%d different numbers from %v to %v in %s", different, c.least, c.most, a.rows(c.n))
}

// label makes a task of a column of texts: one label each, or several.
func (a *assigner) label(c *column) (*Task, string) {
	different, isNamed := len(c.values), hint(c.name) == "label"
	switch {
	case different == 1 && !(isNamed && !a.isWhole()):
		return nil, fmt.Sprintf("one value, %s", c.one())
	case c.separator != "":
		task := &Task{Type: "multi_label", Fields: []Field{{"labels", c.name}}}
		if c.separator != "," {
			task.Options = []Option{{"separator", c.separator}}
		}
		return task, fmt.Sprintf("%s in %s, %d with several and %q between them", plugin.Count(len(c.items), "label"),
			a.rows(c.n), c.separate, c.separator)
	case c.mostCharacters > 100:
		return nil, fmt.Sprintf("values of up to %d characters", c.mostCharacters)
	case different <= mostLabels && (different*2 <= c.n || isNamed && different*5 <= c.n*4):
		return &Task{Type: "classification", Fields: []Field{{"label", c.name}}},
			fmt.Sprintf("%s in %s", plugin.Count(different, "label"), a.rows(c.n))
	}
	return nil, fmt.Sprintf("%d different values in %s", different, a.rows(c.n))
}

// one returns the value of a column that has only one.
func (c *column) one() string {
	for value := range c.values {
		return strconv.Quote(start(value))
	}
	return ""
}
