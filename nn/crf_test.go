package nn

import (
	"math"
	"testing"
)

// enumerate calls see with every sequence of tags of a chain, whose rows are its words' numbers, and its score.
func (c *CRF) enumerate(scores []float32, chain Chain, see func(tags []int, score float64)) {
	labels, words := c.Start.Shape[0], len(chain.Rows)
	move := func(t int, learned float32, from, to int) float64 {
		if c.Forbidden != nil && c.Forbidden[from*(labels+1)+to] && (chain.Free == nil || !chain.Free[t]) {
			return math.Inf(-1)
		}
		return float64(learned)
	}
	tags := make([]int, words)
	for {
		score := move(0, c.Start.Data[tags[0]], labels, tags[0]) + move(words, c.End.Data[tags[words-1]], tags[words-1], labels)
		for t, tag := range tags {
			score += float64(scores[t*labels+tag])
			if t > 0 {
				score += move(t, c.Transitions.Data[tags[t-1]*labels+tag], tags[t-1], tag)
			}
		}
		see(tags, score)
		t := 0
		for ; t < words; t++ {
			if tags[t]++; tags[t] < labels {
				break
			}
			tags[t] = 0
		}
		if t == words {
			return
		}
	}
}

// chainOf is a chain of as many words as there are gold tags, whose rows are their numbers.
func chainOf(gold []int) Chain {
	c := Chain{Gold: gold}
	for i := range gold {
		c.Rows = append(c.Rows, i)
	}
	return c
}

// crfLoss is the loss of one chain, and its gradient at the scores.
func crfLoss(t *testing.T, c *CRF, scores []float32, chain Chain) (loss float64, d []float32) {
	t.Helper()
	p := NewPass(1)
	x := p.Input(scores, len(chain.Gold), c.Start.Shape[0])
	node := c.Loss(x, []Chain{chain})
	forward(t, p)
	d = zeros(len(scores))
	if err := p.Backward(node, 1, Gradients{}, []*Node{x}, [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	return float64(Values(node)[0]), d
}

func TestCRFSumsOverAllTagsOrThoseThatMayBeGold(t *testing.T) {
	const labels, words = 3, 4
	// tag 2 does not follow tag 0, and is not the first
	forbidden := make([]bool, (labels+1)*(labels+1))
	forbidden[0*(labels+1)+2], forbidden[labels*(labels+1)+2] = true, true
	for _, test := range []struct {
		name            string
		forbidden, free []bool
	}{
		{"any move", nil, nil},
		{"some moves", forbidden, nil},
		{"some moves, but any where words lie between", forbidden, []bool{true, false, true, false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewCRF(NewParams(3), labels, test.forbidden)
			copy(c.Transitions.Data, states(1, labels*labels, 1))
			scores := states(2, words*labels, 1)
			chain := chainOf([]int{1, -1, 2, -2}) // the second and the last may be anything
			chain.Free = test.free
			all, agreeing := 0.0, 0.0
			tagShares := make([]float64, words*labels)
			c.enumerate(scores, chain, func(tags []int, score float64) {
				e := math.Exp(score)
				all += e
				for i, tag := range tags {
					tagShares[i*labels+tag] += e
				}
				if tags[0] == 1 && tags[2] == 2 {
					agreeing += e
				}
			})
			got, _ := crfLoss(t, c, scores, chain)
			if want := math.Log(all / agreeing); !(math.Abs(got-want) <= 1e-5) {
				t.Errorf("loss %v, want %v", got, want)
			}
			tags, shares := c.Decode(scores, chain)
			for i, tag := range tags {
				if want := tagShares[i*labels+tag] / all; !(math.Abs(float64(shares[i])-want) <= 1e-5) {
					t.Errorf("word %d: probability %v, want %v", i, shares[i], want)
				}
				bound := test.forbidden != nil && (test.free == nil || !test.free[i])
				if bound && tag == 2 && (i == 0 || tags[i-1] == 0) {
					t.Errorf("tags %v make a forbidden move", tags)
				}
			}
		})
	}
}

func TestCRFOfLargeScores(t *testing.T) {
	const labels, words = 4, 30
	c := NewCRF(NewParams(3), labels, nil)
	gold := make([]int, words)
	for _, size := range []float64{1e4, 1e30} {
		scores := states(7, words*labels, size)
		for i := range gold {
			gold[i] = i % labels
		}
		loss, d := crfLoss(t, c, scores, chainOf(gold))
		if math.IsNaN(loss) || loss < 0 {
			t.Errorf("loss %v of scores of size %v", loss, size)
		}
		finite(t, "gradient", d)
	}
}
