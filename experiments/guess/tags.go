package guess

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// aligned reports whether a column has as many values as there are words in each record that has both.
func (s *Set) aligned(words, c *column) bool {
	_, wrong := s.tagsOf(words, c)
	return wrong == 0
}

// tagsOf returns the lists of a column that are as long as the record's words, and how many are not.
func (s *Set) tagsOf(words, c *column) (tags *column, wrong int) {
	tags = &column{name: c.name, values: map[string]int{}}
	for _, r := range s.records {
		words, _, _ := r.Strings(words.name)
		values, ok, err := r.Strings(c.name)
		switch {
		case err != nil || ok && len(values) != len(words):
			wrong++
		case ok:
			tags.add(slices.DeleteFunc(values, func(tag string) bool { return tag == "" }))
		}
	}
	return tags, wrong
}

// areTags reports whether the values of a column of lists are few, as tags of words are.
func (c *column) areTags() bool { return len(c.values)*4 <= c.items }

// isSpanTags reports whether all values of a column are span tags, or nearly all, some of them other than O.
func isSpanTags(c *column) bool {
	for value := range c.values {
		if !corpus.IsSpanTag(value) {
			return len(oddTags(c)) > 0
		}
	}
	return len(c.values) > 1
}

// oddTags lists the tags of a column that are no span tags where nearly all others are, as slips: nil if there are none
// or many.
func oddTags(c *column) []string {
	const most = 5 // different ones
	var odd []string
	all, times, inSpans := 0, 0, 0
	for tag, n := range c.values {
		all += n
		switch {
		case !corpus.IsSpanTag(tag):
			odd, times = append(odd, tag), times+n
		case tag != "O":
			inSpans += n
		}
	}
	if len(odd) > most || !isFew(times, all) || times*4 > inSpans {
		return nil
	}
	slices.Sort(odd)
	return odd
}

// nearlyAligned is aligned but for few records, as slips.
func (s *Set) nearlyAligned(words, c *column) bool {
	_, wrong := s.tagsOf(words, c)
	return isFew(wrong, c.n)
}

// isFew reports whether a number of a column's values are so few that they are mistakes.
func isFew(wrong, of int) bool { return wrong*20 <= of }

// unlike returns the task, or why there is none, of a column of which most are lists of tags of words, and some are
// texts of tags, or not as long as their words: few, or up to half if the tags are of spans. reason is "" for
// other columns.
func (s *Set) unlike(c *column) (task Task, reason string) {
	if !s.has("words") || c.lists*2 <= c.n || hint(c.name) == "id" {
		return Task{}, ""
	}
	tags, wrong := s.tagsOf(s.texts[0], c)
	few := isFew(wrong, c.n) && tags.several*2 > c.n
	if wrong == 0 && c.lists == c.n || !few && !(wrong*2 <= c.n && isSpanTags(tags)) {
		return Task{}, ""
	}
	if task, reason = tagsTask(tags); task.Type == "" || wrong == 0 {
		return task, reason
	}
	lengths := fmt.Sprintf("; the tags of %d of %s are not as many as the words: jenga check names their lines",
		wrong, records(c.n))
	task.Doubt = strings.TrimPrefix(task.Doubt+lengths, "; ")
	return task, reason + lengths
}

func tagsTask(c *column) (Task, string) {
	kinds, spans := map[string]bool{}, true
	for tag := range c.values {
		if !corpus.IsSpanTag(tag) {
			spans = false
		} else if tag != "O" {
			kinds[tag[2:]] = true
		}
	}
	words := plugin.Count(c.items, "word")
	if len(c.values) == 1 {
		return Task{}, fmt.Sprintf("one tag, %.40q", slices.Collect(maps.Keys(c.values))[0])
	}
	if len(c.values) > mostLabels {
		return Task{}, fmt.Sprintf("%d different values for %s", len(c.values), words)
	}
	var odd []string
	if !spans {
		odd = oddTags(c)
	}
	if (spans || len(odd) > 0) && len(kinds) > 0 {
		task, reason := Task{Type: "ner", Field: "tags"},
			fmt.Sprintf("tags of %s of spans in %s", plugin.Count(len(kinds), "kind"), words)
		if len(odd) > 0 {
			task.Doubt = fmt.Sprintf("tags such as %.40q are neither O nor of spans, as nearly all others are: jenga "+
				"check names their lines; type: tagging would learn them", odd[0])
			reason += "; " + task.Doubt
		}
		return task, reason
	}
	task, reason := Task{Type: "tagging", Field: "tags"},
		fmt.Sprintf("%s in %s", plugin.Count(len(c.values), "tag"), words)
	if task.Doubt = otherSpans(c); task.Doubt != "" {
		reason += "; " + task.Doubt
	}
	return task, reason
}

// otherSpans says that all tags of a column mark spans in a form that ner does not read, "" where they do not.
func otherSpans(c *column) string {
	first, form := "", ""
	for _, tag := range slices.Sorted(maps.Keys(c.values)) {
		other := corpus.OtherSpanTag(tag)
		if other == "" && tag != "O" {
			return ""
		}
		if form == "" && strings.Trim(tag, "*)") != "" {
			first, form = tag, other
		}
	}
	if form == "" {
		return ""
	}
	return fmt.Sprintf("tags such as %.40q mark spans in a form that type: ner does not read, and are learned word by "+
		"word: %s", first, form)
}
