package nn

import (
	"math"
	"testing"
)

// enumerate calls see with every sequence of tags and its score.
func (c *CRF) enumerate(scores []float32, words int, see func(tags []int, score float64)) {
	labels := c.Start.Shape[0]
	m := c.moves(c.Transitions.Data, c.Start.Data, c.End.Data)
	tags := make([]int, words)
	for {
		score := m.start[tags[0]] + m.end[tags[words-1]]
		for t, tag := range tags {
			score += float64(scores[t*labels+tag])
			if t > 0 {
				score += m.between[tags[t-1]*labels+tag]
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

// crfLoss is the loss of one chain, and its gradient at the scores.
func crfLoss(t *testing.T, c *CRF, scores []float32, gold []int) (loss float64, d []float32) {
	t.Helper()
	p := NewPass(1)
	chain := Chain{Gold: gold}
	for i := range gold {
		chain.Rows = append(chain.Rows, i)
	}
	x := p.Input(scores, len(gold), c.Start.Shape[0])
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
	for name, moves := range map[string][]bool{"any move": nil, "some moves": forbidden} {
		t.Run(name, func(t *testing.T) {
			c := NewCRF(NewParams(3), labels, moves)
			copy(c.Transitions.Data, states(1, labels*labels, 1))
			scores := states(2, words*labels, 1)
			gold := []int{1, -1, 2, -2} // the second and the last may be anything
			all, agreeing := 0.0, 0.0
			tagShares := make([]float64, words*labels)
			c.enumerate(scores, words, func(tags []int, score float64) {
				e := math.Exp(score)
				all += e
				for i, tag := range tags {
					tagShares[i*labels+tag] += e
				}
				if tags[0] == 1 && tags[2] == 2 {
					agreeing += e
				}
			})
			got, _ := crfLoss(t, c, scores, gold)
			if want := math.Log(all / agreeing); math.Abs(got-want) > 1e-5 {
				t.Errorf("loss %v, want %v", got, want)
			}
			tags, shares := c.Decode(scores, []int{0, 1, 2, 3})
			for i, tag := range tags {
				if want := tagShares[i*labels+tag] / all; math.Abs(float64(shares[i])-want) > 1e-5 {
					t.Errorf("word %d: probability %v, want %v", i, shares[i], want)
				}
				if before := tags[max(0, i-1)]; moves != nil && tag == 2 && (i == 0 || before == 0) {
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
		loss, d := crfLoss(t, c, scores, gold)
		if math.IsNaN(loss) || loss < 0 {
			t.Errorf("loss %v of scores of size %v", loss, size)
		}
		finite(t, "gradient", d)
	}
}
