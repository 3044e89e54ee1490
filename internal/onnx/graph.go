package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

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
