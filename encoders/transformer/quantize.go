package transformer

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// A quantized model has the weights of linear layers and the tables of embeddings as tensors of type I8, with integers
// from -127 to 127, and beside each of these NAME one NAME_scale of type F32 with a number for each row: a row is its
// integers times its scale. The rows of a linear layer's weight are those of its outputs. All else is float32.

const int8Type = "I8"

// scalesOf returns the name of the tensor that has the scales of a tensor of type I8.
func scalesOf(tensor string) string { return tensor + "_scale" }

// matchScales adds to wrong a missing, misshapen or mistyped tensor of the scales of t.
func (w *weights) matchScales(t tensor, wrong *mistakes) {
	s, ok := w.tensors[scalesOf(t.Name)]
	switch {
	case !ok:
		wrong.add(t.file, t.Name, fmt.Sprintf("has type %s, and there is no tensor %q with the scales of its rows",
			t.DType, scalesOf(t.Name)))
	case s.DType != "F32" || !slices.Equal(s.Shape, t.Shape[:1]):
		wrong.add(s.file, s.Name, fmt.Sprintf("has type %s and shape %v; want F32 and %v, a scale for each row of %q",
			s.DType, s.Shape, t.Shape[:1], t.Name))
	}
}

// checkUnscaled adds to wrong the scales of a tensor that has none.
func (w *weights) checkUnscaled(t tensor, wrong *mistakes) {
	if s, ok := w.tensors[scalesOf(t.Name)]; ok {
		wrong.add(s.file, s.Name, fmt.Sprintf("has scales of the tensor %q, whose type is %s and not %s", t.Name,
			t.DType, int8Type))
	}
}

// integers returns an I8 tensor's part that is a parameter, of which ints has all values.
func (w *weights) integers(t matched, ints []int8, wrong *mistakes) (kernel.Integers, error) {
	s := w.tensors[scalesOf(t.Name)]
	scales, err := s.floats()
	if err != nil {
		return kernel.Integers{}, fmt.Errorf("%s: %w", s.file, err)
	}
	i := slices.IndexFunc(scales, func(v float32) bool { return !(v >= 0 && v <= kernel.MaxScale) })
	if i >= 0 {
		wrong.add(s.file, s.Name, fmt.Sprintf("holds %v as scale of row %d; want 0 to %v", scales[i], i,
			kernel.MaxScale))
	}
	rows, size := t.param.shape[0], len(ints)/t.param.fused.of
	row := t.param.fused.row
	return kernel.Integers{Data: ints[row*size : (row+1)*size], Scales: scales[row*rows : (row+1)*rows]}, nil
}

// quantize sets the parameters that have integers in found, those of a linear layer packed for its products, and the
// precision of all linear layers to that of their weights. Where no parameter has integers, it does nothing.
func (e *encoder) quantize(w *weights, found map[string]matched) error {
	params, linears := e.params.All(), e.linears()
	isInts := func(p *nn.Param) bool { return found[below(p.Name, e.params)].DType == int8Type }
	if !slices.ContainsFunc(params, isInts) {
		return nil
	}
	if slices.ContainsFunc(params, (*nn.Param).Learns) {
		return fmt.Errorf("%s: %w", w.path, encoders.ErrQuantized)
	}
	e.precision = nn.Int8
	e.embeddings.integers = map[*nn.Param]kernel.Integers{}
	var wrong mistakes
	for _, p := range params {
		l, t := linears[p], found[below(p.Name, e.params)]
		var err error
		switch {
		case l != nil && !isInts(p):
			l.own = new(nn.Float32)
		case l != nil:
			l.own = new(nn.Int8)
			err = l.read(w, t, &wrong)
		case isInts(p):
			err = e.embeddings.read(w, t, p, &wrong)
		}
		if err != nil {
			return err
		}
	}
	return wrong.err()
}

// linears returns the encoder's linear layers by their weights.
func (e *encoder) linears() map[*nn.Param]*linear {
	all := map[*nn.Param]*linear{}
	if l := e.embeddings.project; l != nil {
		all[l.weight] = l
	}
	for i := range e.blocks {
		for _, name := range e.blocks[i].targets() {
			l := e.blocks[i].target(name)
			all[l.weight] = l
		}
	}
	return all
}

// read packs the integers of the layer's weight.
func (l *linear) read(w *weights, t matched, wrong *mistakes) error {
	in, out := l.weight.Shape[0], l.weight.Shape[1]
	if in > kernel.MaxInt8Depth {
		wrong.add(t.file, t.Name, fmt.Sprintf("has type %s and rows of %d; at most %d are multiplied", t.DType, in,
			kernel.MaxInt8Depth))
		return nil
	}
	ints, err := t.ints()
	if err != nil {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	if i := slices.Index(ints, -128); i >= 0 {
		wrong.add(t.file, t.Name, fmt.Sprintf("holds -128 as value %d; want -127 to 127", i))
		return nil
	}
	columns, err := w.integers(t, ints, wrong)
	if err != nil {
		return err
	}
	made := &packed{precision: nn.Int8}
	made.PackIntegers(columns, in, out)
	l.packed.Store(made)
	return nil
}

// read sets the integers of a table. Those of the words are in the mapped file, if they can be.
func (e *embeddings) read(w *weights, t matched, table *nn.Param, wrong *mistakes) (err error) {
	var ints []int8
	if table == e.words {
		ints, e.mapped = t.viewInts()
	}
	if ints == nil {
		if ints, err = t.ints(); err != nil {
			return fmt.Errorf("%s: %w", t.file, err)
		}
	}
	e.integers[table], err = w.integers(t, ints, wrong)
	return err
}

// quantized is Description.Quantized. The file has no tensors that the network does not use.
func (e *encoder) quantized(adapter string, keep ...int) (save func(folder string) error) {
	c := &savedEncoder{config: e.savedConfig()}
	linears, named := e.linears(), map[string]*nn.Param{}
	for _, p := range e.params.All() {
		named[below(p.Name, e.params)] = p
	}
	var all []*quantizedTensor
	files := map[string]*quantizedTensor{} // by their names
	for s := range storedParameters(e.config) {
		p := named[s.name]
		values := p.Data
		if l := linears[p]; l != nil {
			values, _ = l.of(&nn.Pass{Adapter: adapter}).values()
		}
		if s.fused.row == 0 {
			ints := s.table || s.linear && s.shape[1] <= kernel.MaxInt8Depth
			t := &quantizedTensor{stored: s, ints: ints && !slices.Contains(keep, levelOf(s.name))}
			all, files[s.file] = append(all, t), t
		}
		files[s.file].add(s, values)
	}
	for _, t := range all {
		c.tensors = append(c.tensors, t.tensors()...)
	}
	return c.write
}

// levelOf returns the level of a parameter of a network, by its name below the encoder's subtree.
func levelOf(name string) int {
	if layer, ok := strings.CutPrefix(name, layersHere); ok {
		number, _, _ := strings.Cut(layer, ".")
		if n, err := strconv.Atoi(number); err == nil {
			return n + 1
		}
	}
	return 0
}

// quantizedTensor is a tensor of a quantized model: of integers, or of float32 values.
type quantizedTensor struct {
	stored
	ints     bool
	integers kernel.Integers
	values   []float32
}

// add adds the values of a parameter, the next one where several are fused.
func (t *quantizedTensor) add(s stored, values []float32) {
	rows := s.shape[0]
	switch width := len(values) / rows; {
	case t.ints:
		x := kernel.Dense(values, width)
		if s.linear {
			x = kernel.Dense(values, rows).T()
		}
		of := kernel.RoundRows(x, rows, width)
		t.integers.Data = append(t.integers.Data, of.Data...)
		t.integers.Scales = append(t.integers.Scales, of.Scales...)
	case s.linear:
		transposed := make([]float32, len(values))
		kernel.Transpose(transposed, values, width, rows)
		t.values = append(t.values, transposed...)
	default:
		t.values = append(t.values, values...)
	}
}

// tensors returns the tensor as a file has it, with its scales.
func (t *quantizedTensor) tensors() []safetensors.Tensor {
	if !t.ints {
		return []safetensors.Tensor{{Name: t.file, Shape: t.fileShape(), Data: t.values}}
	}
	scales := t.integers.Scales
	return []safetensors.Tensor{
		safetensors.Int8Tensor(t.file, t.fileShape(), t.integers.Data),
		{Name: scalesOf(t.file), Shape: []int{len(scales)}, Data: scales},
	}
}
