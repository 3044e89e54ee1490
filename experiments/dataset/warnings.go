package dataset

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

func (d *Dataset) unknownLabels(group *Group, split string) {
	for h, of := range d.Heads(group) {
		kind, counts := d.Tasks[of.Number].Output(), map[string]int{}
		for _, e := range group.Examples[split] {
			for _, name := range kind.Unknown(e.Targets[h]) {
				counts[name]++
			}
		}
		if names := slices.Sorted(maps.Keys(counts)); len(names) > 0 {
			d.warn(of.Task, "%s has %s that train does not have, which %s as wrong: %s%s", group.nameOf(split),
				plugin.Count(len(names), "label"), plugin.Agree(len(names), "counts", "count"),
				withCounts(names, counts), sameNumber(names, d.Labels[of.name()].Names(), of.Head.Name))
		}
	}
}

// sameNumber returns the end of a warning of unknown labels if one of them is a number that is written otherwise in
// train, with or without a fraction of 0; else "".
func sameNumber(unknown, known []string, head string) string {
	whole := func(label string) string {
		if before, fraction, found := strings.Cut(label, "."); found && strings.Trim(fraction, "0") == "" {
			label = before
		}
		if _, err := strconv.Atoi(label); err != nil {
			return ""
		}
		return label
	}
	inTrain := map[string]string{} // by the number without a fraction
	for _, label := range slices.Backward(known) {
		inTrain[whole(label)] = label
	}
	for _, ours := range unknown {
		if n := whole(ours); n != "" && inTrain[n] != "" {
			return fmt.Sprintf("; %s is %s in train: a column with an empty cell, as pandas writes it, has "+
				"%[3]s.0 for %[3]s; write %[2]s here too, or train with label_maps: {%[4]s: {%[3]s: NAME, …}} "+
				"beside type, which reads both", corpus.QuoteUnlike(ours), corpus.QuoteUnlike(inTrain[n]), n, head)
		}
	}
	return ""
}

// unlabelled warns of training examples without a target for any head of their group: nothing is learned from them.
func (d *Dataset) unlabelled(group *Group) {
	all, n := group.surveys[config.Train].Examples, group.surveys[config.Train].Unlabelled
	heads := d.Heads(group)
	first := heads[0]
	kind := d.Tasks[first.Number].Output()
	if n == 0 || n == all || len(heads) == 1 && kind.Unlabelled(n, all) != "" {
		return // the last two are reported with the head
	}
	d.warn(first.Task, "%d of %d training examples have no %s and are not used for training", n, all,
		cmp.Or(kind.Field, "label"))
}

// fileOf returns the name of the file from which a split of the group is read.
func (g *Group) fileOf(task config.Task, split string) string {
	own := map[string]string{config.Dev: task.Data.Dev.Name, config.Test: task.Data.Test.Name}
	return cmp.Or(g.inPlace[split], own[split], TrainingFile(task.Data).Name)
}

func (d *Dataset) checkTexts(group *Group, split string) {
	s := group.surveys[split]
	if s == nil {
		return
	}
	all, empty, truncated := s.Examples, s.Empty, s.Truncated
	task, windowing := d.Experiment.Tasks[group.Tasks[0]], d.Windowing(group)
	if empty > 0 {
		d.warn(task, "%d of %s of %s %s empty", empty, plugin.Count(all, "text"), group.nameOf(split),
			plugin.Agree(empty, "is", "are"))
	}
	if n := s.EmptyPairs; n > 0 {
		d.warn(task, "%d of %s of %s %s an empty second text; first: %s", n, plugin.Count(s.Paired, "pair"),
			group.nameOf(split), plugin.Agree(n, "has", "have"), s.EmptyPair)
	}
	if n := s.Garbled; n > 0 {
		read, advice := "a program has read as cp1252", "convert the file from its source"
		if format := task.Data.FormatOf(group.fileOf(task, split)); !format.IsUTF8() {
			read, advice = "is read as "+format.Encoding, "data: {encoding: utf-8} reads the file as it is"
		}
		d.warn(task, "%d of %s of %s %s UTF-8 that %s, such as cafÃ© for café; %s; first: %s", n,
			plugin.Count(all, "text"), group.nameOf(split), plugin.Agree(n, "is", "are"), read, advice, s.Garble)
	}
	if n := s.Other; n > 0 && n*20 >= all { // of fewer, they are names, lists of letters or the like
		remedy := "convert the file from its source"
		if !trainingFormat(task).IsUTF8() {
			remedy = "encoding: NAME reads it, as cp1251, cp1253 or koi8-r"
		}
		d.warn(task, "%d of %s of %s %s of another script and read as cp1252, such as Ïðèâåò for Привет; %s; first: %s",
			n, plugin.Count(all, "text"), group.nameOf(split), plugin.Agree(n, "is", "are"), remedy, s.OtherPlace)
	}
	if n := all - s.Paired; n > 0 && n*10 <= all { // of many, both are meant
		d.warn(task, "%d of %s of %s %s no second text, unlike the others, and %s read as a single text; first: %s", n,
			plugin.Count(all, "example"), group.nameOf(split), plugin.Agree(n, "has", "have"),
			plugin.Agree(n, "is", "are each"), s.Single)
	}
	if truncated > 0 {
		d.warn(task, "%s", Truncated(truncated, plugin.Count(all, "text")+" of "+group.nameOf(split), windowing))
	}
}

func (d *Dataset) warn(task config.Task, format string, args ...any) {
	d.Warnings = append(d.Warnings, taskWarning(task, format, args...))
}

func taskWarning(task config.Task, format string, args ...any) plugin.Warning {
	return plugin.Warn(plugin.Place{}, "task %q: "+format, append([]any{task.Name}, args...)...)
}

// Truncated returns a warning that n of some texts are truncated, with the options that avoid it.
func Truncated(n int, texts string, windowing corpus.Windowing) string {
	if windowing.Windows {
		return fmt.Sprintf("%d of %s %s whose text outside the windows of %d tokens is truncated: a larger "+
			"tokenizer.max_length avoids it", n, texts, plugin.Agree(n, "is a pair", "are pairs"), windowing.MaxLength)
	}
	return fmt.Sprintf("%d of %s %s more than %d tokens and %s truncated: a larger tokenizer.max_length, or "+
		"long: windows, avoids it", n, texts, plugin.Agree(n, "has", "have"), windowing.MaxLength,
		plugin.Agree(n, "is", "are"))
}

func (d *Dataset) truncatedTargets(group *Group) {
	windowing, remedy := d.Windowing(group), "a larger max_length"
	if !windowing.Windows {
		remedy += ", or long: windows,"
	}
	for h, of := range d.Heads(group) {
		if truncated := group.surveys[config.Train].Heads[h].Truncated; truncated > 0 {
			d.warn(of.Task, "%d targets of train are not within %d tokens of their text, and are learned as no "+
				"answer: %s avoids it", truncated, windowing.MaxLength, remedy)
		}
	}
}

// CheckTargets returns the warnings of a group's tasks about the targets of a split. tunes is true if heads are tuned
// on the split.
func (d *Dataset) CheckTargets(group *Group, split string, tunes bool) (warnings []plugin.Warning) {
	for h, of := range d.Heads(group) {
		check := tasks.DescriptionOf(d.Tasks[of.Number]).CheckTargets
		if check == nil {
			continue
		}
		var targets []corpus.Target
		for _, e := range group.Examples[split] {
			targets = append(targets, e.Targets[h])
		}
		for _, warning := range check(targets, group.nameOf(split), of.Head.Name, tunes) {
			warnings = append(warnings, taskWarning(of.Task, "%s", warning))
		}
	}
	return warnings
}

// splits are all splits, in the order of warnings.
var splits = []string{config.Train, config.Dev, config.Test}

// checkQuality warns of data that can be read, but is likely to be wrong: one warning of each kind for each head.
func (d *Dataset) checkQuality(group *Group) (warnings []plugin.Warning) {
	if group.Stream != nil && group.Stream.indexed {
		return group.Stream.found.Doubts
	}
	texts := d.findDuplicates(group)
	for h, of := range d.Heads(group) {
		found := d.degenerate(group, h, of, texts.labels[h])
		if d.Tasks[of.Number].Output().HasLabels {
			counts := labelCounts(group, h)
			spans := tasks.DescriptionOf(d.Tasks[of.Number]).Spans != nil
			inTrain := group.surveys[config.Train].Heads[h].Labels
			found = append(nonEmpty(missingLabels(counts, inTrain, d.Tasks[of.Number].Output().PerWord),
				similarLabels(counts, spans), texts.contradictions(h)), found...)
		} else {
			found = append(nonEmpty(missingNumbers(group, h)), found...)
		}
		for _, warning := range found {
			warnings = append(warnings, taskWarning(of.Task, "head %q: %s", of.Head.Name, warning))
		}
	}
	if warning := texts.overlap(); warning != "" {
		warnings = append(warnings, taskWarning(d.Experiment.Tasks[group.Tasks[0]], "%s", warning))
	}
	if group.Stream != nil {
		group.Stream.found.Doubts = warnings
	}
	return warnings
}

func labelCounts(group *Group, h int) map[string]int {
	counts := map[string]int{}
	for _, s := range group.surveys {
		for name, n := range s.Heads[h].Labels {
			counts[name] += n
		}
	}
	return counts
}

// missingLabels warns of labels that may stand for a missing value; inTrain has those of the training examples. Of
// words, "." is the tag of full stops.
func missingLabels(counts, inTrain map[string]int, ofWords bool) string {
	found := corpus.LooksMissing(counts, inTrain)
	if ofWords {
		found = slices.DeleteFunc(found, func(label string) bool { return label == "." })
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("labels that may stand for a missing value are learned as labels: %s; an empty field or null "+
		"leaves an example unlabelled, as data: {missing: %s} does", withCounts(found, counts), flowList(found))
}

// missingNumbers warns of a negative number that occurs among others of which none is negative.
func missingNumbers(group *Group, h int) string {
	counts, negative, others := map[string]int{}, 0, 0
	for _, s := range group.surveys {
		negative += s.Heads[h].Negative
		others += s.Heads[h].Labelled - s.Heads[h].Negative
		for mark, n := range s.Heads[h].Marks {
			counts[mark] += n
		}
	}
	if len(counts) != 1 || others <= negative {
		return ""
	}
	mark := slices.Collect(maps.Keys(counts))[0]
	if n := counts[mark]; n < 2 || n != negative {
		return ""
	}
	return fmt.Sprintf("numbers that may stand for a missing value are learned as numbers: %s %s, and no other is "+
		"negative; data: {missing: [%[1]s]} leaves their examples unlabelled", mark, plugin.Count(negative, "time"))
}

// similarLabels warns of labels that look alike; spans: they are tags of spans.
func similarLabels(counts map[string]int, spans bool) string {
	alike := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		key := corpus.Look(name)
		alike[key] = append(alike[key], name)
	}
	maps.DeleteFunc(alike, func(_ string, names []string) bool { return len(names) < 2 })
	var found []string
	for _, key := range slices.Sorted(maps.Keys(alike)) {
		found = append(found, alike[key]...)
	}
	if len(found) == 0 {
		return ""
	}
	return "labels that differ only in white space, case, quotation marks, HTML entities, invisible characters or " +
		"Unicode normalisation are different labels: " + withCounts(found, counts) + "; data: {clean: " +
		cleanFor(alike, counts, spans) + "} reads them as one"
}

// cleanFor returns the option clean that makes one label of those that look alike: without a map, if that is enough,
// else with one to the label of each that has no more characters than are seen, and occurs most often.
func cleanFor(alike map[string][]string, counts map[string]int, spans bool) string {
	for _, option := range []struct {
		text  string
		clean config.Clean
	}{
		{"{trim: true}", config.Clean{Trim: true}}, {"{lower: true}", config.Clean{Lower: true}},
		{"{trim: true, lower: true}", config.Clean{Trim: true, Lower: true}},
	} {
		if cleans(option.clean, alike, spans) {
			return option.text
		}
	}
	const most = 12 // entries
	labels, times := map[string][]string{}, map[string]int{}
	for _, names := range alike {
		for _, name := range names {
			label := name
			if _, of, tagged := strings.Cut(name, "-"); spans && tagged {
				label = of
			}
			if times[label] == 0 {
				labels[corpus.Look(label)] = append(labels[corpus.Look(label)], label)
			}
			times[label] += counts[name]
		}
	}
	plain := func(label string) int {
		if strings.ToLower(strings.ReplaceAll(label, " ", "")) == corpus.Look(label) {
			return 1
		}
		return 0
	}
	var entries []string
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		slices.Sort(labels[key])
		to := slices.MaxFunc(labels[key], func(a, b string) int {
			return cmp.Or(plain(a)-plain(b), times[a]-times[b], len(b)-len(a))
		})
		for _, label := range labels[key] {
			if label != to {
				entries = append(entries, flow(label)+": "+flow(to))
			}
		}
	}
	if len(entries) > most {
		entries = append(entries[:most], "…")
	}
	return "{map: {" + strings.Join(entries, ", ") + "}}"
}

// cleans reports whether clean reads labels that look alike as one.
func cleans(clean config.Clean, alike map[string][]string, spans bool) bool {
	for _, names := range alike {
		if slices.ContainsFunc(names, func(name string) bool {
			return clean.Label(name, spans) != clean.Label(names[0], spans)
		}) {
			return false
		}
	}
	return true
}

func withCounts(names []string, counts map[string]int) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = corpus.QuoteUnlike(name) + " " + plugin.Count(counts[name], "time")
	}
	return list(shown)
}

// namesOf returns the labels of a target as one text: of tags in their order, else sorted.
func namesOf(kind *outputs.Kind, target corpus.Target) string {
	var names []string
	kind.Names(target, func(name *string) { names = append(names, *name) })
	if !kind.PerWord {
		slices.Sort(names)
	}
	return strings.Join(names, "\x00")
}

type textSums struct {
	texts  []uint64   // 0: an empty text
	labels [][]uint32 // [head][example], 0: no target; none for a head without labels

	last    string // second text of a pair: many questions follow one another that have the same context
	lastSum uint64
}

// sumSeed makes the checksums differ between processes: they are in no file.
var sumSeed = maphash.MakeSeed()

func (s *textSums) add(kinds []*outputs.Kind, e *corpus.Example) {
	s.texts = append(s.texts, s.of(e))
	for h, kind := range kinds {
		if !kind.HasLabels {
			continue
		}
		labels := uint32(0)
		if e.Targets[h] != nil {
			labels = max(1, uint32(maphash.String(sumSeed, namesOf(kind, e.Targets[h]))))
		}
		s.labels[h] = append(s.labels[h], labels)
	}
}

// of returns a checksum that two examples have in common that have the same text, and pair; 0 for an empty text.
func (s *textSums) of(e *corpus.Example) uint64 {
	text, pair := strings.TrimSpace(e.Text), strings.TrimSpace(e.Pair)
	if text == "" && pair == "" {
		return 0
	}
	if pair != s.last {
		s.last, s.lastSum = pair, maphash.String(sumSeed, pair)
	}
	both := struct {
		text string
		pair uint64
	}{text, s.lastSum}
	if pair == "" {
		both.pair = 0
	}
	return max(1, maphash.Comparable(sumSeed, both))
}

// duplicates are the checksums of all splits of a group, of which the training examples come first.
type duplicates struct {
	textSums
	data  *Dataset
	group *Group
	dev   map[string][]uint64 // checksums of the texts of dev and test
}

// findDuplicates returns the checksums of a group, which it takes from the surveys: they need memory.
func (d *Dataset) findDuplicates(group *Group) *duplicates {
	found := &duplicates{textSums: group.surveys[config.Train].sums, data: d, group: group, dev: map[string][]uint64{}}
	for _, split := range []string{config.Dev, config.Test} {
		if s := group.surveys[split]; s != nil {
			found.dev[split] = s.sums.texts
			found.texts = append(found.texts, s.sums.texts...)
			for h, labels := range s.sums.labels {
				found.labels[h] = append(found.labels[h], labels...)
			}
		}
	}
	for _, s := range group.surveys {
		s.sums = textSums{}
	}
	return found
}

func (d *duplicates) place(i int) corpus.Place {
	if s := d.group.Stream; s != nil {
		if i < s.count() {
			return s.place(i)
		}
		i -= s.count()
	}
	return slices.Concat(d.group.Examples[config.Train], d.group.Examples[config.Dev],
		d.group.Examples[config.Test])[i].Place
}

// contradictions returns a warning of texts that have different labels for head h in different examples, "" if there
// are none. Unlabelled examples contradict none.
func (d *duplicates) contradictions(h int) string {
	labels := d.labels[h]
	var order []uint32 // of labelled texts, equal ones beside one another
	for i, text := range d.texts {
		if text != 0 && labels[i] != 0 {
			order = append(order, uint32(i))
		}
	}
	slices.SortFunc(order, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(d.texts[a], d.texts[b]), cmp.Compare(a, b))
	})

	n, first, other := 0, 0, len(d.texts) // the contradiction that is found first in the order of examples
	for from := 0; from < len(order); {
		i, contradicts := from+1, false
		for ; i < len(order) && d.texts[order[i]] == d.texts[order[from]]; i++ {
			if contradicts || labels[order[i]] == labels[order[from]] {
				continue
			}
			contradicts = true
			if n++; int(order[i]) < other {
				first, other = int(order[from]), int(order[i])
			}
		}
		from = i
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("different labels for the same text: %s, as that of %s and %s", plugin.Count(n, "text"),
		d.place(first), d.place(other))
}

func (d *duplicates) overlap() string {
	inTrain := map[uint64]bool{} // of the texts of dev and test
	for _, texts := range d.dev {
		for _, text := range texts {
			inTrain[text] = false
		}
	}
	delete(inTrain, 0)
	for _, text := range d.texts[:d.group.surveys[config.Train].Examples] {
		if _, held := inTrain[text]; held {
			inTrain[text] = true
		}
	}
	var found []string
	shared := 0
	for _, split := range []string{config.Dev, config.Test} {
		n := 0
		for _, text := range d.dev[split] {
			if inTrain[text] {
				n++
			}
		}
		if shared += n; n > 0 {
			found = append(found, fmt.Sprintf("%d of %s of %s", n, plugin.Count(len(d.dev[split]), "text"), split))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, " and ") + plugin.Agree(shared, " is in train too: metrics on it say",
		" are in train too: metrics on them say") + " nothing about new texts" + d.apart()
}

// apart says how texts that are the same stay in one split, "" where no file is divided, or its records name their
// splits: by the field of the text.
func (d *duplicates) apart() string {
	data := d.data.Experiment.Tasks[d.group.Tasks[0]].Data
	if d.group.Divided == nil || data.Split.Column != "" {
		return ""
	}
	first := d.group.first[d.group.Tasks[0]]
	field, _ := first.TextFields()
	if theirs := data.Format.Fields[field]; theirs != "" {
		field = theirs
	}
	if _, ok, err := first.String(field); err != nil || !ok {
		return ""
	}
	return fmt.Sprintf("; data: {split: {by: %s}} keeps the same texts in one split", flow(field))
}
