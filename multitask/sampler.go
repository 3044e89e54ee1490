package multitask

import (
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/plugin"
)

// State is where training stands when the next batch is chosen.
type State struct {
	Step, Epoch int        // steps done; epochs done
	Batches     []int      // how many batches each group's examples make
	Left        []int      // how many of them this epoch has not used; negative for a group that has begun again
	Last        int        // the group of the batch before, -1 for the first
	Rand        *rand.Rand // a function of the seed
}

// Sampler says which group's batch trains next. An epoch is as many batches as all groups' examples make.
type Sampler interface {
	// Next names the groups of the next batches by number: mostly one, several where a weighting compares gradients.
	// A group that has none left begins again.
	Next(State) []int
}

// SamplerSite is what a sampler is told.
type SamplerSite struct{ Groups []string }

var samplers = plugin.NewRegistry[SamplerSite, Sampler]("sampling")

// Samplers lists the registered samplers.
func Samplers() *plugin.Registry[SamplerSite, Sampler] { return samplers }

// RegisterSampler makes a sampler known as `sampling: {type: name}`.
func RegisterSampler[O any](name string, defaults O, New func(O, SamplerSite) (Sampler, error)) {
	plugin.Register(samplers, name, defaults, New)
}

// NoOptions are the options of a part that has none.
type NoOptions struct{}

func init() {
	RegisterSampler("proportional", NoOptions{}, func(NoOptions, SamplerSite) (Sampler, error) { return Proportional{}, nil })
	RegisterSampler("uniform", NoOptions{}, func(NoOptions, SamplerSite) (Sampler, error) { return Uniform{}, nil })
	RegisterSampler("round_robin", NoOptions{}, func(NoOptions, SamplerSite) (Sampler, error) { return RoundRobin{}, nil })
}

// Proportional draws each batch of an epoch once, in random order.
type Proportional struct{}

// Next draws a group with a chance proportional to the batches it has left.
func (Proportional) Next(s State) []int {
	left := 0
	for _, n := range s.Left {
		left += max(n, 0)
	}
	at := s.Rand.IntN(left)
	for g, n := range s.Left {
		if at -= max(n, 0); at < 0 {
			return []int{g}
		}
	}
	panic("multitask: an epoch that has no batch left")
}

// Uniform draws all groups equally often: small ones begin again within an epoch.
type Uniform struct{}

// Next draws a group, all with equal chance.
func (Uniform) Next(s State) []int { return []int{s.Rand.IntN(len(s.Left))} }

// RoundRobin lets the groups take turns. Each batch of an epoch comes once; a group that has none left is passed over.
type RoundRobin struct{}

// Next names the first group after the last one that has a batch left.
func (RoundRobin) Next(s State) []int {
	for i := range s.Left {
		if g := (s.Last + 1 + i) % len(s.Left); s.Left[g] > 0 {
			return []int{g}
		}
	}
	panic("multitask: an epoch that has no batch left")
}
