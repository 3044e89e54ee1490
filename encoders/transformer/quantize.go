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

func (t matched) hasIntegers() bool { return t.DType == int8Type }

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
func (e *encoder) quantized(adapter string, keep ...int) (write func(folder string) error) {
	c := &savedEncoder{config: e.savedConfig()}
	for p, t := range e.inFile(adapter, nil) {
		ints := p.table || p.linear != nil && p.shape[1] <= kernel.MaxInt8Depth
		if !ints || slices.Contains(keep, p.level) {
			t.Data = slices.Clone(t.Data)
			c.tensors = append(c.tensors, t)
			continue
		}
		rows := t.Shape[0]
		rounded := kernel.RoundRows(kernel.Dense(t.Data, len(t.Data)/rows), rows, len(t.Data)/rows)
		c.tensors = append(c.tensors, safetensors.Int8Tensor(t.Name, t.Shape, rounded.Data),
			safetensors.Tensor{Name: scalesOf(t.Name), Shape: []int{rows}, Data: rounded.Scales})
	}
	return c.write
}
