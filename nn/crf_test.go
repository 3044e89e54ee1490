package nn

import (
	"math"
	"testing"
)

// enumerate calls visit with every sequence of tags of a chain, whose rows are its words' numbers, and its score.
func (c *CRF) enumerate(logits []float32, chain Chain, visit func(tags []int, score float64)) {
	labels, words := c.Start.Shape[0], len(chain.Rows)
	transition := func(t int, learned float32, from, to int) float64 {
		if !c.Constraints.Allowed(from, to) && (chain.Gaps == nil || !chain.Gaps[t]) {
			return math.Inf(-1)
		}
		return float64(learned)
	}
	start, end := labels, labels // as Transitions has them
	tags := make([]int, words)
	for {
		score := transition(0, c.Start.Data[tags[0]], start, tags[0])
		score += transition(words, c.End.Data[tags[words-1]], tags[words-1], end)
		for t, tag := range tags {
			score += float64(logits[t*labels+tag])
			if t > 0 {
				score += transition(t, c.Transitions.Data[tags[t-1]*labels+tag], tags[t-1], tag)
			}
		}
		visit(tags, score)
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

// crfLoss returns the loss of one chain, and its gradient at the logits.
func crfLoss(t *testing.T, c *CRF, logits []float32, chain Chain) (loss float64, d []float32) {
	t.Helper()
	p := NewPass(1)
	x := p.Input(logits, len(chain.Gold), c.Start.Shape[0])
	node := c.Loss(x, []Chain{chain})
	forward(t, p)
	d = zeros(len(logits))
	if err := p.Backward(node, 1, Gradients{}, []*Node{x}, [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	return float64(Values(node)[0]), d
}

func TestCRFSumsOverAllTagsOrPossibleGoldTags(t *testing.T) {
	const labels, words = 3, 4
	// tag 2 does not follow tag 0, and is not the first
	constraints := NewTransitions(labels)
	constraints.Forbid(0, 2)
	constraints.Forbid(constraints.Start(), 2)
	for _, test := range []struct {
		name        string
		constraints *Transitions
		gaps        []bool
	}{
		{"all transitions", nil, nil},
		{"some transitions", constraints, nil},
		{"some transitions, but all across gaps", constraints, []bool{true, false, true, false, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := NewCRF(NewParams(3), labels, test.constraints)
			copy(c.Transitions.Data, states(1, labels*labels, 1))
			logits := states(2, words*labels, 1)
			chain := chainOf([]int{1, -1, 2, -2}) // the second and the last may be anything
			chain.Gaps = test.gaps
			all, agreeing := 0.0, 0.0
			sums := make([]float64, words*labels)
			c.enumerate(logits, chain, func(tags []int, score float64) {
				e := math.Exp(score)
				all += e
				for i, tag := range tags {
					sums[i*labels+tag] += e
				}
				if tags[0] == 1 && tags[2] == 2 {
					agreeing += e
				}
			})
			got, _ := crfLoss(t, c, logits, chain)
			if want := math.Log(all / agreeing); !(math.Abs(got-want) <= 1e-5) {
				t.Errorf("loss %v, want %v", got, want)
			}
			tags, probabilities := c.Decode(logits, chain)
			for i, tag := range tags {
				if want := sums[i*labels+tag] / all; !(math.Abs(float64(probabilities[i])-want) <= 1e-5) {
					t.Errorf("word %d: probability %v, want %v", i, probabilities[i], want)
				}
				bound := !test.constraints.AllAllowed() && (test.gaps == nil || !test.gaps[i])
				if bound && tag == 2 && (i == 0 || tags[i-1] == 0) {
					t.Errorf("tags %v make a forbidden transition", tags)
				}
			}
		})
	}
}

func TestCRFOfLargeLogits(t *testing.T) {
	const labels, words = 4, 30
	c := NewCRF(NewParams(3), labels, nil)
	gold := make([]int, words)
	for _, size := range []float64{1e4, 1e30} {
		logits := states(7, words*labels, size)
		for i := range gold {
			gold[i] = i % labels
		}
		loss, d := crfLoss(t, c, logits, chainOf(gold))
		if math.IsNaN(loss) || loss < 0 {
			t.Errorf("loss %v of logits of size %v", loss, size)
		}
		finite(t, "gradient", d)
	}
}

// BenchmarkCRFLoss is the loss of a batch of SNIPS' size and its gradient: 32 chains of 9 words, 72 tags in BIO.
func BenchmarkCRFLoss(b *testing.B) {
	const chains, words, labels = 32, 9, 72
	c := NewCRF(NewParams(3), labels, nil)
	logits := states(2, chains*words*labels, 1)
	batch := make([]Chain, chains)
	for i := range batch {
		for w := range words {
			batch[i].Rows = append(batch[i].Rows, i*words+w)
			batch[i].Gold = append(batch[i].Gold, (i+w)%labels)
		}
	}
	d := zeros(len(logits))
	for b.Loop() {
		p := NewPass(1)
		x := p.Input(logits, chains*words, labels)
		loss := c.Loss(x, batch)
		if err := p.Forward(); err != nil {
			b.Fatal(err)
		}
		if err := p.Backward(loss, 1, Gradients{}, []*Node{x}, [][]float32{d}); err != nil {
			b.Fatal(err)
		}
	}
}
