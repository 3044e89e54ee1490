package heads

import (
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

func TestImpossibleMoves(t *testing.T) {
	for _, c := range []struct {
		scheme        string
		labels        []string
		possible, not string // moves, from ^ before the first word, to $ behind the last
	}{
		{"BIO", []string{"O", "B-x", "I-x", "B-y", "I-y"},
			"^,O ^,B-x O,$ O,B-x B-x,I-x I-x,I-x I-x,B-x I-x,B-y B-x,B-x B-x,O I-x,O I-x,$ B-x,$", "^,I-x O,I-x B-x,I-y I-y,I-x"},
		{"BIOES", []string{"O", "B-x", "I-x", "E-x", "S-x", "S-y"},
			"^,B-x ^,S-x B-x,I-x B-x,E-x I-x,E-x I-x,I-x E-x,S-x E-x,O S-x,B-x S-y,O E-x,$ S-x,$",
			"^,I-x ^,E-x B-x,O B-x,B-x B-x,S-y I-x,O O,E-x E-x,I-x B-x,$ I-x,$"},
		{"IO", []string{"O", "I-x", "I-y"}, "^,I-x O,I-x I-x,I-y I-x,$ I-x,O", ""},
	} {
		t.Run(c.scheme, func(t *testing.T) {
			n, forbidden := len(c.labels), impossibleMoves(c.labels)
			place := func(name string) int {
				if name == "^" || name == "$" {
					return n
				}
				return slices.Index(c.labels, name)
			}
			for want, moves := range map[bool]string{false: c.possible, true: c.not} {
				for move := range strings.FieldsSeq(moves) {
					from, to, _ := strings.Cut(move, ",")
					if got := forbidden[place(from)*(n+1)+place(to)]; got != want {
						t.Errorf("move %s is forbidden: %v", move, got)
					}
				}
			}
		})
	}
}

func TestTagsThatConstraintsForbidAreRefused(t *testing.T) {
	site := Site{Answer: corpus.TagPerWord, Labels: []string{"O", "B-x", "I-x"}, Width: 2, Params: nn.NewParams(1)}
	made, err := NewCRF(CRFOptions{Constraints: "bio"}, site)
	if err != nil {
		t.Fatal(err)
	}
	h := made.(Accepter)
	for _, c := range []struct {
		ids  []int
		want string
	}{
		{[]int{0, 1, 2, 2}, ""},
		{nil, ""},
		{[]int{0, 2}, `tag 2 is "I-x" behind "O", which constraints: bio forbids; the task's broken_tags: repair mends it`},
		{[]int{2}, `the first tag is "I-x"`},
		{[]int{corpus.Unknown, 2}, ""},
	} {
		err := h.Accepts(corpus.Target{TagIDs: c.ids})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("tags %v: error %v, want %q", c.ids, err, c.want)
		}
	}
}
