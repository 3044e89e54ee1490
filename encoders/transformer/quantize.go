package transformer

import (
	"fmt"
	"slices"

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
	s := w.tensors[scalesOf(t.tensor.Name)]
	scales, err := s.floats()
	if err != nil {
		return kernel.Integers{}, fmt.Errorf("%s: %w", s.file, err)
	}
	i := slices.IndexFunc(scales, func(v float32) bool { return !(v >= 0 && v <= kernel.MaxScale) })
	if i >= 0 {
		wrong.add(s.file, s.Name, fmt.Sprintf("holds %v as scale of row %d; want 0 to %v", scales[i], i,
			kernel.MaxScale))
	}
	row, rows, size := t.in.row, t.shape[0], len(ints)/t.in.of
	return kernel.Integers{Data: ints[row*size : (row+1)*size], Scales: scales[row*rows : (row+1)*rows]}, nil
}

// quantize sets the parameters that have integers in found, those of a linear layer packed for its products, and the
// precision of all linear layers to that of their weights. Where no parameter has integers, it does nothing.
func (e *encoder) quantize(w *weights, found []matched) error {
	if !slices.ContainsFunc(found, matched.hasIntegers) {
		return nil
	}
	if slices.ContainsFunc(found, func(t matched) bool { return t.Learns() }) {
		return fmt.Errorf("%s: %w", w.path, encoders.ErrQuantized)
	}
	e.precision = nn.Int8
	e.embeddings.integers = map[*nn.Param]kernel.Integers{}
	var wrong mistakes
	for _, t := range found {
		var err error
		switch l := t.linear; {
		case l != nil && !t.hasIntegers():
			l.own = new(nn.Float32)
		case l != nil:
			l.own = new(nn.Int8)
			err = l.read(w, t, &wrong)
		case t.hasIntegers():
			err = e.embeddings.read(w, t, &wrong)
		}
		if err != nil {
			return err
		}
	}
	return wrong.err()
}

// hasIntegers reports whether the parameter's tensor has type I8.
func (t matched) hasIntegers() bool { return t.DType == int8Type }

// read packs the integers of the layer's weight.
func (l *linear) read(w *weights, t matched, wrong *mistakes) error {
	in, out := l.weight.Shape[0], l.weight.Shape[1]
	if in > kernel.MaxInt8Depth {
		wrong.add(t.file, t.tensor.Name, fmt.Sprintf("has type %s and rows of %d; at most %d are multiplied", t.DType, in,
			kernel.MaxInt8Depth))
		return nil
	}
	ints, err := t.ints()
	if err != nil {
		return fmt.Errorf("%s: %w", t.file, err)
	}
	if i := slices.Index(ints, -128); i >= 0 {
		wrong.add(t.file, t.tensor.Name, fmt.Sprintf("holds -128 as value %d; want -127 to 127", i))
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
func (e *embeddings) read(w *weights, t matched, wrong *mistakes) (err error) {
	var ints []int8
	if m := t.mapped(); t.Param == e.words && m != nil {
		ints, e.mapped = m.Int8s(t.tensor.Name), true
	}
	if ints == nil {
		if ints, err = t.ints(); err != nil {
			return fmt.Errorf("%s: %w", t.file, err)
		}
	}
	e.integers[t.Param], err = w.integers(t, ints, wrong)
	return err
}

// quantized is Description.Quantized. The file has no tensors that the network does not use.
func (e *encoder) quantized(adapter string, keep ...int) (save func(folder string) error) {
	c := &savedEncoder{config: e.savedConfig()}
	var all []*quantizedTensor
	files := map[string]*quantizedTensor{} // by their names
	for _, p := range e.parameters {
		if p.in.row == 0 {
			ints := p.table || p.linear != nil && p.shape[1] <= kernel.MaxInt8Depth
			t := &quantizedTensor{parameter: p, ints: ints && !slices.Contains(keep, p.level)}
			all, files[p.in.name] = append(all, t), t
		}
		files[p.in.name].add(p, p.values(adapter))
	}
	for _, t := range all {
		c.tensors = append(c.tensors, t.tensors()...)
	}
	return c.write
}

// quantizedTensor is a tensor of a quantized model: of integers, or of float32 values.
type quantizedTensor struct {
	parameter // the first that it has
	ints      bool
	integers  kernel.Integers
	floats    []float32
}

// add adds the values of a parameter, the next one where several are fused.
func (t *quantizedTensor) add(p parameter, values []float32) {
	rows := p.shape[0]
	switch width := len(values) / rows; {
	case t.ints:
		x := kernel.Dense(values, width)
		if p.linear != nil {
			x = kernel.Dense(values, rows).T()
		}
		of := kernel.RoundRows(x, rows, width)
		t.integers.Data = append(t.integers.Data, of.Data...)
		t.integers.Scales = append(t.integers.Scales, of.Scales...)
	case p.linear != nil:
		transposed := make([]float32, len(values))
		kernel.Transpose(transposed, values, width, rows)
		t.floats = append(t.floats, transposed...)
	default:
		t.floats = append(t.floats, values...)
	}
}

// tensors returns the tensor as a file has it, with its scales.
func (t *quantizedTensor) tensors() []safetensors.Tensor {
	if !t.ints {
		return []safetensors.Tensor{{Name: t.in.name, Shape: t.fileShape(), Data: t.floats}}
	}
	scales := t.integers.Scales
	return []safetensors.Tensor{
		safetensors.Int8Tensor(t.in.name, t.fileShape(), t.integers.Data),
		{Name: scalesOf(t.in.name), Shape: []int{len(scales)}, Data: scales},
	}
}
