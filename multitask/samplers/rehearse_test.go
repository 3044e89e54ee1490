package samplers

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

// rehearsalOf returns a rehearsal of groups 0 and 2 among 1 and 3, which sampler draws.
func rehearsalOf(t *testing.T, sampler string, probability float64) *rehearsal {
	t.Helper()
	choice, err := Registry().FromString(sampler, "")
	if err != nil {
		t.Fatal(err)
	}
	inner, err := choice.Build(Env{Groups: []string{"b", "d"}, Tasks: [][]string{{"b"}, {"d"}}})
	if err != nil {
		t.Fatal(err)
	}
	return newRehearsal(inner, []string{"a", "b", "c", "d"}, []bool{true, false, true, false}, probability)
}

// oldGroups is a state of four groups of 100, 20, 300 and 60 examples, in batches of 10.
func oldGroups() multitask.State {
	return multitask.State{
		Examples: []int{100, 20, 300, 60}, Batches: []int{10, 2, 30, 6}, Left: []int{10, 2, 30, 6}, Last: -1,
		Rand: rand.New(rand.NewPCG(1, 2)),
	}
}

// The old groups are drawn with the probability together, each by its size; within 4 standard deviations.
func TestRehearsalDrawsOldGroupsByTheirSizes(t *testing.T) {
	const draws, p = 100_000, 0.3
	for _, sampler := range []string{"proportional", "temperature"} {
		r, s := rehearsalOf(t, sampler, p), oldGroups()
		counts := make([]int, 4)
		for range draws {
			s.Left = []int{10, 2, 30, 6}
			for _, g := range r.next(s) {
				counts[g]++
			}
		}
		own := []float64{2. / 8, 6. / 8} // proportional: by batches left
		if sampler == "temperature" {    // t = 2
			a, b := math.Sqrt(20), math.Sqrt(60)
			own = []float64{a / (a + b), b / (a + b)}
		}
		want := []float64{p * 100 / 400, (1 - p) * own[0], p * 300 / 400, (1 - p) * own[1]}
		for g, n := range counts {
			deviation := math.Sqrt(draws * want[g] * (1 - want[g]))
			if off := float64(n) - draws*want[g]; math.Abs(off) > 4*deviation {
				t.Errorf("%s: group %d was drawn %d times, want %.0f", sampler, g, n, draws*want[g])
			}
		}

		// as it reports them
		s.Left = []int{10, 2, 30, 6}
		for g, p := range r.probabilities(s) {
			if math.Abs(p.Value-want[g]) > 1e-12 || p.Group != []string{"a", "b", "c", "d"}[g] {
				t.Errorf("group %d has %v, want %v", g, p, want[g])
			}
		}
	}
}

func TestRehearsalLeavesTheOtherSamplersTurns(t *testing.T) {
	r, s := rehearsalOf(t, "round_robin", 0.5), oldGroups()
	var others []int
	for range 40 {
		s.Left = []int{10, 20, 30, 60}
		g := r.next(s)[0]
		if s.Last = g; g == 1 || g == 3 {
			others = append(others, g)
		}
	}
	if len(others) < 8 {
		t.Fatalf("drew %v", others)
	}
	for i, g := range others {
		if want := []int{1, 3}[i%2]; g != want {
			t.Fatalf("drew %v, want turns", others)
		}
	}

	// a snapshot has whose turn it is
	state, err := r.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	again := rehearsalOf(t, "round_robin", 0.5)
	if err := again.UnmarshalBinary(state); err != nil || again.last != r.last {
		t.Errorf("restored %d, %v; want %d", again.last, err, r.last)
	}
	for _, bad := range []string{"", `{"last": 2}`, `{"last": -2}`} {
		if err := again.UnmarshalBinary([]byte(bad)); err == nil {
			t.Errorf("%q is restored", bad)
		}
	}
}

// A rehearsal around a sampler of another type than that of a state goes on, with a sampler that begins anew.
func TestRehearsalDropsTheStateOfAnotherSampler(t *testing.T) {
	for _, samplers := range [][2]string{{"proportional", "dynamic"}, {"dynamic", "round_robin"}} {
		was, now := rehearsalOf(t, samplers[0], 0.5), rehearsalOf(t, samplers[1], 0.5)
		was.last = 1
		state, err := was.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		if err := now.UnmarshalBinary(state); err != nil || now.last != 1 {
			t.Errorf("%s after %s: %v, last group %d, want 1", samplers[1], samplers[0], err, now.last)
		}
	}

	// the same type goes on with its state
	was, now := rehearsalOf(t, "dynamic", 0.5), rehearsalOf(t, "dynamic", 0.5)
	if err := was.sampler.State.UnmarshalBinary([]byte(`{"Last":{"b":0.25},"Best":{}}`)); err != nil {
		t.Fatal(err)
	}
	state, err := was.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	err = now.UnmarshalBinary(state)
	if got := now.sampler.Probabilities(oldGroups())[0].Terms["figure"]; err != nil || got != 0.25 {
		t.Errorf("restored the figure %v, %v; want 0.25", got, err)
	}
}

// At a turn of two groups, each of the old groups is drawn once at most.
func TestARehearsalDrawsDifferentGroupsAtATurn(t *testing.T) {
	for _, options := range []string{"groups: 2", "groups: all"} {
		for _, old := range [][]bool{{true, false, false, false}, {true, false, true, false}} {
			s := rehearsalInTurns(t, options, old, 0.5)
			state, both := oldGroups(), 0
			for range 400 {
				state.Left = slices.Clone(state.Batches)
				chosen := s.Next(state)
				different := slices.Compact(slices.Sorted(slices.Values(chosen)))
				if len(chosen) != s.AtOnce() || len(different) != s.AtOnce() {
					t.Fatalf("%s: a turn names groups %v, want %d different ones", options, chosen, s.AtOnce())
				}
				if old[chosen[0]] && old[chosen[1]] {
					both++
				}
			}
			if s.AtOnce() == 2 && (both > 0) != old[2] {
				t.Errorf("%s: %d turns have old groups only", options, both)
			}
		}
	}
}

// rehearsalInTurns returns a rehearsal of the old ones of four groups beside uniform for the others.
func rehearsalInTurns(t *testing.T, options string, old []bool, probability float64) Sampler {
	t.Helper()
	choice, err := Registry().FromString("uniform", options)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"a", "b", "c", "d"}
	var env Env
	for g, name := range names {
		if !old[g] {
			env.Groups, env.Tasks = append(env.Groups, name), append(env.Tasks, []string{name})
		}
	}
	inner, err := choice.Build(env)
	if err != nil {
		t.Fatal(err)
	}
	return NewRehearsal(inner, names, old, probability)
}

// With the probability 0.5, a turn of two batches has 0.75 of the only old group on average and 1.25 of the others. An
// epoch has the 38 batches of these.
func TestAnEpochOfARehearsalInTurns(t *testing.T) {
	s := rehearsalInTurns(t, "groups: 2", []bool{true, false, false, false}, 0.5)
	if got, want := s.PerEpoch([]int{10, 2, 30, 6}), 61; got != want { // 38·2/1.25 = 60.8
		t.Errorf("%d batches, want %d", got, want)
	}

	// as the other sampler counts them
	r := rehearsalOf(t, "proportional", 0.5)
	r.sampler.PerEpoch = func(batches []int) int { return 5 * len(batches) }
	if got, want := r.perEpoch([]int{10, 2, 30, 6}), 20; got != want {
		t.Errorf("%d batches, want %d", got, want)
	}
}

// 8 batches are not of old groups: with them old ones by 0.2, an epoch has 10.
func TestAnEpochOfARehearsalHasTheBatchesOfTheOtherGroupsOnce(t *testing.T) {
	for probability, want := range map[float64]int{0.2: 10, 0.5: 16, 0.9: 80} {
		if got := rehearsalOf(t, "proportional", probability).perEpoch([]int{10, 2, 30, 6}); got != want {
			t.Errorf("%v: %d batches, want %d", probability, got, want)
		}
	}
}
