package samplers

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// builtSampler returns a registered sampler of four groups, of which the first has two tasks.
func builtSampler(t *testing.T, name, options string) (Sampler, error) {
	t.Helper()
	choice, err := Registry().FromString(name, options)
	if err != nil {
		return Sampler{}, err
	}
	return choice.Build(Env{
		Groups: []string{"nli", "sts", "ner", "sst"}, Tasks: [][]string{{"nli", "topic"}, {"sts"}, {"ner"}, {"sst"}},
	})
}

func mustSampler(t *testing.T, name, options string) Sampler {
	t.Helper()
	s, err := builtSampler(t, name, options)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fourGroups is a state in the third of five epochs.
func fourGroups() multitask.State {
	return multitask.State{
		Step: 40, Epoch: 2, Steps: 100, Epochs: 5, Examples: []int{90_000, 10_000, 2_500, 400},
		Batches: []int{900, 100, 25, 4}, Left: []int{30, 20, 10, 40}, Last: -1,
		Rand: rand.New(rand.NewPCG(1, 1)),
	}
}

// evaluated is an evaluation of the four groups' tasks, whose main metrics are given.
func evaluated(nli, topic, sts, ner, sst float64) []multitask.GroupMetrics {
	figure := func(task string, v float64) multitask.TaskMetrics {
		return multitask.TaskMetrics{Task: task,
			Heads: []multitask.HeadMetrics{{Metrics: []tasks.Metric{{Name: "accuracy", Value: v}}}}}
	}
	return []multitask.GroupMetrics{
		{Tasks: []multitask.TaskMetrics{figure("nli", nli), figure("topic", topic)}},
		{Tasks: []multitask.TaskMetrics{figure("sts", sts)}},
		{Tasks: []multitask.TaskMetrics{figure("ner", ner)}}, {Tasks: []multitask.TaskMetrics{figure("sst", sst)}},
	}
}

func TestWeightsOfAnySizeAreDrawn(t *testing.T) {
	for _, weights := range []string{
		"{nli: 1.0e+308, sts: 1.0e+308, ner: 1.0e+308, sst: 1.0e+308}", "{nli: 1.0e-300, sts: 1.0e+308}",
	} {
		s := mustSampler(t, "weights", "groups: all\nweights: "+weights)
		if got := s.Next(fourGroups()); len(got) != 4 {
			t.Errorf("weights %s: groups %v, want all four", weights, got)
		}
	}
}

// proportions divides weights by their sum.
func proportions(weights ...float64) []float64 {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	for i := range weights {
		weights[i] /= sum
	}
	return weights
}

// TestSamplersDrawWithTheirProbabilities compares 100,000 draws with the formulas by Pearson's chi-square test. A
// probability of less than 0.001 to deviate as much by chance is an error.
func TestSamplersDrawWithTheirProbabilities(t *testing.T) {
	base := proportions(300, 100, 50, 20) // √n
	dynamic := func(gaps ...float64) []float64 {
		total := gaps[0] + gaps[1] + gaps[2] + gaps[3]
		p := make([]float64, 4)
		for g, gap := range gaps {
			p[g] = 0.2*base[g] + 0.8*(gap+0.01*base[g])/(total+0.01)
		}
		return p
	}
	for _, c := range []struct {
		name, options string
		want          []float64
	}{
		{"proportional", "", proportions(30, 20, 10, 40)}, // batches left
		{"uniform", "", proportions(1, 1, 1, 1)},
		{"temperature", "", base},
		{"temperature", "temperature: 1", proportions(90_000, 10_000, 2_500, 400)},
		{"temperature", "{temperature: 1, cap: 10000}", proportions(10_000, 10_000, 2_500, 400)},
		{"temperature", "{temperature: 5, cap: 50000}", proportions(math.Pow(50_000, 0.2), math.Pow(10_000, 0.2),
			math.Pow(2_500, 0.2), math.Pow(400, 0.2))},
		{"weights", "", proportions(1, 1, 1, 1)},
		{"weights", "weights: {topic: 3, sst: 0.5}", proportions(3, 1, 1, 0.5)},
		{"annealed", "", proportions(math.Pow(90_000, 0.6), math.Pow(10_000, 0.6), math.Pow(2_500, 0.6),
			math.Pow(400, 0.6))}, // 1 - 0.8·(3 - 1)/(5 - 1)
		{"annealed", "end: 0", base}, // 1 - (3 - 1)/(5 - 1)
		{"dynamic", "", dynamic(0.5*0.2, 0, 0.04, 0)},
		{"dynamic", "targets: {sts: 0.9, sst: 0.7}", dynamic(0.5*0.2, 0.2, 0.04, 0)},
	} {
		s := mustSampler(t, c.name, c.options)
		if s.ObserveEvaluation != nil {
			s.ObserveEvaluation(evaluated(0.8, 0.5, 0.6, 0.54, 0.9))
			s.ObserveEvaluation(evaluated(0.6, 0.6, 0.7, 0.50, 0.9))
		}
		square, chance := chiSquare(s, c.want)
		t.Logf("%s {%s}: chi-square %.2f, p %.3f", c.name, c.options, square, chance)
		if !(chance >= 0.001) {
			t.Errorf("%s {%s}: other draws than by %v: p %g", c.name, c.options, c.want, chance)
		}

		for g, p := range s.Probabilities(fourGroups()) {
			if !(math.Abs(p.Value-c.want[g]) <= 1e-12) || p.Group != []string{"nli", "sts", "ner", "sst"}[g] ||
				len(p.Terms) == 0 {
				t.Errorf("%s {%s}: group %d has probability %+v, want %v", c.name, c.options, g, p, c.want[g])
			}
		}
	}
}

// chiSquare returns Pearson's statistic of 100,000 draws among four groups, and the probability that it is as large by
// chance: that of the chi-square distribution with 3 degrees of freedom.
func chiSquare(s Sampler, want []float64) (square, chance float64) {
	const draws = 100_000
	state, counts := fourGroups(), make([]float64, 4)
	for range draws {
		counts[s.Next(state)[0]]++
	}
	for g, p := range want {
		square += (counts[g] - p*draws) * (counts[g] - p*draws) / (p * draws)
	}
	return square, math.Erfc(math.Sqrt(square/2)) + math.Sqrt(2*square/math.Pi)*math.Exp(-square/2)
}

// Two groups at once are drawn without putting the first back: pair (g, h) has probability p_g·p_h/(1 - p_g).
func TestSeveralGroupsAreDrawnWithTheirProbabilities(t *testing.T) {
	for name, options := range map[string]string{
		"temperature": "groups: 2", "weights": "{groups: 2, weights: {ner: 4}}", "annealed": "groups: 2",
		"dynamic": "groups: 2",
	} {
		s, state := mustSampler(t, name, options), fourGroups()
		p := s.Probabilities(state)
		const draws = 100_000
		var counts [4][4]float64
		for range draws {
			chosen := s.Next(state)
			counts[chosen[0]][chosen[1]]++
		}
		square := 0.0
		for g := range p {
			for h := range p {
				if g == h {
					continue
				}
				want := draws * p[g].Value * p[h].Value / (1 - p[g].Value)
				square += (counts[g][h] - want) * (counts[g][h] - want) / want
			}
		}
		const critical = 31.264 // p = 0.001 with 11 degrees of freedom
		t.Logf("%s: chi-square %.2f of 12 pairs", name, square)
		if !(square <= critical) || counts[0][0]+counts[1][1]+counts[2][2]+counts[3][3] > 0 {
			t.Errorf("%s: pairs %v, chi-square %.2f, want at most %v", name, counts, square, critical)
		}
	}
}

// α = 1 - 0.8·(e - 1)/(E - 1), Stickland & Murray 2019.
func TestAnnealedExponent(t *testing.T) {
	annealed := Annealed{End: 0.2}
	for _, c := range []struct {
		epoch, epochs, step, steps int
		want                       float64
	}{
		{0, 5, 0, 50, 1}, {1, 5, 12, 50, 0.8}, {2, 5, 20, 50, 0.6}, {4, 5, 49, 50, 0.2},
		{0, 1, 0, 11, 1}, {0, 1, 5, 11, 0.6}, {0, 1, 10, 11, 0.2}, {0, 1, 0, 1, 1},
	} {
		state := multitask.State{Epoch: c.epoch, Epochs: c.epochs, Step: c.step, Steps: c.steps}
		if got := annealed.alpha(state); !(math.Abs(got-c.want) <= 1e-12) {
			t.Errorf("epoch %d of %d, step %d of %d: α is %v, want %v",
				c.epoch+1, c.epochs, c.step+1, c.steps, got, c.want)
		}
	}
}

func TestOptionsOfSamplers(t *testing.T) {
	for _, c := range []struct{ name, options, wrong string }{
		{"temperature", "temperature: 0", "temperature: want a number above 0, have 0"},
		{"temperature", "cap: -1", "cap: want a whole number of at least 0, have -1"},
		{"temperature", "cap: 1.5", "cap: want a whole number of at least 0, have 1.5"},
		{"temperature", "groups: 5", "groups: the experiment has 4 groups of tasks"},
		{"annealed", "end: -0.1", "end: want a number in [0, 1], have -0.1"},
		{"annealed", "end: 1.1", "end: want a number in [0, 1], have 1.1"},
		{"annealed", "groups: none", "groups: want a whole number of at least 1, or all"},
		{"weights", "weights: {nli: 0}", "nli: want a number above 0, have 0"},
		{"weights", "weights: {nli: .inf}", "nli: want a number above 0"},
		{"weights", "weights: {sick: 2}", `weights: no task "sick"; available: ner, nli, sst, sts, topic`},
		{"weights", "weights: {tpic: 2}", `weights: no task "tpic"; did you mean "topic"? available:`},
		{"weights", "weights: {nli: 2, topic: 2}", `weights: tasks "nli" and "topic" read the same texts; want`},
		{"weights", "weights: [1, 2]", "weights: want a mapping"},
		{"weights", "groups: 0", "groups: want a whole number of at least 1, or all"},
		{"dynamic", "rehearsal: 0", "rehearsal: want a number in (0, 1], have 0"},
		{"dynamic", "rehearsal: 1.5", "rehearsal: want a number in (0, 1], have 1.5"},
		{"dynamic", "tolerance: 0", "tolerance: want a number above 0, have 0"},
		{"dynamic", "temperature: -1", "temperature: want a number above 0, have -1"},
		{"dynamic", "targets: {nli: 92.5}", "nli: want a number in (0, 1], have 92.5"},
		{"dynamic", "targets: {toppic: 0.5}", `targets: no task "toppic"; did you mean "topic"?`},
		{"dynamic", "groups: 9", "groups: the experiment has 4 groups of tasks"},
	} {
		if _, err := builtSampler(t, c.name, c.options); err == nil || !strings.Contains(err.Error(), c.wrong) {
			t.Errorf("%s {%s}: %v, want %s", c.name, c.options, err, c.wrong)
		}
	}
}

// A temperature near 0 leaves the largest group, and no probability overflows or is 0.
func TestProbabilitiesAreFinite(t *testing.T) {
	for _, options := range []string{"temperature: 1.0e-6", "temperature: 1.0e+300"} {
		p := mustSampler(t, "temperature", "{groups: all, "+options+"}")
		state := fourGroups()
		for g, p := range p.Probabilities(state) {
			if !(p.Value > 0 && p.Value <= 1) {
				t.Errorf("%s: group %d has probability %v", options, g, p.Value)
			}
		}
		if chosen := p.Next(state); len(slices.Compact(slices.Sorted(slices.Values(chosen)))) != 4 {
			t.Errorf("%s: groups %v, want all", options, chosen)
		}
	}
}

func TestDynamicFollowsEvaluations(t *testing.T) {
	d := mustSampler(t, "dynamic", "{targets: {ner: 0.8}, rehearsal: 0.1, temperature: 1}")
	terms := func() [4]map[string]float64 {
		var all [4]map[string]float64
		for g, p := range d.Probabilities(fourGroups()) {
			all[g] = p.Terms
		}
		return all
	}

	// before an evaluation
	if got := terms()[1]; len(got) != 1 || !(math.Abs(got["base"]-10_000/102_900.0) <= 1e-12) {
		t.Errorf("before an evaluation the terms are %v, want a base of 10000/102900 alone", got)
	}

	// the best figures are those of different evaluations; a group's are means over its tasks
	d.ObserveEvaluation(evaluated(0.7, 0.9, 0.5, 0.6, 0.5))
	d.ObserveEvaluation(evaluated(0.8, 0.6, 0.4, 0.9, 0.5))
	for g, want := range []map[string]float64{
		{"gap": 0.15, "figure": 0.7, "reference": 0.85},
		{"gap": 0.1, "figure": 0.4, "reference": 0.5},
		{"gap": 0, "figure": 0.9, "reference": 0.8},
		{"gap": 0, "figure": 0.5, "reference": 0.5},
	} {
		got := terms()[g]
		for term, v := range want {
			if !(math.Abs(got[term]-v) <= 1e-12) {
				t.Errorf("group %d: %s is %v, want %v", g, term, got[term], v)
			}
		}
	}

	// a task without metrics in an evaluation keeps its figures
	e := evaluated(0.8, 0.6, 0.4, 0.9, 0.5)
	e[1].Tasks[0].Heads[0].Metrics = nil
	before := terms()
	d.ObserveEvaluation(e)
	if got := terms()[1]["figure"]; got != before[1]["figure"] {
		t.Errorf("without metrics the figure is %v, want %v", got, before[1]["figure"])
	}

	// a state that is none
	for _, state := range []string{"", "{", "[]", `{"Last": null}`} {
		if err := d.State.UnmarshalBinary([]byte(state)); err == nil {
			t.Errorf("state %q is accepted", state)
		}
	}
}

func TestSamplers(t *testing.T) {
	draws := func(s Sampler, batches ...int) []int {
		state := multitask.State{Batches: batches, Left: slices.Clone(batches), Last: -1,
			Rand: rand.New(rand.NewPCG(1, 1))}
		var all []int
		total := 0
		for _, n := range batches {
			total += n
		}
		for range total {
			g := s.Next(state)[0]
			state.Left[g]--
			state.Last = g
			all = append(all, g)
		}
		return all
	}
	times := func(drawn []int, g int) int {
		n := 0
		for _, d := range drawn {
			if d == g {
				n++
			}
		}
		return n
	}
	if got, want := draws(drawnInTurns(t, "round_robin", 1), 3, 1, 2), []int{0, 1, 2, 0, 2, 0}; !slices.Equal(got,
		want) {
		t.Errorf("round robin drew %v, want %v", got, want)
	}
	if got := draws(drawnInTurns(t, "proportional", 1), 90, 10); times(got, 0) != 90 || slices.IsSorted(got) {
		t.Errorf("proportional drew group 0 %d times of 90, in order: %v", times(got, 0), slices.IsSorted(got))
	}
	if got := times(draws(drawnInTurns(t, "uniform", 1), 900, 100), 1); got < 400 || got > 600 {
		t.Errorf("uniform drew the small group %d times of 1000, want about 500", got)
	}
}

func TestSamplersNameSeveralGroupsAtOnce(t *testing.T) {
	batches := []int{6, 2, 1}
	for name, s := range map[string]Sampler{
		"proportional": drawnInTurns(t, "proportional", 2),
		"uniform":      drawnInTurns(t, "uniform", 2),
		"round_robin":  drawnInTurns(t, "round_robin", 2),
	} {
		state := multitask.State{Batches: batches, Left: slices.Clone(batches), Last: -1,
			Rand: rand.New(rand.NewPCG(1, 1))}
		for turn := range 4 {
			chosen := s.Next(state)
			if len(chosen) != 2 || s.Groups != 2 || chosen[0] == chosen[1] {
				t.Fatalf("%s: turn %d names groups %v, want two different ones", name, turn+1, chosen)
			}
			for _, g := range chosen {
				state.Left[g]--
				state.Last = g
			}
		}
		if name == "round_robin" && !slices.Equal(state.Left, []int{2, -1, 0}) {
			t.Errorf("round_robin leaves %v batches; want 2, -1 and 0: a group begins again to fill a turn", state.Left)
		}
	}
	all := drawnInTurns(t, "uniform", 5)
	if chosen := all.Next(multitask.State{Batches: batches, Left: batches, Rand: rand.New(rand.NewPCG(1,
		1))}); len(chosen) != 3 {
		t.Errorf("of three groups %v are named, want all", chosen)
	}
}

func TestGroupsOfASampler(t *testing.T) {
	env := Env{Groups: []string{"a", "b", "c"}}
	everyGroup := env
	everyGroup.All = true
	for _, c := range []struct {
		options string
		env     Env
		want    int
		wrong   string
	}{
		{"", env, 1, ""},
		{"", everyGroup, 3, ""},
		{"groups: 2", everyGroup, 2, ""},
		{"groups: all", env, 3, ""},
		{"groups: 4", env, 0,
			"groups: the experiment has 3 groups of tasks, but groups is 4; want at most as many, or all"},
		{"groups: 0", env, 0, `groups: want a whole number of at least 1, or all, have "0"`},
		{"groups: some", env, 0, `groups: want a whole number of at least 1, or all, have "some"`},
	} {
		for _, name := range Registry().Names() {
			choice, err := Registry().FromString(name, c.options)
			if err != nil {
				t.Fatal(err)
			}
			s, err := choice.Build(c.env)
			switch {
			case c.wrong != "":
				if err == nil || !strings.Contains(err.Error(), c.wrong) {
					t.Errorf("%s, %q: %v, want %s", name, c.options, err, c.wrong)
				}
			case err != nil:
				t.Errorf("%s, %q: %v", name, c.options, err)
			case s.AtOnce() != c.want:
				t.Errorf("%s, %q: %d groups, want %d", name, c.options, s.AtOnce(), c.want)
			}
		}
	}
}

// drawnInTurns is a sampler that draws so many groups at each turn.
func drawnInTurns(t *testing.T, name string, groups int) Sampler {
	t.Helper()
	choice, err := Registry().FromString(name, "groups: "+strconv.Itoa(groups))
	if err != nil {
		t.Fatal(err)
	}
	s, err := choice.Build(Env{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
