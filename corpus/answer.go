package corpus

import "slices"

// Answer is the kind of answer that a task asks for and a head gives.
type Answer int

const (
	OneLabel     Answer = iota // one of several labels for a text
	TagPerWord                 // one tag for each word
	ManyLabels                 // any number of labels for a text
	Number                     // a number for a text
	Quoted                     // a part of the pair's second text
	Likeness                   // how alike the texts of a pair are, a number; each is encoded by itself
	Anomaly                    // how unlike normal texts a text is, a number
	HiddenTokens               // what the tokens are that are hidden in a text
)

// Answers lists the kinds of answers.
var Answers = []Answer{OneLabel, TagPerWord, ManyLabels, Number, Quoted, Likeness, Anomaly, HiddenTokens}

// String is what an error calls the answer.
func (a Answer) String() string {
	switch a {
	case OneLabel:
		return "one label"
	case TagPerWord:
		return "a tag for each word"
	case ManyLabels:
		return "any number of labels"
	case Number:
		return "a number"
	case Quoted:
		return "a part of a context"
	case Likeness:
		return "how alike two texts are"
	case Anomaly:
		return "how unlike normal texts a text is"
	case HiddenTokens:
		return "what tokens are hidden"
	}
	panic("corpus: unknown answer")
}

// Field names the field of a record that holds an answer of the kind; "" for one that texts hold themselves.
func (a Answer) Field() string {
	switch a {
	case OneLabel, Anomaly:
		return "label"
	case TagPerWord:
		return "tags"
	case ManyLabels:
		return "labels"
	case Number, Likeness:
		return "value"
	case Quoted:
		return "answers"
	}
	return ""
}

// PerWord tells whether an answer of the kind has a part for each word.
func (a Answer) PerWord() bool { return a == TagPerWord }

// WantsAll tells whether an answer of the kind may stand anywhere in a long text, whose end is not to be lost.
func (a Answer) WantsAll() bool { return a == Quoted }

// Apart tells whether the texts of a pair are encoded each by itself for an answer of the kind.
func (a Answer) Apart() bool { return a == Likeness }

// Hides tells whether tokens are hidden for an answer of the kind, so that no other task can read the same texts.
func (a Answer) Hides() bool { return a == HiddenTokens }

// Exact tells whether an answer of the kind is right or wrong, unlike a number, which is near or far.
func (a Answer) Exact() bool { return a.HasLabels() || a == Quoted }

// HasLabels tells whether answers of the kind are made of labels, which training settles.
func (a Answer) HasLabels() bool { return a == OneLabel || a == TagPerWord || a == ManyLabels }

// Target is the gold answer of one head for one example; its zero value says that the example is not labelled.
// Tasks set and judge the names; heads see the numbers, which Labels.Number sets.
type Target struct {
	Label  string   // one label; "" for none
	Tags   []string // a tag a word, as many as the example has words; "" for a word without one
	Labels []string // many labels, those that hold; nil for no answer, empty where none holds
	Absent []string // labels that are said not to hold, as a list of 0 and 1 says it; neither do those that are not named
	Value  *float64 // a number; of an anomaly 1, of a normal text 0
	Quotes []Quote  // parts of the pair, each a right answer; nil for no gold answer, empty where nothing there answers

	LabelID  int   // number of Label: Unknown where training has no such label, Unlabelled for none
	TagIDs   []int // numbers of Tags
	LabelIDs []int // numbers of Labels
	// QuoteTokens are the tokens of the first of Quotes in each of the example's windows; {0 0} where they are not there.
	QuoteTokens []Span
	// HiddenIDs are the tokens that a batch hides, in the order of the example's windows; nil where none is asked for, empty
	// until a batch hides some.
	HiddenIDs []int32
}

// LargestNumber is the largest gold number, either way: sums of squares of such are numbers in float32.
const LargestNumber = 1e15

const (
	Unlabelled = -1 // no gold answer here
	Unknown    = -2 // a gold answer that training has not: no loss, judged as wrong
)

// Labelled tells whether there is a gold answer.
func (t Target) Labelled() bool {
	return t.Label != "" || t.Tags != nil || t.Labels != nil || t.Value != nil || t.Quotes != nil || t.HiddenIDs != nil
}

// Names calls see with each label that the target names, words without a tag left out. see may change it.
func (t *Target) Names(see func(name *string)) {
	for _, names := range [][]string{t.Tags, t.Labels, t.Absent} {
		for i := range names {
			if names[i] != "" {
				see(&names[i])
			}
		}
	}
	if t.Label != "" {
		see(&t.Label)
	}
}

// Unknown lists the labels of a target, whose numbers are set, that training has not, as often as they occur.
func (t Target) Unknown() []string {
	var names []string
	if t.LabelID == Unknown {
		names = append(names, t.Label)
	}
	for i, id := range t.TagIDs {
		if id == Unknown {
			names = append(names, t.Tags[i])
		}
	}
	for i, id := range t.LabelIDs {
		if id == Unknown {
			names = append(names, t.Labels[i])
		}
	}
	return names
}

// Right tells whether a prediction has the labels of the gold answer. Words without a gold tag do not count.
func (t Target) Right(p Prediction) bool {
	for i, tag := range t.Tags {
		if tag != "" && p.Tags[i] != tag {
			return false
		}
	}
	if t.Labels != nil && !sameNames(t.Labels, p.Labels) {
		return false
	}
	return t.Label == "" || p.Label == t.Label
}

// sameNames tells whether two lists, each without doubles, hold the same names.
func sameNames(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(name string) bool { return !slices.Contains(b, name) })
}

// Prediction is a head's answer for one example. Heads set the numbers, Labels.Name the names.
type Prediction struct {
	LabelID       int
	Probabilities []float32 // of each label
	TagIDs        []int     // a tag for each word of the example; -1 for words that no token stands for
	TagShares     []float32 // the probability of each of TagIDs, 0 where that is -1
	LabelIDs      []int     // of many labels those that hold, in order; not nil
	Value         float64   // a number
	Alarm         bool      // Value is above what normal texts have
	Guesses       []Guessed // one for each hidden token
	QuoteWindow   int       // number of the example's window that has QuoteTokens
	QuoteTokens   Span      // of the window, End exclusive; {0 0} for no answer
	QuoteShare    float32   // the probability of the quote, or of none

	Label  string
	Tags   []string // words that no token stands for are "O"
	Labels []string
	Quote  Quote // set by Example.Quote
}

// Guessed is what a hidden token is taken for.
type Guessed struct {
	Window, Token int     // where it is in the example
	Best          []Guess // the likeliest first
}

// Guess is a token, and how likely it is.
type Guess struct {
	ID    int32
	Share float32 // a probability
}
