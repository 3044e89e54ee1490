package weightings

import (
	"math"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("gradnorm", GradNormOptions{Alpha: 1.5, LearningRate: 1e-2}, newGradNorm) }

// GradNormOptions are the keys that may stand beside `type: gradnorm`.
type GradNormOptions struct {
	Alpha        float64 `yaml:"alpha" range:"[0,)" doc:"α: how much larger the gradients of slow tasks become"`
	LearningRate float64 `yaml:"learning_rate" range:"(0,)" doc:"highest learning rate of v, scheduled as the model's"`
	InitialSteps int     `yaml:"initial_steps" range:"[0,)" doc:"steps of the initial losses; 0: the first epoch"`
}

// gradNorm balances the norms of the tasks' gradients of the shared parameters (Chen et al. 2018, "GradNorm: Gradient
// Normalization for Adaptive Loss Balancing in Deep Multitask Networks"). Each task has a parameter v, 0 at first. The
// update uses Σ_t w_t·g_t with
//
//	w = K·softmax(v)    over the K tasks of the step
//
// where g is the gradient of a task's loss L: the sum of its heads' mean losses times their weights. Parameters of a
// single task have that task's gradient. The v minimise, with G and r as constants,
//
//	Σ_t |w_t·|g_t| - G·r_t^α|    G = mean_t w_t·|g_t|    r_t = l_t / mean_u l_u    l_t = L_t / L_t at first
//
// The initial loss is the mean over the first epoch, or with initial_steps over a head's first steps (the paper has 1);
// until it is known, v does not learn. The v have a learning rate of their own and no weight decay, and are not clipped
// with the model's gradient.
//
// A step that holds only some tasks is one of a model that has only those: the v of other tasks stay as they are. In a
// step of one task w is 1, so that each step has a batch of all groups where a sampler's groups are not set. Tasks
// without a gradient of the shared parameters do not count. It keeps one gradient of the encoder per task, in the
// memory that `jenga check` counts, and takes one backward pass per task.
type gradNorm struct {
	options GradNormOptions
	tasks   map[string]*nn.Param       // v, [1] each
	heads   map[multitask.HeadName]int // → index in initial
	initial []initialLoss
	pending *normed // of the step in progress
}

type initialLoss struct {
	Sum, Units float64
	Steps      int
}

// normed is what differentiate needs of a step's gradients: w·|g| of the tasks that have one, and w.
type normed struct {
	state       multitask.State
	tasks       []string
	norms, each []float64
}

func newGradNorm(o GradNormOptions, env Env) (Weighting, error) {
	g := &gradNorm{
		options: o, tasks: map[string]*nn.Param{}, heads: multitask.HeadNumbers(env.Heads),
		initial: make([]initialLoss, len(env.Heads)),
	}
	learned := &Learned{Rate: o.LearningRate, Differentiate: g.differentiate}
	for _, head := range env.Heads {
		if g.tasks[head.Task] == nil {
			v := env.Params.Zeros(head.Task, 1)
			g.tasks[head.Task], learned.Params = v, append(learned.Params, v)
		}
	}
	check := func(initial []initialLoss) error { return multitask.CheckHeads(len(initial), len(g.heads)) }
	return Weighting{
		Combine: g.combine, ReportsFactors: true, Learned: learned, Observe: g.observe,
		State: multitask.JSONState(&g.initial, check),
	}, nil
}

func (g *gradNorm) combine(s multitask.State, tasks []string, dots [][]float64) []float64 {
	// w
	at := withGradient(dots)
	logits := make([]float64, len(at))
	for k, t := range at {
		logits[k] = float64(g.tasks[tasks[t]].Data[0])
	}
	w, factors := softmax(logits), make([]float64, len(tasks))

	// w·|g|
	g.pending = &normed{state: s}
	for k, t := range at {
		w[k] *= float64(len(at))
		factors[t] = w[k]
		g.pending.tasks = append(g.pending.tasks, tasks[t])
		g.pending.norms = append(g.pending.norms, w[k]*math.Sqrt(dots[t][t]))
		g.pending.each = append(g.pending.each, w[k])
	}
	return factors
}

// withGradient returns the indices of the gradients that are not zero. One that is NaN counts: the update is NaN then,
// and refused.
func withGradient(dots [][]float64) []int {
	var at []int
	for t := range dots {
		if dots[t][t] != 0 {
			at = append(at, t)
		}
	}
	return at
}

// differentiate adds the derivatives by v. The loss has no terms of v's own.
func (g *gradNorm) differentiate(losses []multitask.Loss, into nn.Gradients) float64 {
	step := g.pending
	g.pending = nil
	if step == nil || len(step.tasks) == 0 {
		return 0
	}
	rates, known := g.rates(step, losses)
	if !known {
		return 0
	}

	// d_t, the derivative by w_t times w_t
	k := float64(len(step.tasks))
	target, sum := 0.0, 0.0
	for _, norm := range step.norms {
		target += norm / k
	}
	d := make([]float64, len(step.tasks))
	for t, norm := range step.norms {
		switch gap := norm - target*math.Pow(rates[t], g.options.Alpha); {
		case gap > 0:
			d[t] = norm
		case gap < 0:
			d[t] = -norm
		}
		sum += d[t]
	}

	// by v: w_t·(1[t=u] - w_u/K)
	for t, task := range step.tasks {
		into.Of(g.tasks[task])[0] += float32(d[t] - step.each[t]/k*sum)
	}
	return 0
}

// rates returns r of a step's tasks; known is false if the initial loss of one of them is not known yet.
func (g *gradNorm) rates(step *normed, losses []multitask.Loss) (rates []float64, known bool) {
	rates, mean := make([]float64, len(step.tasks)), 0.0
	for t, task := range step.tasks {
		now, first := 0.0, 0.0
		for _, l := range losses {
			if l.Task != task || l.Units == 0 {
				continue
			}
			initial := g.initial[g.heads[l.HeadName()]]
			if !g.done(initial, step.state) {
				return nil, false
			}
			now += l.Weight * max(0, l.Mean())
			first += l.Weight * max(0, initial.Sum/initial.Units)
		}
		rates[t] = 1
		if first > 0 {
			rates[t] = now / first
		}
		mean += rates[t] / float64(len(step.tasks))
	}
	for t := range rates {
		if mean > 0 {
			rates[t] /= mean
		} else {
			rates[t] = 1
		}
	}
	return rates, true
}

func (g *gradNorm) done(l initialLoss, s multitask.State) bool {
	if g.options.InitialSteps > 0 {
		return l.Steps >= g.options.InitialSteps
	}
	return l.Steps > 0 && s.Epoch > 0
}

func (g *gradNorm) observe(s multitask.State, losses []multitask.Loss) {
	for _, l := range losses {
		if initial := &g.initial[g.heads[l.HeadName()]]; l.Units > 0 && !g.done(*initial, s) {
			initial.Sum, initial.Units, initial.Steps = initial.Sum+l.Sum, initial.Units+l.Units, initial.Steps+1
		}
	}
}
