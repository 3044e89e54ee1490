package calibration

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// drawn draws examples whose logits are normal times a factor, above it for what is right in most of them.
func drawn(examples, labels, windows int, factor float64) (all []Example) {
	random := rand.New(rand.NewPCG(uint64(labels), uint64(windows)))
	for i := range examples {
		e := Example{Gold: []int{random.IntN(labels)}}
		for range 1 + i%windows {
			z := make([]float32, labels)
			for c := range z {
				z[c] = float32(factor * random.NormFloat64())
			}
			if i%4 > 0 {
				z[e.Gold[0]] += float32(3 * factor)
			}
			e.Logits = append(e.Logits, z)
		}
		all = append(all, e)
	}
	return all
}

// plainTemperature is the minimum of the loss itself over finer and finer grids of temperatures.
func plainTemperature(examples []Example) float64 {
	low, high, best := math.Log(LeastTemperature), math.Log(MostTemperature), 0.0
	for high-low > 1e-6 {
		const grid = 40
		step, least := (high-low)/grid, math.Inf(1)
		for i, from := 0, low; i <= grid; i++ {
			sum := 0.0
			for _, e := range examples {
				p := 0.0
				for _, z := range e.Logits {
					all := 0.0
					for _, v := range z {
						all += math.Exp(float64(v-z[e.Gold[0]]) / math.Exp(from+step*float64(i)))
					}
					p += 1 / all / float64(len(e.Logits))
				}
				sum -= math.Log(p)
			}
			if sum < least {
				best, least = from+step*float64(i), sum
			}
		}
		low, high = max(low, best-step), min(high, best+step)
	}
	return math.Exp(best)
}

// A report prints four digits of a temperature.
func TestTemperatureIsThatOfThePlainFormulaInFewPasses(t *testing.T) {
	const most, grid = 15, 25
	for _, c := range []struct {
		examples, labels, windows int
		factor                    float64
	}{
		{200, 2, 1, 1}, {60, 300, 1, 0.5}, {60, 300, 1, 6}, {100, 20, 3, 2}, {100, 5, 2, 0.3}, {50, 3, 1, 0.01},
		{50, 3, 1, 40},
	} {
		examples, passes := drawn(c.examples, c.labels, c.windows, c.factor), 0
		got := Temperature(examples, func() bool { passes++; return true })
		if want := plainTemperature(examples); fmt.Sprintf("%.4g", got) != fmt.Sprintf("%.4g", want) {
			t.Errorf("%+v: temperature %v, want %v", c, got, want)
		}
		if passes > most && c.windows == 1 || passes > most+grid {
			t.Errorf("%+v: %d passes over the examples, want at most %d, and those of a grid of %d for windows", c,
				passes, most, grid)
		}
	}
}

func TestFitsEndWhereTheyAreStopped(t *testing.T) {
	examples := drawn(100, 20, 2, 2)
	for stop := range 30 {
		passes := 0
		more := func() bool { passes++; return passes <= stop }
		temperature := Temperature(examples, more)
		if passes > stop+2 || !(temperature >= LeastTemperature && temperature <= MostTemperature) {
			t.Errorf("temperature %v in %d passes, stopped after %d", temperature, passes, stop)
		}
		passes = 0
		s := Platt(examples, []int{1, 3}, more)
		if passes > stop+2 || math.IsNaN(s.A) || math.IsNaN(s.B) {
			t.Errorf("sigmoid %+v in %d passes, stopped after %d", s, passes, stop)
		}
	}
}

// Labels share a sigmoid as a list of their decisions has it.
func TestPlattOfSeveralLabelsIsThatOfTheirDecisions(t *testing.T) {
	examples, labels := drawn(80, 6, 2, 2), []int{0, 2, 5}
	var decisions []decision
	for _, label := range labels {
		for _, e := range examples {
			d := decision{holds: e.Gold[0] == label}
			for _, z := range e.Logits {
				d.logits = append(d.logits, z[label])
			}
			decisions = append(decisions, d)
		}
	}
	got, want := Platt(examples, labels, always), platt(decisions)
	near(t, "slope", got.A, want.A, 1e-9)
	near(t, "offset", got.B, want.B, 1e-9)
}

// plainPlattLoss is the cross entropy of all decisions with Platt's targets.
func plainPlattLoss(examples []Example, labels int, s Sigmoid) (loss float64) {
	holding := 0
	for _, e := range examples {
		holding += len(e.Gold)
	}
	for _, e := range examples {
		for label := range labels {
			p, target := 0.0, 1/float64(len(examples)*labels-holding+2)
			if slices.Contains(e.Gold, label) {
				target = float64(holding+1) / float64(holding+2)
			}
			for _, z := range e.Logits {
				p += 1 / (1 + math.Exp(-s.A*float64(z[label])-s.B)) / float64(len(e.Logits))
			}
			loss -= target*math.Log(p) + (1-target)*math.Log(1-p)
		}
	}
	return loss
}

// A pass over 75 million decisions takes seconds.
func TestPlattIsTheLeastLossInFewPasses(t *testing.T) {
	const most = 25
	for _, c := range []struct {
		examples, labels, windows int
		factor                    float64
	}{{200, 2, 1, 1}, {60, 300, 1, 0.5}, {60, 300, 1, 3}, {100, 20, 3, 2}, {100, 5, 2, 0.3}, {60, 3, 1, 0.05}} {
		examples, passes := drawn(c.examples, c.labels, c.windows, c.factor), 0
		labels := make([]int, c.labels)
		for i := range labels {
			labels[i] = i
		}
		s := Platt(examples, labels, func() bool { passes++; return true })
		if passes > most {
			t.Errorf("%+v: %d passes over the examples, want at most %d", c, passes, most)
		}
		loss := plainPlattLoss(examples, c.labels, s)
		for _, near := range []Sigmoid{{1e-4, 0}, {-1e-4, 0}, {0, 1e-4}, {0, -1e-4}} {
			if l := plainPlattLoss(examples, c.labels, Sigmoid{s.A + near.A*s.A, s.B + near.B}); l < loss {
				t.Errorf("%+v: loss %v of %+v, %v near it", c, loss, s, l)
			}
		}
	}
}

func BenchmarkTemperature(b *testing.B) {
	examples := drawn(3000, 1000, 1, 2)
	for b.Loop() {
		Temperature(examples, always)
	}
}

func BenchmarkPlatt(b *testing.B) {
	examples, labels := drawn(3000, 1000, 1, 2), make([]int, 1000)
	for i := range labels {
		labels[i] = i
	}
	for b.Loop() {
		Platt(examples, labels, always)
	}
}
