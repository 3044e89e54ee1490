package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// rounds is how often a work's batches are gone through; the fastest counts.
const rounds = 2

// Speed is how fast batches were gone through.
type Speed struct {
	Steps, Tokens int
	Time          time.Duration
}

// TokensPerSecond is real tokens: nothing is padded.
func (s Speed) TokensPerSecond() float64 { return float64(s.Tokens) / s.Time.Seconds() }

// Step is the mean time of a batch.
func (s Speed) Step() time.Duration { return s.Time / time.Duration(s.Steps) }

// Train measures training steps over all parameters: forward, backward, clipping by the global norm, AdamW. did is
// told after each step how many of how many are done. The network must learn.
func (n *Network) Train(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	if !n.Learns() {
		panic("bench: training an encoder that does not learn")
	}
	plan := multitask.Plan{Seed: seed, Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1, Weighting: multitask.Fixed{}, BFloat16: n.BFloat16}
	learner := multitask.NewLearner(n.model, plan, w.steps())
	return w.measure(ctx, did, func(batch []*corpus.Example) error {
		_, err := learner.Step(0, batch)
		return err
	})
}

// Infer measures how fast the encoder gives the last layer's states.
func (n *Network) Infer(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	pass := nn.NewPass(seed)
	return w.measure(ctx, did, func(batch []*corpus.Example) error { return n.encode(pass, batch) })
}

func (n *Network) encode(pass *nn.Pass, batch []*corpus.Example) error {
	pass.Reset(0)
	_, err := n.model.Encoder.Encode(pass, corpus.Pack(batch).Tokens, nn.LastLayer)
	return err
}

// steps is how many measure takes.
func (w Work) steps() int { return 1 + rounds*len(w.timed()) }

// measure calls step for the batches.
func (w Work) measure(ctx context.Context, did func(done, of int), step func([]*corpus.Example) error) (Speed, error) {
	done := 0
	through := func(batches [][]*corpus.Example) (time.Duration, error) {
		start := time.Now()
		for _, batch := range batches {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			if err := step(batch); err != nil {
				return 0, err
			}
			done++
			did(done, w.steps())
		}
		return time.Since(start), nil
	}

	if _, err := through(w.Batches[:1]); err != nil {
		return Speed{}, err
	}
	best := Speed{Steps: len(w.timed()), Tokens: w.Tokens()}
	for range rounds {
		took, err := through(w.timed())
		if err != nil {
			return Speed{}, err
		}
		if best.Time == 0 || took < best.Time {
			best.Time = took
		}
	}
	return best, nil
}

// OneText measures the encoding of a text of 16 random tokens that comes alone: Time is the sum over Steps runs.
func (n *Network) OneText(ctx context.Context) (Speed, error) {
	const runs = 50
	pass := nn.NewPass(seed)
	batch := []*corpus.Example{n.random(rand.New(rand.NewPCG(seed, 2)), min(oneTokens, n.longest))}
	s := Speed{Steps: runs, Tokens: runs * len(batch[0].Encoding.IDs)}
	if err := n.encode(pass, batch); err != nil {
		return Speed{}, err
	}
	start := time.Now()
	for range runs {
		if err := ctx.Err(); err != nil {
			return Speed{}, err
		}
		if err := n.encode(pass, batch); err != nil {
			return Speed{}, err
		}
	}
	s.Time = time.Since(start)
	return s, nil
}
