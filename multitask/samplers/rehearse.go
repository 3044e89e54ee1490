package samplers

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
)

// rehearsal mixes batches of old tasks, those of an earlier training, into those that another sampler draws: each batch
// is one of an old group with a given probability, and then of each old group with a probability proportional to its
// number of training examples. This is experience replay (Robins 1995, "Catastrophic Forgetting, Rehearsal and
// Pseudorehearsal").
//
// An epoch ends when the batches that are not of old groups are as many as the other sampler has in one, on average: of
// n such batches and the probability r it has n/(1-r). Where several groups are drawn at once, each old one is drawn
// once at most: if they are fewer than that, an epoch is shorter.
type rehearsal struct {
	sampler     Sampler // of the groups that are not old, which knows these alone
	names       []string
	old         []bool  // by group
	probability float64 // of an old group
	last        int     // index of the sampler's last group; -1: none
}

// RehearsalType is the Type of samplers that rehearse.
const RehearsalType = "rehearsal"

// NewRehearsal returns a sampler of the groups with these names that draws a batch of those that old marks with a
// probability in (0, 1), and else a batch of the others by sampler.
func NewRehearsal(sampler Sampler, names []string, old []bool, probability float64) Sampler {
	r := newRehearsal(sampler, names, old, probability)
	s := Sampler{Type: RehearsalType, Next: r.next, Groups: sampler.Groups, PerEpoch: r.perEpoch, State: r,
		ObserveEvaluation: sampler.ObserveEvaluation}
	if sampler.Probabilities != nil {
		s.Probabilities = r.probabilities
	}
	if sampler.Observe != nil {
		s.Observe = func(s multitask.State, losses []multitask.Loss) { sampler.Observe(r.others(s), losses) }
	}
	return s
}

func newRehearsal(sampler Sampler, names []string, old []bool, probability float64) *rehearsal {
	if !slices.Contains(old, true) || !slices.Contains(old, false) || !(probability > 0 && probability < 1) {
		panic(fmt.Sprintf("samplers: a rehearsal of the groups %v with probability %v", old, probability))
	}
	return &rehearsal{sampler, names, old, probability, -1}
}

// next draws each batch by the other sampler; then it is replaced by one of an old group with the probability of that,
// as long as there is one that is not drawn yet.
func (r *rehearsal) next(s multitask.State) []int {
	chosen := r.sampler.Next(r.others(s))
	numbers, old := r.numbers(false), r.sizes(s)
	for i, g := range chosen {
		if s.Rand.Float64() < r.probability && slices.Max(old) > 0 {
			chosen[i] = drawOne(s.Rand, old)
			old[chosen[i]] = 0
			continue
		}
		chosen[i], r.last = numbers[g], g
	}
	return chosen
}

func (r *rehearsal) numbers(old bool) []int {
	var all []int
	for g, is := range r.old {
		if is == old {
			all = append(all, g)
		}
	}
	return all
}

// sizes returns the number of training examples of each old group, 0 for the others.
func (r *rehearsal) sizes(s multitask.State) []float64 {
	sizes := make([]float64, len(r.old))
	for _, g := range r.numbers(true) {
		sizes[g] = float64(s.Examples[g])
	}
	return sizes
}

// others returns the state that the other sampler has: of the groups that are not old.
func (r *rehearsal) others(s multitask.State) multitask.State {
	numbers := r.numbers(false)
	of := func(all []int) []int {
		if all == nil {
			return nil
		}
		own := make([]int, len(numbers))
		for i, g := range numbers {
			own[i] = all[g]
		}
		return own
	}
	s.Examples, s.Batches, s.Left, s.Last = of(s.Examples), of(s.Batches), of(s.Left), r.last
	return s
}

// probabilities returns those of all groups. The term "rehearse" is the probability of all old groups together.
func (r *rehearsal) probabilities(s multitask.State) []Probability {
	all, sizes, sum := make([]Probability, len(r.old)), r.sizes(s), 0.0
	for _, size := range sizes {
		sum += size
	}
	own := r.sampler.Probabilities(r.others(s))
	for i, g := range r.numbers(false) {
		all[g] = own[i]
		all[g].Value *= 1 - r.probability
	}
	for _, g := range r.numbers(true) {
		all[g] = Probability{
			Group: r.names[g], Value: r.probability * sizes[g] / sum,
			Terms: map[string]float64{"rehearse": r.probability, "examples": sizes[g]},
		}
	}
	return all
}

// rehearsalState is the state of a rehearsal in a snapshot.
type rehearsalState struct {
	Last    int    `json:"last"`
	Type    string `json:"type,omitempty"` // of the other sampler
	Sampler []byte `json:"sampler,omitempty"`
}

func (r *rehearsal) MarshalBinary() ([]byte, error) {
	state := rehearsalState{Last: r.last, Type: r.sampler.Type}
	if r.sampler.State != nil {
		var err error
		if state.Sampler, err = r.sampler.State.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(state)
}

// UnmarshalBinary implements multitask.Stateful. Another sampler of another type begins anew.
func (r *rehearsal) UnmarshalBinary(data []byte) error {
	var state rehearsalState
	if err := json.Unmarshal(data, &state); err != nil {
		return err
	}
	if others := len(r.numbers(false)); state.Last < -1 || state.Last >= others {
		return fmt.Errorf("last group %d of %d", state.Last, others)
	}
	if r.sampler.State != nil && state.Type == r.sampler.Type {
		if err := r.sampler.State.UnmarshalBinary(state.Sampler); err != nil {
			return err
		}
	}
	r.last = state.Last
	return nil
}

func (r *rehearsal) perEpoch(batches []int) int {
	var others []int
	n := 0
	for _, g := range r.numbers(false) {
		others = append(others, batches[g])
		n += batches[g]
	}
	if of := r.sampler.PerEpoch; of != nil {
		n = of(others)
	}
	return int(math.Ceil(float64(n)/r.newFraction() - 1e-9)) // 8/(1-0.9) is more than 80
}

// newFraction returns the fraction of batches, on average, that are not of old groups.
func (r *rehearsal) newFraction() float64 {
	atOnce, old := r.sampler.AtOnce(), len(r.numbers(true))
	if atOnce <= old {
		return 1 - r.probability
	}
	drawn := make([]float64, old+1) // probabilities of 0, 1, … old groups in a turn
	drawn[0] = 1
	mean := 0.0
	for range atOnce {
		for n := old - 1; n >= 0; n-- {
			another := drawn[n] * r.probability
			drawn[n], drawn[n+1] = drawn[n]-another, drawn[n+1]+another
			mean += another
		}
	}
	return 1 - mean/float64(atOnce)
}
