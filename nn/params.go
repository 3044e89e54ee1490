package nn

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Param is one learned tensor. Its name is its place in the tree of parameters and its key in a checkpoint.
type Param struct {
	Name   string
	Shape  []int
	Data   []float32 // row-major; of a frozen parameter it may be read-only memory, of a quantized model's nil
	Decay  bool      // weight decay applies: true for matrices, false for biases, norms and other vectors
	Frozen bool      // takes no gradient and is not changed by the optimizer
	Later  bool      // takes no part in updates yet, as if Frozen: gradual unfreezing has not reached it
	Table  bool      // its rows are looked up by number, as embeddings are: no layer multiplies its input by it

	version uint64
}

// rowLength returns the number of values of one row: the product of all dimensions but the first, or the length of a
// vector.
func (w *Param) rowLength() int {
	if len(w.Shape) > 1 {
		return sizeOf(w.Shape[1:])
	}
	return sizeOf(w.Shape)
}

// Size returns the number of values, by the shape.
func (w *Param) Size() int { return sizeOf(w.Shape) }

func sizeOf(shape []int) int {
	size := 1
	for _, d := range shape {
		size *= d
	}
	return size
}

// Learns reports whether w takes a gradient, now or later.
func (w *Param) Learns() bool { return !w.Frozen }

// LearnsNow reports whether w takes a gradient in this step.
func (w *Param) LearnsNow() bool { return !w.Frozen && !w.Later }

// Changed must be called after a change of values that were already used: what was derived from them is computed again.
func (w *Param) Changed() { w.version++ }

// Version counts the calls of Changed.
func (w *Param) Version() uint64 { return w.version }

// Params is a subtree of the tree of parameters. In returns a subtree below it; Normal, Table, Uniform, Zeros and Ones
// make parameters in it. A parameter's initial values are a function of the tree's seed and the parameter's name alone.
type Params struct {
	tree  *tree
	path  string
	unset bool // parameters get no values
}

type tree struct {
	seed   uint64
	params []*Param
	byName map[string]*Param
}

// NewParams returns the root of an empty tree.
func NewParams(seed uint64) Params {
	return Params{tree: &tree{seed: seed, byName: map[string]*Param{}}}
}

// In returns the subtree called name below p.
func (p Params) In(name string) Params { return Params{p.tree, join(p.path, name), p.unset} }

// WithoutValues returns the same subtree, in which parameters are made with nil Data, for callers that set Data to
// values from a file.
func (p Params) WithoutValues() Params { p.unset = true; return p }

// Path returns the path of p in the tree, its names joined by dots; the root's is empty.
func (p Params) Path() string { return p.path }

// Normal makes a parameter drawn from a normal distribution of mean 0 and standard deviation std. It decays if it has
// two dimensions or more.
func (p Params) Normal(name string, std float64, shape ...int) *Param {
	return p.draw(name, shape, func(r *rand.Rand) float64 { return r.NormFloat64() * std })
}

// Table makes a table of embeddings [rows width], initialised as by Normal.
func (p Params) Table(name string, std float64, rows, width int) *Param {
	w := p.Normal(name, std, rows, width)
	w.Table = true
	return w
}

// Uniform makes a parameter drawn evenly from -bound to bound.
func (p Params) Uniform(name string, bound float64, shape ...int) *Param {
	return p.draw(name, shape, func(r *rand.Rand) float64 { return (2*r.Float64() - 1) * bound })
}

func (p Params) draw(name string, shape []int, next func(r *rand.Rand) float64) *Param {
	w := p.make(name, shape)
	if p.unset {
		return w
	}
	r := rand.New(rand.NewPCG(p.tree.seed, hashOf(w.Name)))
	for i := range w.Data {
		w.Data[i] = float32(next(r))
	}
	return w
}

// Zeros makes a parameter of zeros.
func (p Params) Zeros(name string, shape ...int) *Param { return p.make(name, shape) }

// Ones makes a parameter of ones.
func (p Params) Ones(name string, shape ...int) *Param {
	w := p.make(name, shape)
	for i := range w.Data {
		w.Data[i] = 1
	}
	return w
}

// All returns the parameters at and below p, in the order they were made.
func (p Params) All() []*Param {
	var all []*Param
	for _, w := range p.tree.params {
		if p.path == "" || len(w.Name) > len(p.path) && w.Name[:len(p.path)] == p.path && w.Name[len(p.path)] == '.' {
			all = append(all, w)
		}
	}
	return all
}

func (p Params) make(name string, shape []int) *Param {
	n := 1
	for _, d := range shape {
		if d <= 0 || n > math.MaxInt32/d {
			panic(fmt.Sprintf("nn: parameter %s of shape %v", join(p.path, name), shape))
		}
		n *= d
	}
	w := &Param{Name: join(p.path, name), Shape: append([]int(nil), shape...), Decay: len(shape) > 1}
	if !p.unset {
		w.Data = kernel.Floats(n)
	}
	if p.tree.byName[w.Name] != nil {
		panic("nn: duplicate parameter " + w.Name)
	}
	p.tree.byName[w.Name] = w
	p.tree.params = append(p.tree.params, w)
	return w
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}
