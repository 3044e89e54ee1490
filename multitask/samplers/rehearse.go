package samplers

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
)

// Rehearsal is a Sampler that mixes batches of old tasks, those of an earlier training, into those that another sampler
// draws: each batch is one of an old group with a given probability, and then of each old group with a probability
// proportional to its number of training examples. This is experience replay (Robins 1995, "Catastrophic Forgetting,
// Rehearsal and Pseudorehearsal").
//
// An epoch ends when the batches that are not of old groups are as many as the examples of the other groups make, on
// average: of n such batches and the probability r it has n/(1-r).
type Rehearsal struct {
	Sampler     // of the groups that are not old, which knows these alone
	names       []string
	old         []bool  // by group
	probability float64 // of an old group
	Last        int     // index of the sampler's last group; -1: none
}

var (
	_ MultiSampler           = (*Rehearsal)(nil)
	_ EpochSampler           = (*Rehearsal)(nil)
	_ ProbabilitySampler     = (*Rehearsal)(nil)
	_ EvaluationObserver     = (*Rehearsal)(nil)
	_ multitask.LossObserver = (*Rehearsal)(nil)
	_ multitask.Stateful     = (*Rehearsal)(nil)
)

// NewRehearsal returns a sampler of the groups with these names that draws a batch of those that old marks with a
// probability in (0, 1), and else a batch of the others by sampler.
func NewRehearsal(sampler Sampler, names []string, old []bool, probability float64) *Rehearsal {
	if !slices.Contains(old, true) || !slices.Contains(old, false) || !(probability > 0 && probability < 1) {
		panic(fmt.Sprintf("multitask: a rehearsal of the groups %v with probability %v", old, probability))
	}
	return &Rehearsal{sampler, names, old, probability, -1}
}

// Groups implements MultiSampler.
func (r *Rehearsal) Groups() int {
	if s, ok := r.Sampler.(MultiSampler); ok {
		return s.Groups()
	}
	return 1
}

// Next implements Sampler. The other sampler draws each batch; then it is replaced by one of an old group with the
// probability of that.
func (r *Rehearsal) Next(s multitask.State) []int {
	chosen := r.Sampler.Next(r.others(s))
	numbers := r.numbers(false)
	for i, g := range chosen {
		if s.Rand.Float64() < r.probability {
			chosen[i] = drawOne(s.Rand, r.sizes(s))
			continue
		}
		chosen[i], r.Last = numbers[g], g
	}
	return chosen
}

// numbers returns the numbers of the groups that are old, or that are not.
func (r *Rehearsal) numbers(old bool) []int {
	var all []int
	for g, is := range r.old {
		if is == old {
			all = append(all, g)
		}
	}
	return all
}

// sizes returns the number of training examples of each old group, 0 for the others.
func (r *Rehearsal) sizes(s multitask.State) []float64 {
	sizes := make([]float64, len(r.old))
	for _, g := range r.numbers(true) {
		sizes[g] = float64(s.Examples[g])
	}
	return sizes
}

// others returns the state that the other sampler has: of the groups that are not old.
func (r *Rehearsal) others(s multitask.State) multitask.State {
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
	s.Examples, s.Batches, s.Left, s.Last = of(s.Examples), of(s.Batches), of(s.Left), r.Last
	return s
}

// Probabilities implements ProbabilitySampler; nil where the other sampler draws without probabilities. The term
// "rehearse" is the probability of all old groups together.
func (r *Rehearsal) Probabilities(s multitask.State) []Probability {
	p, ok := r.Sampler.(ProbabilitySampler)
	if !ok {
		return nil
	}
	all, sizes, sum := make([]Probability, len(r.old)), r.sizes(s), 0.0
	for _, size := range sizes {
		sum += size
	}
	own := p.Probabilities(r.others(s))
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

// ObserveEvaluation implements EvaluationObserver.
func (r *Rehearsal) ObserveEvaluation(groups []multitask.GroupMetrics) {
	if o, ok := r.Sampler.(EvaluationObserver); ok {
		o.ObserveEvaluation(groups)
	}
}

// Observe implements LossObserver.
func (r *Rehearsal) Observe(s multitask.State, losses []multitask.Loss) {
	if o, ok := r.Sampler.(multitask.LossObserver); ok {
		o.Observe(r.others(s), losses)
	}
}

// rehearsalState is the state of a Rehearsal in a snapshot.
type rehearsalState struct {
	Last    int    `json:"last"`
	Type    string `json:"type,omitempty"` // of the other sampler; "": not known, of an earlier version
	Sampler []byte `json:"sampler,omitempty"`
}

// MarshalBinary implements Stateful.
func (r *Rehearsal) MarshalBinary() ([]byte, error) {
	state := rehearsalState{Last: r.Last, Type: r.samplerType()}
	if s, ok := r.Sampler.(multitask.Stateful); ok {
		var err error
		if state.Sampler, err = s.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	return json.Marshal(state)
}

// samplerType returns the type of the other sampler.
func (r *Rehearsal) samplerType() string { return fmt.Sprintf("%T", r.Sampler) }

// UnmarshalBinary implements Stateful. Another sampler of another type begins anew.
func (r *Rehearsal) UnmarshalBinary(data []byte) error {
	var state rehearsalState
	if err := json.Unmarshal(data, &state); err != nil {
		return err
	}
	if others := len(r.numbers(false)); state.Last < -1 || state.Last >= others {
		return fmt.Errorf("last group %d of %d", state.Last, others)
	}
	same := state.Type == r.samplerType() || state.Type == ""
	if s, ok := r.Sampler.(multitask.Stateful); ok && same {
		if err := s.UnmarshalBinary(state.Sampler); err != nil {
			return err
		}
	}
	r.Last = state.Last
	return nil
}

// PerEpoch implements EpochSampler.
func (r *Rehearsal) PerEpoch(batches []int) int {
	n := 0
	for _, g := range r.numbers(false) {
		n += batches[g]
	}
	return int(math.Ceil(float64(n)/(1-r.probability) - 1e-9)) // 8/(1-0.9) is more than 80
}
