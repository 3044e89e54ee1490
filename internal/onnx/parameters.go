package onnx

import (
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/safetensors"
)

// constant is a value of the graph that does not depend on inputs: an initializer, maybe transposed.
type constant struct {
	*initializer
	transposed bool
}

// parameter is the constant that the graph has for a name.
type parameter struct {
	constant
	ambiguous bool // the graph has two
	derived   bool
}

// reader finds the parameters of a graph.
type reader struct {
	constants map[string]constant  // by value name
	named     map[string]parameter // initializers' own names, and those of copies of them
	scoped    map[string]parameter // module and role: "encoder.layer.0.output.dense" ".weight"
	products  map[string]constant  // by the value that is an input times a linear layer's weight [out in]
	biased    map[string]parameter // by a bias's name, the weight of the same layer
	biasUses  map[string]int       // the number of products a bias is added to
}

// parameters returns the graph's parameters in the order of their names.
// Exporters keep the names of most initializers, but a linear layer's weight is often transposed and without its name,
// folded into a MatMul, and one initializer may replace several with equal values. A parameter is identified by, in
// this order: the initializer's own name, the name of a copy of it, the module of the node that reads it, the name of
// the bias that is added to its product.
func (g *graph) parameters() []Tensor {
	r := &reader{
		constants: map[string]constant{}, named: map[string]parameter{}, scoped: map[string]parameter{},
		products: map[string]constant{}, biased: map[string]parameter{}, biasUses: map[string]int{},
	}
	for _, i := range g.initializers {
		r.name(i.name, i)
	}
	for _, n := range g.nodes { // in topological order
		r.read(n)
	}

	all := map[string]parameter{}
	for bias, p := range r.biased {
		if weight, ok := strings.CutSuffix(bias, ".bias"); ok && r.biasUses[bias] == 1 {
			all[weight+".weight"] = p
		}
	}
	for name, p := range r.scoped {
		if !p.ambiguous {
			all[name] = p
		}
	}
	for name, p := range r.named {
		if isParameter(name) {
			all[name] = p
		}
	}

	var tensors []Tensor
	for _, name := range slices.Sorted(maps.Keys(all)) {
		p := all[name]
		if p.ambiguous {
			continue
		}
		shape := slices.Clone(p.shape)
		if p.transposed {
			slices.Reverse(shape)
		}
		tensors = append(tensors, Tensor{
			Name: name, DType: p.dtype, Shape: shape, Derived: p.derived, initializer: p.initializer,
			transposed: p.transposed,
		})
	}
	return tensors
}

// isParameter reports whether a name is a parameter's, not one that an exporter invented for a constant.
func isParameter(name string) bool {
	return slices.ContainsFunc([]string{".weight", ".bias", ".gamma", ".beta"}, func(end string) bool {
		return strings.HasSuffix(name, end)
	})
}

// name records an initializer under its own name.
func (r *reader) name(name string, i *initializer) {
	if safetensors.IsFloat(i.dtype) {
		r.constants[name] = constant{initializer: i}
		r.named[name] = parameter{constant: constant{initializer: i}}
	}
}

// read records which parameters a node's initializers are.
func (r *reader) read(n node) {
	if len(n.inputs) == 0 || len(n.outputs) == 0 {
		return
	}
	out, scope := n.outputs[0], n.scope()
	switch n.operator {
	case "Identity":
		if c, ok := r.constants[n.inputs[0]]; ok {
			r.constants[out] = c
			r.named[out] = parameter{constant: c, derived: true}
		}
	case "Transpose":
		c, ok := r.constants[n.inputs[0]]
		perm := n.attributes["perm"].ints
		if ok && len(c.shape) == 2 && (perm == nil || slices.Equal(perm, []int64{1, 0})) {
			r.constants[out] = constant{c.initializer, !c.transposed}
		}
	case "MatMul":
		r.readProduct(n, scope, false)
	case "Gemm":
		r.readProduct(n, scope, n.attributes["transB"].int != 0)
		if bias, ok := r.constants[n.input(2)]; ok {
			r.addBias(n.inputs[2], bias, out, scope)
		}
	case "Add":
		for i, other := range []string{n.input(1), n.input(0)} {
			if bias, ok := r.constants[n.input(i)]; ok && len(bias.shape) == 1 {
				r.addBias(n.input(i), bias, other, scope)
			}
		}
	case "Mul": // the last but one operation of a decomposed layer norm
		for _, in := range n.inputs {
			if c, ok := r.constants[in]; ok && len(c.shape) == 1 {
				note(r.scoped, scope, ".weight", c)
			}
		}
	case "LayerNormalization":
		for i, role := range []string{".weight", ".bias"} {
			if c, ok := r.constants[n.input(i+1)]; ok {
				note(r.scoped, scope, role, c)
			}
		}
	case "Gather":
		if c, ok := r.constants[n.inputs[0]]; ok && len(c.shape) == 2 {
			note(r.scoped, scope, ".weight", c)
		}
	}
}

// input returns the name of a node's i-th input, "" if it has none.
func (n node) input(i int) string {
	if i < len(n.inputs) {
		return n.inputs[i]
	}
	return ""
}

// readProduct records that a node multiplies by a linear layer's weight, as [in out] or, turned, as [out in].
func (r *reader) readProduct(n node, scope string, turned bool) {
	c, ok := r.constants[n.input(1)]
	if !ok || len(c.shape) != 2 {
		return
	}
	if !turned {
		c.transposed = !c.transposed
	}
	r.products[n.outputs[0]] = c
	note(r.scoped, scope, ".weight", c)
	if p, ok := r.named[n.inputs[1]]; ok && !p.derived {
		p.transposed = c.transposed // in the file the name is that of the transpose
		r.named[n.inputs[1]] = p
	}
}

// addBias records that a bias is added to a value.
func (r *reader) addBias(name string, bias constant, value, scope string) {
	note(r.scoped, scope, ".bias", bias)
	if weight, ok := r.products[value]; ok {
		r.biasUses[name]++
		note(r.biased, name, "", weight)
	}
}

// note records that a module's parameter is c. A parameter with two different constants is ambiguous.
func note(notes map[string]parameter, module, role string, c constant) {
	if module == "" {
		return
	}
	old, twice := notes[module+role]
	notes[module+role] = parameter{constant: c, derived: true, ambiguous: twice && (old.ambiguous || old.constant != c)}
}
