package dataset

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// textSums are checksums of examples' texts and labels, which find duplicates without the texts.
type textSums struct {
	texts  []uint64   // 0: an empty text
	labels [][]uint32 // [head][example], 0: no target; none for a head without labels
}

// sumSeed makes the checksums differ between processes: they are in no file.
var sumSeed = maphash.MakeSeed()

// add adds the next example.
func (s *textSums) add(kinds []*outputs.Kind, e *corpus.Example) {
	sum := uint64(0)
	if text := textOf(e); text != "" {
		sum = max(1, maphash.String(sumSeed, text))
	}
	s.texts = append(s.texts, sum)
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

// duplicates are the checksums of all splits of a group, of which the training examples come first.
type duplicates struct {
	textSums
	group *Group
	dev   map[string][]uint64 // checksums of the texts of dev and test
}

// findDuplicates returns the checksums of a group.
func (d *Dataset) findDuplicates(group *Group) *duplicates {
	found := &duplicates{textSums: group.train.sums, group: group, dev: map[string][]uint64{}}
	group.train.sums = textSums{} // they take memory
	for _, split := range []string{config.Dev, config.Test} {
		before := len(found.texts)
		for _, e := range group.Examples[split] {
			found.add(group.train.kinds, e)
		}
		found.dev[split] = found.texts[before:len(found.texts):len(found.texts)]
	}
	return found
}

// place returns the place of an example.
func (d *duplicates) place(i int) corpus.Place {
	for _, split := range splits {
		n := len(d.group.Examples[split])
		if split == config.Train && d.group.Stream != nil {
			if n = d.group.train.examples; i < n {
				return d.group.Stream.place(i)
			}
		}
		if i < n {
			return d.group.Examples[split][i].Place
		}
		i -= n
	}
	panic(fmt.Sprintf("dataset: no example %d", i))
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

// inTraining counts the texts of dev and test that are in train too.
func (d *duplicates) inTraining() map[string]int {
	wanted := map[uint64]bool{} // whether it is in train
	for _, texts := range d.dev {
		for _, text := range texts {
			if text != 0 {
				wanted[text] = false
			}
		}
	}
	for _, text := range d.texts[:d.group.train.examples] {
		if _, held := wanted[text]; held {
			wanted[text] = true
		}
	}
	counts := map[string]int{}
	for split, texts := range d.dev {
		for _, text := range texts {
			if wanted[text] {
				counts[split]++
			}
		}
	}
	return counts
}
