// Package onnx reads the weights of ONNX files of transformer encoders: each under PyTorch's name of the parameter and
// in PyTorch's shape, independent of the exporter. Of the graph it reads only what is needed to match initializers to
// parameters. Sizes in a file are checked before memory of that size is allocated.
package onnx

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/safetensors"
)

// maxFile is the largest size in bytes of a Protocol Buffers message.
const maxFile = 1<<31 - 1

// Tensor is a parameter's values in a file.
type Tensor struct {
	// Info has the name and the shape that PyTorch has, such as "encoder.layer.0.output.dense.weight" and [out in]. The
	// type is F32, F16 or BF16.
	safetensors.Info
	// Derived means that the file has no initializer of that name: the parameter was identified by its use in the
	// graph.
	Derived bool

	initializer *initializer
	transposed  bool // the file holds the transpose
}

// File holds an ONNX file's parameters.
type File struct {
	tensors []Tensor
	outside []string
}

// Tensors returns the parameters in the order of their names. The caller must not modify them.
func (f *File) Tensors() []Tensor { return f.tensors }

// ExternalFiles returns the paths of the external files that hold some of its values.
func (f *File) ExternalFiles() []string { return f.outside }

// ExternalFiles returns the paths of the external files that hold values of the file at path, for graphs of any
// operators.
func ExternalFiles(path string) ([]string, error) {
	data, err := files.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	g, err := parseModel(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pathsOf(g.initializers, filepath.Dir(path)), nil
}

// pathsOf returns the paths of the files that hold initializers of a graph in folder.
func pathsOf(initializers []*initializer, folder string) []string {
	var paths []string
	for _, i := range initializers {
		if i.external != nil {
			paths = append(paths, filepath.Join(folder, filepath.FromSlash(i.external.location)))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Open reads the file at path. External files, which must be in the same folder or below, are read by Raw and Floats.
// Errors name the path.
func Open(path string) (*File, error) {
	data, err := files.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	f, err := newFile(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// newFile reads a file in folder whose bytes are data. It retains data.
func newFile(data []byte, folder string) (*File, error) {
	g, err := parseModel(data)
	if err != nil {
		return nil, err
	}
	if err := g.refuse(); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	var weights []*initializer
	for _, i := range g.initializers {
		if names[i.name] {
			return nil, fmt.Errorf("duplicate initializer %q", i.name)
		}
		names[i.name] = true
		if !safetensors.IsFloat(i.dtype) {
			continue
		}
		if err := i.check(folder); err != nil {
			return nil, fmt.Errorf("initializer %q: %w", i.name, err)
		}
		weights = append(weights, i)
	}
	return &File{g.parameters(), pathsOf(weights, folder)}, nil
}

// check compares the length of an initializer with its shape, and finds its external file if it has one.
func (i *initializer) check(folder string) error {
	for _, d := range i.dims {
		if i.shape = append(i.shape, int(d)); int64(int(d)) != d { // on processors of 32 bits
			return fmt.Errorf("its shape %v is too large", i.dims)
		}
	}
	size, err := safetensors.Size(i.dtype, i.shape)
	if err != nil {
		return err
	}
	if i.external == nil {
		if int64(len(i.raw)) != size {
			return fmt.Errorf("%s of shape %v does not take the %d bytes of its data", i.dtype, i.dims, len(i.raw))
		}
		return nil
	}
	return i.external.check(folder, size)
}

func (e *external) check(folder string, size int64) error {
	if !filepath.IsLocal(filepath.FromSlash(e.location)) {
		return fmt.Errorf("its values are in %q; want a file in the folder of the .onnx file", e.location)
	}
	if e.length >= 0 && e.length != size {
		return fmt.Errorf("its shape takes %d bytes, but its length is %d in %q", size, e.length, e.location)
	}
	e.length = size
	e.path = filepath.Join(folder, filepath.FromSlash(e.location))
	stat, err := os.Stat(e.path)
	if err != nil {
		return err
	}
	if !stat.Mode().IsRegular() || e.offset < 0 || e.offset > stat.Size() || size > stat.Size()-e.offset {
		return fmt.Errorf("%s: truncated: it has %d bytes, the values are at bytes %d to %d", e.path, stat.Size(),
			e.offset, e.offset+size)
	}
	return nil
}

// Raw returns the values' bytes in the order of Shape.
func (t Tensor) Raw() ([]byte, error) {
	raw, err := t.initializer.bytes()
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if !t.transposed {
		return slices.Clone(raw), nil
	}
	rows, columns := t.Shape[0], t.Shape[1] // the file has [columns rows]
	if rows*columns == 0 {
		return nil, nil
	}
	width := len(raw) / (rows * columns)
	turned := make([]byte, len(raw))
	for r := range rows {
		for c := range columns {
			copy(turned[(r*columns+c)*width:][:width], raw[(c*rows+r)*width:])
		}
	}
	return turned, nil
}

// Floats returns the values in the order of Shape.
func (t Tensor) Floats() ([]float32, error) {
	raw, err := t.Raw()
	if err != nil {
		return nil, err
	}
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	values := make([]float32, n)
	safetensors.Decode(values, raw, t.DType)
	return values, nil
}

func (i *initializer) bytes() ([]byte, error) {
	if i.external == nil {
		return i.raw, nil
	}
	f, err := files.Open(i.external.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, i.external.length)
	if n, err := f.ReadAt(raw, i.external.offset); n < len(raw) {
		if err == io.EOF {
			return nil, fmt.Errorf("%s: truncated", i.external.path)
		}
		return nil, err
	}
	return raw, nil
}

// The messages of onnx.proto3: the fields that are read, with their numbers there.

// graph is a GraphProto.
type graph struct {
	nodes        []node         // 1
	initializers []*initializer // 5
}

// node is a NodeProto.
type node struct {
	inputs, outputs []string             // 1, 2
	name            string               // 3
	operator        string               // 4
	attributes      map[string]attribute // 5
	domain          string               // 7
	// of metadata_props, 9: the modules that contain the node, as PyTorch writes them
	scopes string
}

// attribute is an AttributeProto.
type attribute struct {
	float  float32      // 2; 1 by default, as in ONNX for all factors
	int    int64        // 3
	tensor *initializer // 5
	ints   []int64      // 8
}

// initializer is a TensorProto.
type initializer struct {
	dims     []int64   // 1
	dtype    string    // 2, as in safetensors; "" for a type that no weight has
	raw      []byte    // 9, or the values of 4 or 5
	name     string    // 8
	external *external // 13, if 14 is EXTERNAL

	shape []int // set by check
}

// external is the position of an initializer in an external file.
type external struct {
	location       string
	offset, length int64 // length -1: not given
	path           string
}

var dtypes = map[uint64]string{1: "F32", 10: "F16", 16: "BF16"}

// scope returns the path of the module that contains a node. Its metadata lists the modules from the outermost, which
// has no name, to the operation: encoder, encoder.layer.0, …, linear. Older exporters write the path in the node's
// name, as in /encoder/layer.0/output/dense/MatMul. It is "" if neither has it.
func (n node) scope() string {
	if list, ok := strings.CutPrefix(n.scopes, "['"); ok {
		modules := strings.Split(strings.TrimSuffix(list, "']"), "', '")
		if len(modules) > 1 {
			return modules[len(modules)-2] // the last is the operation
		}
	}
	path, ok := strings.CutPrefix(n.name, "/")
	end := strings.LastIndexByte(path, '/')
	if !ok || end < 0 {
		return ""
	}
	return strings.ReplaceAll(path[:end], "/", ".")
}

// quantized are the operators of ONNX whose weights are integers.
var quantized = []string{
	"ConvInteger", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearConv", "QLinearMatMul",
	"QuantizeLinear",
}

// refuse returns an error that names operators of graphs that do not hold an encoder's plain weights.
func (g *graph) refuse() error {
	var refused []error
	seen := map[string]bool{}
	for _, n := range g.nodes {
		own := n.domain == "" || n.domain == "ai.onnx"
		operator := n.operator
		if !own {
			operator = n.domain + "." + operator
		}
		for _, factor := range []string{"alpha", "beta"} {
			if a, ok := n.attributes[factor]; ok && operator == "Gemm" && a.float != 1 {
				refused = append(refused,
					fmt.Errorf("operator Gemm: a product times %s %v is not read; want 1", factor, a.float))
			}
		}
		if seen[operator] {
			continue
		}
		seen[operator] = true
		switch {
		case slices.Contains(quantized, n.operator) || strings.HasPrefix(n.operator, "QLinear"):
			refused = append(refused, fmt.Errorf("operator %s: a quantized graph is not read; export the model in "+
				"float32", operator))
		case !own:
			refused = append(refused, fmt.Errorf("operator %s: a graph with fused operators is not read; export the "+
				"model without optimization", operator))
		}
		if len(refused) == 5 {
			break // enough to identify the problem
		}
	}
	return errors.Join(refused...)
}

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
			Info: safetensors.Info{Name: name, DType: p.dtype, Shape: shape}, Derived: p.derived,
			initializer: p.initializer, transposed: p.transposed,
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
