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

// rounds is the number of times that a work's batches are run; the fastest counts.
const rounds = 2

// Speed is the speed at which batches were run.
type Speed struct {
	Steps, Tokens int
	Timing        // of all steps
}

// TokensPerSecond returns the number of tokens per second; there is no padding.
func (s Speed) TokensPerSecond() float64 { return float64(s.Tokens) / s.Best.Seconds() }

// Step returns the mean time of a batch in the best round.
func (s Speed) Step() time.Duration { return s.Best / time.Duration(s.Steps) }

// Train measures training steps over all parameters: forward, backward, clipping by the global norm, AdamW. It calls
// did after each step with its number and their total. It panics if the network does not learn.
func (n *Network) Train(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	if !n.Learns() {
		panic("bench: training an encoder that does not learn")
	}
	plan := multitask.Plan{
		Seed: seed, MaxSteps: w.steps(), Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1,
		Weighting: multitask.Fixed{}, BFloat16: n.Precision == nn.BFloat16,
	}
	training, err := multitask.New(n.model, nil, plan)
	if err != nil {
		return Speed{}, err
	}
	defer training.Close()
	return w.measure(ctx, kernel.MultiplyAdds(n.Precision), did, func(batch []*corpus.Example) error {
		_, err := training.Update([]multitask.Batch{{Group: 0, Examples: batch}})
		return err
	})
}

// Infer measures how fast the encoder computes the last layer's states.
func (n *Network) Infer(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	pass := nn.NewPass(seed)
	return w.measure(ctx, kernel.MultiplyAdds(n.Precision), did,
		func(batch []*corpus.Example) error { return n.encode(pass, batch) })
}

func (n *Network) encode(pass *nn.Pass, batch []*corpus.Example) error {
	pass.Reset(0)
	pass.Precision = n.Precision
	_, err := n.model.Encoder.Encode(pass, corpus.Pack(batch).Tokens, nn.LastLayer)
	return err
}

// steps returns the number of steps that measure takes.
func (w Work) steps() int { return 1 + rounds*len(w.timed()) }

// measure calls step for the batches, in alternation with a loop.
func (w Work) measure(ctx context.Context, loop kernel.Loop, did func(done, of int),
	step func([]*corpus.Example) error) (Speed, error) {
	s := Speed{Steps: len(w.timed()), Tokens: w.Tokens()}
	done := 0
	run := func(batches [][]*corpus.Example) (all time.Duration, err error) {
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

	if _, err := run(w.Batches[:1]); err != nil {
		return Speed{}, err
	}
	s.Peak = kernel.Rate{}
	for range rounds {
		took, err := run(w.timed())
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

// oneRuns is the number of times that OneText encodes its text.
const oneRuns = 50

// OneText measures the encoding of batches of a single text of 16 random tokens, one step for each.
func (n *Network) OneText(ctx context.Context) (Speed, error) {
	w := Work{Batches: make([][]*corpus.Example, 1+oneRuns)}
	for i := range w.Batches {
		w.Batches[i] = []*corpus.Example{n.random(rand.New(rand.NewPCG(seed, 2)), min(oneTokens, n.longest))}
	}
	return n.Infer(ctx, w, func(int, int) {})
}
