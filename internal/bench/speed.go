package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// rounds is how often a work's batches are gone through; the fastest counts.
const rounds = 2

// Speed is how fast batches were gone through.
type Speed struct {
	Steps, Tokens int
	Timing        // of all steps
}

// TokensPerSecond is real tokens: nothing is padded.
func (s Speed) TokensPerSecond() float64 { return float64(s.Tokens) / s.Best.Seconds() }

// Step is the mean time of a batch in the best round.
func (s Speed) Step() time.Duration { return s.Best / time.Duration(s.Steps) }

// Train measures training steps over all parameters: forward, backward, clipping by the global norm, AdamW. did is
// told after each step how many of how many are done. The network must learn.
func (n *Network) Train(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	if !n.Learns() {
		panic("bench: training an encoder that does not learn")
	}
	plan := multitask.Plan{
		Seed: seed, MaxSteps: w.steps(), Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1,
		Weighting: multitask.Fixed{}, BFloat16: n.BFloat16,
	}
	training, err := multitask.New(n.model, nil, plan)
	if err != nil {
		return Speed{}, err
	}
	defer training.Close()
	return w.measure(ctx, n.learningLoop(), did, func(batch []*corpus.Example) error {
		_, err := training.Update([]multitask.Batch{{Group: 0, Examples: batch}})
		return err
	})
}

// learningLoop reaches the peak of what a training step's products multiply.
func (n *Network) learningLoop() kernel.Loop {
	if n.BFloat16 {
		return kernel.BFloat16MultiplyAdds()
	}
	return kernel.MultiplyAdds()
}

// Infer measures how fast the encoder gives the last layer's states.
func (n *Network) Infer(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	pass := nn.NewPass(seed)
	return w.measure(ctx, kernel.MultiplyAdds(), did,
		func(batch []*corpus.Example) error { return n.encode(pass, batch) })
}

func (n *Network) encode(pass *nn.Pass, batch []*corpus.Example) error {
	pass.Reset(0)
	_, err := n.model.Encoder.Encode(pass, corpus.Pack(batch).Tokens, nn.LastLayer)
	return err
}

// steps is how many measure takes.
func (w Work) steps() int { return 1 + rounds*len(w.timed()) }

// measure calls step for the batches, beside a loop.
func (w Work) measure(ctx context.Context, loop kernel.Loop, did func(done, of int),
	step func([]*corpus.Example) error) (Speed, error) {
	s := Speed{Steps: len(w.timed()), Tokens: w.Tokens()}
	done := 0
	through := func(batches [][]*corpus.Example) (all time.Duration, err error) {
		for _, batch := range batches {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			took, err := beside(loop, &s.Peak, func() error { return step(batch) })
			if err != nil {
				return 0, err
			}
			all += took
			done++
			did(done, w.steps())
		}
		return all, nil
	}

	if _, err := through(w.Batches[:1]); err != nil {
		return Speed{}, err
	}
	s.Peak = kernel.Rate{}
	for range rounds {
		took, err := through(w.timed())
		if err != nil {
			return Speed{}, err
		}
		s.Mean += took / rounds
		if s.Best == 0 || took < s.Best {
			s.Best = took
		}
	}
	return s, nil
}

// oneRuns is how often the text that comes alone is encoded.
const oneRuns = 50

// OneText measures the encoding of a text of 16 random tokens that comes alone, a step for each time.
func (n *Network) OneText(ctx context.Context) (Speed, error) {
	w := Work{Batches: make([][]*corpus.Example, 1+oneRuns)}
	for i := range w.Batches {
		w.Batches[i] = []*corpus.Example{n.random(rand.New(rand.NewPCG(seed, 2)), min(oneTokens, n.longest))}
	}
	return n.Infer(ctx, w, func(int, int) {})
}
