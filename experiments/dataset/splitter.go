package dataset

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
)

const (
	splitExamples  = 2000 // training examples that the ways to split words are compared by
	goodAgreement  = 0.98 // below, predictions for plain text have other words than the data
	clearAdvantage = 0.01 // of another way over the tokenizer's, to be chosen
)

// chooseSplitter sets split_words of a group's tasks, if it is not set and the training data gives the words, to the
// way that agrees best with them, before other files are read. It returns a warning if no way agrees well.
func (d *Dataset) chooseSplitter(group *Group) ([]string, error) {
	perWord := func(number int) bool { return d.Tasks[number].Output().PerWord }
	if !slices.ContainsFunc(group.Tasks, perWord) {
		return nil, nil
	}
	given, err := d.wordsGiven(group)
	if err != nil || len(given) == 0 {
		return nil, err
	}
	first := d.Experiment.Tasks[group.Tasks[0]]
	agreement := func(way string) float64 {
		return corpus.SplitAgreement(corpus.Splitter(way, d.Tokenizer), given)
	}

	// the best way, of equal ones the first
	way := first.Data.SplitWords
	if way == "" {
		way = corpus.SplitPunctuation
		best := agreement(way) + clearAdvantage
		for _, other := range []string{corpus.SplitEnds, corpus.SplitClitics, corpus.SplitTreebank,
			corpus.SplitWhitespace} {
			if f1 := agreement(other); f1 > best {
				way, best = other, f1
			}
		}
		for _, number := range group.Tasks {
			d.Experiment.Tasks[number].Data.SplitWords = way
			d.splitters[number] = corpus.Splitter(way, d.Tokenizer)
		}
	}
	if f1 := agreement(way); f1 < goodAgreement {
		for _, number := range group.Tasks {
			d.SplitAgreement[d.Experiment.Tasks[number].Name] = f1
		}
		return []string{taskWarning(first, "plain texts are split into words by split_words: %s, which agrees with "+
			"the words of the training data by F1 %.1f %%; predictions for given words are better", way, 100*f1)}, nil
	}
	return nil, nil
}
