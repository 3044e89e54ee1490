package predict

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/outputs"
)

// sentence is a sentence of Universal Dependencies: its text, and of each word the span, the part of speech and the
// tag of the names and numbers in it.
type sentence struct {
	text       string
	words      []corpus.Span
	upos, tags []string
	lines      string // of the CoNLL-U file, with tags as xpos
}

// udSentences reads every step-th sentence of a file, limit at most. Names are the runs of proper nouns, numbers those
// of numerals: the corpus has no entities.
func udSentences(t *testing.T, path string, step, limit int) []sentence {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var all []sentence
	for i, block := range strings.Split(strings.TrimSpace(string(file)), "\n\n") {
		if i%step == 0 && len(all) < limit {
			all = append(all, udSentence(t, block))
		}
	}
	return all
}

func udSentence(t *testing.T, block string) sentence {
	t.Helper()
	var s sentence
	end, before := 0, "" // of the last word, and its label
	for line := range strings.Lines(block) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(line, "# text = "); ok {
			s.text, s.lines = text, line+"\n"
		}
		cells := strings.Split(line, "\t")
		if len(cells) != 10 || strings.ContainsAny(cells[0], "-.") {
			continue
		}
		at := strings.Index(s.text[end:], cells[1])
		if at < 0 || strings.TrimSpace(s.text[end:end+at]) != "" {
			t.Fatalf("%q does not go on with %q", s.text[:end], cells[1])
		}
		s.words = append(s.words, corpus.Span{Start: end + at, End: end + at + len(cells[1])})
		end += at + len(cells[1])
		label := map[string]string{"PROPN": "name", "NUM": "number"}[cells[3]]
		tag := "O"
		switch {
		case label != "" && label == before:
			tag = "I-" + label
		case label != "":
			tag = "B-" + label
		}
		before, cells[4] = label, tag
		s.upos, s.tags = append(s.upos, cells[3]), append(s.tags, tag)
		s.lines += strings.Join(cells, "\t") + "\n"
	}
	return s
}

// writeSentences writes sentences as a file of CoNLL-U.
func writeSentences(t *testing.T, name string, all []sentence) {
	t.Helper()
	var text strings.Builder
	for _, s := range all {
		text.WriteString(s.lines + "\n")
	}
	if err := os.WriteFile(name, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// spansAt returns the spans that tags mark, with offsets in characters.
func (s *sentence) spansAt() map[string]bool {
	found := map[string]bool{}
	for i := 0; i < len(s.tags); i++ {
		if !strings.HasPrefix(s.tags[i], "B-") {
			continue
		}
		last := i
		for last+1 < len(s.tags) && strings.HasPrefix(s.tags[last+1], "I-") {
			last++
		}
		start := utf8.RuneCountInString(s.text[:s.words[i].Start])
		end := start + utf8.RuneCountInString(s.text[s.words[i].Start:s.words[last].End])
		found[fmt.Sprint(s.tags[i][2:], start, end)] = true
	}
	return found
}

// agreement has the counts of predictions for sentences.
type agreement struct {
	rightSpans, goldSpans, foundSpans         int
	goldWords, foundWords, aligned, rightTags int // aligned: words with the characters of a gold word
}

func (a *agreement) add(s *sentence, p *Prediction) {
	gold := s.spansAt()
	a.goldSpans += len(gold)
	for _, span := range p.Tasks["names"]["names"].(outputs.TagsAnswer).Spans {
		a.foundSpans++
		if gold[fmt.Sprint(span.Label, span.Start, span.End)] {
			a.rightSpans++
		}
	}
	tags := p.Data["pos"]["pos"].([]*string)
	a.goldWords, a.foundWords = a.goldWords+len(s.words), a.foundWords+len(p.Words)
	for i, word := range s.words {
		if at := slices.Index(p.Words, word); at >= 0 {
			a.aligned++
			if tags[at] != nil && *tags[at] == s.upos[i] {
				a.rightTags++
			}
		}
	}
}

func (a *agreement) spanF1() float64 {
	return 200 * float64(a.rightSpans) / float64(a.goldSpans+a.foundSpans)
}

func (a *agreement) String() string {
	return fmt.Sprintf("span F1 %.2f; words aligned %.2f, their F1 %.2f; tags right of these %.2f, of all words %.2f",
		a.spanF1(), 100*float64(a.aligned)/float64(a.goldWords),
		200*float64(a.aligned)/float64(a.goldWords+a.foundWords),
		100*float64(a.rightTags)/float64(a.aligned), 100*float64(a.rightTags)/float64(a.goldWords))
}

// A model that was trained on the words of a treebank should find the same spans in plain text: the F1 of spans by
// characters at most 3 points lower than for given words, on 400 sentences.
func TestPlainTextIsPredictedAsGivenWordsAre(t *testing.T) {
	shared.SkipUnlessLong(t)
	dir := shared.Dir(t)
	t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
	t.Chdir(t.TempDir())
	split := func(name string, step, limit int) []sentence {
		return udSentences(t, filepath.Join(dir, "data/ud_ewt/en_ewt-ud-"+name+".conllu"), step, limit)
	}
	writeSentences(t, "train.conllu", split("train", 6, 2000))
	writeSentences(t, "dev.conllu", split("dev", 5, 400))
	const experiment = `
model: {base_model: minilm-l6, dropout: 0.1}
tokenizer: {max_length: 128}
tasks:
  - {name: pos, type: tagging, data: {train: train.conllu, dev: dev.conllu}}
  - {name: names, type: ner, data: {same_as: pos, tags: xpos}}
training: {learning_rate: 2.0e-4, batch_size: 16, num_epochs: 2, warmup_ratio: 0.1}
`
	if err := os.WriteFile("exp.yaml", []byte(experiment), 0o600); err != nil {
		t.Fatal(err)
	}
	trainSmall(t, "exp.yaml", "run")

	test := split("test", 5, 400)
	metrics := map[string]*agreement{}
	for _, way := range []string{"given words", "auto", "clitics", "ends", "punctuation"} {
		metrics[way] = agreementOf(t, test, way)
		t.Logf("%s: %s", way, metrics[way])
	}
	if given, plain := metrics["given words"].spanF1(), metrics["auto"].spanF1(); !(plain >= given-3) || given < 75 {
		t.Errorf("span F1 %.2f for plain text, %.2f for given words; want 3 less at most", plain, given)
	}
}

// agreementOf predicts for sentences with the run in the folder run: for given words, or for plain text that is split
// in a way, auto being the run's own.
func agreementOf(t *testing.T, test []sentence, way string) *agreement {
	t.Helper()
	opened, err := OpenRun(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	examples := make([]*corpus.Example, len(test))
	for i, s := range test {
		examples[i] = &corpus.Example{Text: s.text}
		if way == "given words" {
			examples[i].Words = s.words
		}
	}
	if way != "given words" && way != "auto" {
		for i := range opened.Data.Experiment.Tasks {
			opened.Data.Experiment.Tasks[i].Data.SplitWords = way
		}
	}
	predictions, err := opened.answer(t, Form{}, examples)
	if err != nil {
		t.Fatal(err)
	}
	var a agreement
	for i := range predictions {
		a.add(&test[i], &predictions[i])
	}
	return &a
}
