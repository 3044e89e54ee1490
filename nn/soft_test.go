package nn

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// softCase is a case of testdata/soft.json, which scripts/fixtures/soft.py writes.
type softCase struct {
	Name        string
	Temperature float64
	X           partTensor
	Params      map[string]partTensor
	Y           float64
	Q, Rows     []float32
	Starts      []int
	May         []bool
	Chains      [][]int // rows of the words of each
	Gaps        [][]bool
	Forbidden   [][2]int // transitions; the number of tags is the start, and the end
	Marginals   []float32
}

// crf returns the CRF of a case and its chains.
func (c softCase) crf(params Params) (*CRF, []Chain) {
	tags := c.X.Shape[1]
	allowed := NewTransitions(tags)
	for _, t := range c.Forbidden {
		allowed.Forbid(t[0], t[1])
	}
	var chains []Chain
	for i, rows := range c.Chains {
		chains = append(chains, Chain{Rows: rows, Gaps: c.Gaps[i]})
	}
	crf := NewCRF(params, tags, allowed)
	for _, w := range params.All() {
		copy(w.Data, c.Params[w.Name].Data)
	}
	return crf, chains
}

func TestSoftLossesEqualPyTorchs(t *testing.T) {
	var cases []softCase
	readGolden(t, "testdata/soft.json", &cases)
	if len(cases) != 18 {
		t.Errorf("%d cases, want 18", len(cases))
	}
	for _, c := range cases {
		t.Run(fmt.Sprintf("%s at temperature %v", c.Name, c.Temperature), func(t *testing.T) {
			p, params := NewPass(1), NewParams(1)
			x := p.Input(c.X.Data, c.X.Shape...)
			var loss *Node
			switch {
			case c.Chains != nil:
				crf, chains := c.crf(params)
				loss = crf.SoftLoss(x, chains, c.Q, c.Temperature)
				marginals := slices.Concat(crf.Marginals(c.X.Data, chains, c.Temperature)...)
				checkGolden(t, "marginals", marginals, c.Marginals)
			case c.May != nil:
				loss = SoftSpanLoss(x, c.May, c.Q, c.Temperature, Rows{Starts: c.Starts})
			case c.Name == "binary cross entropy":
				loss = SoftBinaryCrossEntropy(x, c.Q, c.Temperature, c.Rows)
			default:
				loss = SoftCrossEntropy(x, c.Q, c.Temperature, c.Rows)
			}
			forward(t, p)
			if got := float64(Values(loss)[0]); !(math.Abs(got-c.Y) <= 1e-5*math.Max(1, c.Y)) {
				t.Errorf("loss %v, want %v", got, c.Y)
			}
			into, d := NewGradients(params.All()), zeros(len(c.X.Data))
			if err := p.Backward(loss, 1, into, []*Node{x}, [][]float32{d}); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, "gradient at x", d, c.X.Gradient)
			for _, w := range params.All() {
				checkGolden(t, "gradient of "+w.Name, into.Of(w), c.Params[w.Name].Gradient)
			}
		})
	}
}

// A teacher whose tags the constraints forbid has no sequence of tags in common with the chain.
func TestSoftLossOfACRFWithoutAllowedTagsIsZero(t *testing.T) {
	allowed := NewTransitions(2)
	allowed.Forbid(allowed.Start(), 1)
	crf := NewCRF(NewParams(1), 2, allowed)
	p := NewPass(1)
	x := p.Input([]float32{1, 2, 0, 1}, 2, 2)
	loss := crf.SoftLoss(x, []Chain{{Rows: []int{0}}, {Rows: []int{1}}}, []float32{0, 1, 0.5, 0.5}, 1)
	forward(t, p)
	d := zeros(4)
	if err := p.Backward(loss, 1, Gradients{}, []*Node{x}, [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	if got := Values(loss)[0]; !(math.Abs(float64(got)) <= 1e-6) || d[0] != 0 || d[1] != 0 {
		t.Errorf("loss %v with gradient %v, want 0 at the first word, and at the second, whose tag has to be 0", got, d)
	}
}

func TestSoftLossesOfLargeLogitsAreFinite(t *testing.T) {
	crf := NewCRF(NewParams(1), 2, nil)
	rows := Rows{Starts: []int{0, 1, 3}}
	for name, lossOf := range map[string]func(x *Node, q []float32) *Node{
		"labels": func(x *Node, q []float32) *Node { return SoftCrossEntropy(x, q, 2, nil) },
		"many":   func(x *Node, q []float32) *Node { return SoftBinaryCrossEntropy(x, q, 2, nil) },
		"span":   func(x *Node, q []float32) *Node { return SoftSpanLoss(x, []bool{true, true, true}, q, 2, rows) },
		"CRF":    func(x *Node, q []float32) *Node { return crf.SoftLoss(x, []Chain{{Rows: []int{0, 1, 2}}}, q, 2) },
	} {
		t.Run(name, func(t *testing.T) {
			p := NewPass(1)
			x := p.Input([]float32{1e30, -1e30, 1e4, -1e4, 3e4, 0}, 3, 2)
			loss := lossOf(x, []float32{1, 0, 0.5, 0.5, 0, 1})
			forward(t, p)
			d := zeros(6)
			if err := p.Backward(loss, 1, Gradients{}, []*Node{x}, [][]float32{d}); err != nil {
				t.Fatal(err)
			}
			finite(t, "loss", Values(loss))
			finite(t, "gradient", d)
		})
	}
}
