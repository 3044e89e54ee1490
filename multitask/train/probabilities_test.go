package train

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/tasks"
)

// builtSampler returns a registered sampler of four groups, of which the first has two tasks.
func builtSampler(t *testing.T, name, options string) (samplers.Sampler, error) {
	t.Helper()
	choice, err := samplers.Registry().FromString(name, options)
	if err != nil {
		return nil, err
	}
	return choice.Build(samplers.Env{
		Groups: []string{"nli", "sts", "ner", "sst"}, Tasks: [][]string{{"nli", "topic"}, {"sts"}, {"ner"}, {"sst"}},
	})
}

func mustSampler(t *testing.T, name, options string) samplers.Sampler {
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
		Rand: rand.New(rand.NewPCG(1, streamSampler)),
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
		if observer, ok := s.(samplers.EvaluationObserver); ok {
			observer.ObserveEvaluation(evaluated(0.8, 0.5, 0.6, 0.54, 0.9))
			observer.ObserveEvaluation(evaluated(0.6, 0.6, 0.7, 0.50, 0.9))
		}
		square, chance := chiSquare(s, c.want)
		t.Logf("%s {%s}: chi-square %.2f, p %.3f", c.name, c.options, square, chance)
		if !(chance >= 0.001) {
			t.Errorf("%s {%s}: other draws than by %v: p %g", c.name, c.options, c.want, chance)
		}

		reporter, ok := s.(samplers.ProbabilitySampler)
		if !ok {
			continue
		}
		for g, p := range reporter.Probabilities(fourGroups()) {
			if !(math.Abs(p.Value-c.want[g]) <= 1e-12) || p.Group != []string{"nli", "sts", "ner", "sst"}[g] ||
				len(p.Terms) == 0 {
				t.Errorf("%s {%s}: group %d has probability %+v, want %v", c.name, c.options, g, p, c.want[g])
			}
		}
	}
}

// chiSquare returns Pearson's statistic of 100,000 draws among four groups, and the probability that it is as large by
// chance: that of the chi-square distribution with 3 degrees of freedom.
func chiSquare(s samplers.Sampler, want []float64) (square, chance float64) {
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
		p := s.(samplers.ProbabilitySampler).Probabilities(state)
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
	annealed := mustSampler(t, "annealed", "").(samplers.Annealed)
	for _, c := range []struct {
		epoch, epochs, step, steps int
		want                       float64
	}{
		{0, 5, 0, 50, 1}, {1, 5, 12, 50, 0.8}, {2, 5, 20, 50, 0.6}, {4, 5, 49, 50, 0.2},
		{0, 1, 0, 11, 1}, {0, 1, 5, 11, 0.6}, {0, 1, 10, 11, 0.2}, {0, 1, 0, 1, 1},
	} {
		state := multitask.State{Epoch: c.epoch, Epochs: c.epochs, Step: c.step, Steps: c.steps}
		if got := annealed.Alpha(state); !(math.Abs(got-c.want) <= 1e-12) {
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
		for g, p := range p.(samplers.ProbabilitySampler).Probabilities(state) {
			if !(p.Value > 0 && p.Value <= 1) {
				t.Errorf("%s: group %d has probability %v", options, g, p.Value)
			}
		}
		if chosen := p.Next(state); len(slices.Compact(slices.Sorted(slices.Values(chosen)))) != 4 {
			t.Errorf("%s: groups %v, want all", options, chosen)
		}
	}
}

func TestStepsReportProbabilities(t *testing.T) {
	for _, name := range samplers.Registry().Names() {
		m, data := threeGroups(t, "none", 10)
		choice, err := samplers.Registry().FromString(name, "")
		if err != nil {
			t.Fatal(err)
		}
		plan := smallPlan()
		if plan.Sampler, err = choice.Build(samplers.EnvOf(m, false)); err != nil {
			t.Fatal(err)
		}
		steps, _ := train(t, m, data, plan)
		for _, step := range steps {
			if len(step.Sampling) != 3 || step.Sampling[1].Group != "tags" {
				t.Fatalf("%s: probabilities %v of three groups, of which tags is the second", name, step.Sampling)
			}
			if n := step.Sampling[1].Terms["examples"]; name == "temperature" && n != 7 {
				t.Fatalf("%s: %v examples of tags, want 7", name, n)
			}
		}
	}
}

func TestStepsOfOneGroupReportNoProbabilities(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	m.Groups = m.Groups[:1]
	steps, _ := train(t, m, data[:1], smallPlan())
	if steps[0].Sampling != nil {
		t.Errorf("probabilities %v of one group", steps[0].Sampling)
	}
}
