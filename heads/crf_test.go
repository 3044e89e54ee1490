package heads

import (
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestBIOTransitions(t *testing.T) {
	for _, c := range []struct {
		scheme             string
		labels             []string
		allowed, forbidden string // transitions; ^ is the start, $ the end
	}{
		{"BIO", []string{"O", "B-x", "I-x", "B-y", "I-y"},
			"^,O ^,B-x O,$ O,B-x B-x,I-x I-x,I-x I-x,B-x I-x,B-y B-x,B-x B-x,O I-x,O I-x,$ B-x,$",
			"^,I-x O,I-x B-x,I-y I-y,I-x"},
		{"BIOES", []string{"O", "B-x", "I-x", "E-x", "S-x", "S-y"},
			"^,B-x ^,S-x B-x,I-x B-x,E-x I-x,E-x I-x,I-x E-x,S-x E-x,O S-x,B-x S-y,O E-x,$ S-x,$",
			"^,I-x ^,E-x B-x,O B-x,B-x B-x,S-y I-x,O O,E-x E-x,I-x B-x,$ I-x,$"},
		{"IO", []string{"O", "I-x", "I-y"}, "^,I-x O,I-x I-x,I-y I-x,$ I-x,O", ""},
	} {
		t.Run(c.scheme, func(t *testing.T) {
			transitions := bioTransitions(c.labels)
			state := func(name string) int {
				switch name {
				case "^":
					return transitions.Start()
				case "$":
					return transitions.End()
				}
				return slices.Index(c.labels, name)
			}
			for want, pairs := range map[bool]string{true: c.allowed, false: c.forbidden} {
				for pair := range strings.FieldsSeq(pairs) {
					from, to, _ := strings.Cut(pair, ",")
					if got := transitions.Allowed(state(from), state(to)); got != want {
						t.Errorf("transition %s allowed: %v, want %v", pair, got, want)
					}
				}
			}
		})
	}
}

func TestForbiddenTransitionsOfTargetsAreErrors(t *testing.T) {
	env := Env{Output: outputs.Tags, Labels: []string{"O", "B-x", "I-x"}, Width: 2, Params: nn.NewParams(1)}
	made, err := newCRF(CRFOptions{Constraints: "bio"}, env)
	if err != nil {
		t.Fatal(err)
	}
	check := made.Describe().CheckTarget
	for _, c := range []struct {
		ids  []int
		want string
	}{
		{[]int{0, 1, 2, 2}, ""},
		{nil, ""},
		{[]int{0, 2}, `tag 2 is "I-x" after "O", which constraints: bio forbids; the task's broken_tags: repair fixes it`},
		{[]int{2}, `the first tag is "I-x"`},
		{[]int{corpus.Unknown, 2}, ""},
		{[]int{corpus.Unlabelled, 0, 2}, `tag 3 is "I-x" after "O"`},
	} {
		err := check(tagged(c.ids...))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("tags %v: error %v, want %q", c.ids, err, c.want)
		}
	}
}

func TestUntaggedWordsWithoutAllowedTagAreErrors(t *testing.T) {
	env := Env{Output: outputs.Tags, Labels: []string{"O", "B-x", "E-x", "S-x"}, Width: 2, Params: nn.NewParams(1)}
	h, err := newCRF(CRFOptions{Constraints: "bio"}, env)
	if err != nil {
		t.Fatal(err)
	}
	between := tagged(1, corpus.Unlabelled, 2) // a span of x without tags inside
	if err := h.Describe().CheckTarget(between); err == nil || !strings.Contains(err.Error(), "tag those words") {
		t.Errorf("error %v, want one: no sequence of tags is allowed", err)
	}
}

func TestConstrainedLossIsFinite(t *testing.T) {
	bioes := []string{"O", "B-x", "I-x", "E-x", "S-x"}
	const free = corpus.Unlabelled
	for _, c := range []struct {
		name   string
		labels []string
		ids    []int // of the tags of the words
		noRow  []int // words without a row
		loss   bool
	}{
		{"allowed tags", bioes, []int{0, 1, 2, 3, 4}, nil, true},
		{"a forbidden transition after a word without a tag", []string{"O", "B-x", "I-x"}, []int{free, 0, 2}, nil,
			false},
		{"a tag that is not in training, between two that require it", []string{"O", "B-x", "E-x"},
			[]int{1, corpus.Unknown, 2}, nil, false},
		{"a span that is truncated", bioes, []int{0, 1, free, free}, []int{2, 3}, true},
		{"a first word without a token", bioes, []int{free, 2, 3}, []int{0}, true},
		{"a word without a token inside a span", bioes, []int{1, free, 3}, []int{1}, true},
		{"no known tag", bioes, []int{free, corpus.Unknown}, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			env := Env{Output: outputs.Tags, Labels: c.labels, Width: 2, Params: nn.NewParams(1)}
			h, err := newCRF(CRFOptions{Constraints: "bio"}, env)
			if err != nil {
				t.Fatal(err)
			}
			rows := nn.Rows{Starts: []int{0, len(c.ids) + 2}, Example: []int{0}, WordCount: []int{len(c.ids)}}
			var logits [][]float32
			for w := range c.ids {
				if !slices.Contains(c.noRow, w) {
					rows.Words, rows.WordIndex = append(rows.Words, 1+w), append(rows.WordIndex, w)
					logits = append(logits, make([]float32, len(c.labels)))
				}
			}
			p := nn.NewPass(1)
			all, gold := scoresOf(p, rows, logits...), []corpus.Target{tagged(c.ids...)}
			loss := h.Loss(p, all, gold)
			if units := h.Units(gold); (loss != nil) != c.loss || (units > 0) != c.loss {
				t.Fatalf("has a loss: %v, of %v units; want %v", loss != nil, units, c.loss)
			}
			if loss == nil {
				return
			}
			if got := lossOf(t, p, loss); !(got > 0 && got < 100) {
				t.Errorf("loss %v, want a finite one", got)
			}
			tags := outputs.As[outputs.TagsPrediction](h.Predict(all)[0]).IDs
			for w, tag := range tags {
				if (tag < 0) != slices.Contains(c.noRow, w) {
					t.Errorf("word %d has tag %d", w, tag)
				}
			}
		})
	}
}

func TestConstraintsWithoutAllowedTagsAreErrors(t *testing.T) {
	env := Env{Output: outputs.Tags, Labels: []string{"B-x", "E-x"}, Width: 2, Params: nn.NewParams(1)}
	if _, err := newCRF(CRFOptions{Constraints: "bio"}, env); err == nil ||
		!strings.Contains(err.Error(), "none can stand alone") {
		t.Errorf("error %v", err)
	}
	env.Labels, env.Params = []string{"NOUN", "VERB"}, nn.NewParams(1)
	h, err := newCRF(CRFOptions{Constraints: "bio"}, env)
	if err != nil {
		t.Fatal(err)
	}
	if warnings := h.Describe().Warnings; len(warnings) != 1 {
		t.Errorf("warnings %q, want one: nothing is forbidden", warnings)
	}
}
