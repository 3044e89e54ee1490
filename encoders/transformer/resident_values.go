//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/nn"
)

// deviceValues are the values of a resident encoder's matrices: numbers from 0 to size, section by section.
type deviceValues struct {
	size     int
	sections [6]int // where each section ends
	// wide has float32 values: of the factors that learn, of all vectors and tables, of the frozen factors. Without a
	// store, which alone changes values, the first and the last are there only from a float32 pass on.
	wide [3]arena
	low  [2]arena // bfloat16, of factors and vectors: of those that learn, and the frozen ones; for bfloat16 passes
	// lowCurrent says that low has the values of wide, or where these are not there, of the parameters.
	lowCurrent bool
}

// arena is the device's memory for a range of numbers.
type arena struct {
	from, to int
	memory   cuda.Pointer // null: there is none
}

// The sections of matrices, each of one kind of update. First come those that learn.
const (
	learningFactors = iota
	learningVectors
	learningTables
	frozenTables
	frozenVectors
	frozenFactors
)

// section returns the matrix's section.
func (t *matrix) section() int {
	learns := t.learns()
	switch {
	case t.factor && learns:
		return learningFactors
	case t.factor:
		return frozenFactors
	case t.parts[0].Table && learns:
		return learningTables
	case t.parts[0].Table:
		return frozenTables
	case learns:
		return learningVectors
	}
	return frozenVectors
}

// place gives the matrices their places, each at a multiple of 64 numbers. A norm's and the bias of the layer before it
// are in a row, as far as they are in one section.
func (r *resident) place() {
	var order []*matrix
	for _, b := range r.layers {
		order = append(order, b.middle.gain, b.middle.bias, b.output.bias,
			b.followed.gain, b.followed.bias, b.down.bias)
	}
	order = append(order, r.matrices...)
	v, placed := &r.values, map[*matrix]bool{nil: true}
	for section := range v.sections {
		for _, t := range order {
			if !placed[t] && t.section() == section {
				t.at, placed[t] = v.size, true
				v.size += (t.size() + 63) / 64 * 64
			}
		}
		v.sections[section] = v.size
	}
	ends := v.sections
	v.wide = [3]arena{{to: ends[learningFactors]}, {from: ends[learningFactors], to: ends[frozenVectors]},
		{from: ends[frozenVectors], to: v.size}}
	v.low = [2]arena{{to: ends[learningVectors]}, {from: ends[frozenTables], to: v.size}}
}

// learning is the number of values that learn.
func (r *resident) learning() int { return r.values.sections[learningTables] }

// has reports whether the numbers of a matrix are the arena's.
func (a *arena) has(t *matrix) bool { return t.at >= a.from && t.at < a.to }

// at returns the address of the numbers from n on, of so many bytes each; null where there is no memory.
func (a *arena) at(n, bytes int) cuda.Pointer {
	if a.memory == 0 {
		return 0
	}
	return a.memory + cuda.Pointer(bytes*(n-a.from))
}

// at returns the address of a matrix's float32 values, null for none.
func (r *resident) at(t *matrix) cuda.Pointer {
	for i := range r.values.wide {
		if a := &r.values.wide[i]; t != nil && a.has(t) {
			return a.at(t.at, 4)
		}
	}
	return 0
}

// lowAt returns the address of a factor's or a vector's bfloat16 values.
func (r *resident) lowAt(t *matrix) cuda.Pointer {
	for i := range r.values.low {
		if a := &r.values.low[i]; a.has(t) {
			return a.at(t.at, 2)
		}
	}
	return 0
}

// factor returns the address of a weight as the factor of a product.
func (r *resident) factor(t *matrix, kind cuda.Type) cuda.Pointer {
	if kind == cuda.BFloat16 {
		return r.lowAt(t)
	}
	return r.at(t)
}

// hold makes the values current that passes of a type read.
func (r *resident) hold(kind cuda.Type) error {
	if kind == cuda.BFloat16 {
		return r.lower()
	}
	return r.holdWide(0, 1, 2)
}

// holdWide makes memory for the arenas of float32 values that have none, and copies the values of the parameters there.
func (r *resident) holdWide(arenas ...int) (err error) {
	for _, i := range arenas {
		a := &r.values.wide[i]
		if a.memory != 0 {
			continue
		}
		if a.memory, err = r.gpu.Alloc(4 * (a.to - a.from)); err != nil {
			return err
		}
		host := make([]float32, a.to-a.from)
		for _, t := range r.matrices {
			if a.has(t) {
				t.join(host[t.at-a.from:], data)
			}
		}
		r.gpu.Upload(a.memory, cuda.Bytes(host))
	}
	return nil
}

// data returns a parameter's values on the host.
func data(w *nn.Param) []float32 { return w.Data }

// lower makes the bfloat16 values current.
func (r *resident) lower() (err error) {
	v := &r.values
	for i := range v.low {
		if a := &v.low[i]; a.memory == 0 {
			if a.memory, err = r.gpu.Alloc(2 * (a.to - a.from)); err != nil {
				return err
			}
		}
	}
	if v.lowCurrent {
		return nil
	}
	var largest int // of the matrices that have no float32 values on the device
	for _, t := range r.matrices {
		if r.at(t) == 0 {
			largest = max(largest, t.size())
		}
	}
	passing, err := r.gpu.Alloc(4 * largest)
	if err != nil {
		return err
	}
	host := make([]float32, largest)
	for _, t := range r.matrices {
		to, from := r.lowAt(t), r.at(t)
		if to == 0 {
			continue // a table
		}
		if from == 0 {
			t.join(host, data)
			r.gpu.Upload(passing, cuda.Bytes(host[:t.size()]))
			from = passing
		}
		r.gpu.Convert(to, from, t.size())
	}
	r.gpu.FreeMemory(passing)
	v.lowCurrent = true
	return nil
}

// write copies the values that learn to the device.
func (r *resident) write(values []float32) {
	for i := range r.values.wide {
		a := &r.values.wide[i]
		if to := min(a.to, len(values)); a.from < to {
			r.gpu.Upload(a.memory, cuda.Bytes(values[a.from:to]))
		}
	}
	r.values.lowCurrent = false
}

// read copies the float32 values from a number on to the host, as far as the device has them.
func (r *resident) read(values []float32, first int) error {
	for i := range r.values.wide {
		a := &r.values.wide[i]
		from, to := max(a.from, first), min(a.to, first+len(values))
		if a.memory != 0 && from < to {
			r.gpu.Download(cuda.Bytes(values[from-first:to-first]), a.at(from, 4))
		}
	}
	return r.gpu.Synchronize()
}

// join writes the parts' values of each row side by side.
func (t *matrix) join(to []float32, values func(w *nn.Param) []float32) {
	at := 0
	for _, w := range t.parts {
		from, n := values(w), t.columnsOf(w)
		for row := range t.rows {
			copy(to[row*t.columns+at:][:n], from[row*n:])
		}
		at += n
	}
}

// split is the inverse of join.
func (t *matrix) split(from []float32, values func(w *nn.Param) []float32) {
	at := 0
	for _, w := range t.parts {
		to, n := values(w), t.columnsOf(w)
		for row := range t.rows {
			copy(to[row*n:][:n], from[row*t.columns+at:])
		}
		at += n
	}
}

func (t *matrix) columnsOf(w *nn.Param) int { return w.Shape[len(w.Shape)-1] }

// fetch copies the values of the parameters that learn to the host. What the device does not have has not changed.
func (r *resident) fetch() error {
	host := make([]float32, r.learning())
	if err := r.read(host, 0); err != nil {
		return err
	}
	for _, t := range r.matrices {
		if t.learns() && r.at(t) != 0 {
			t.split(host[t.at:], data)
		}
	}
	return nil
}

// frozen is encoders.Resident.Frozen.
func (r *resident) frozen() ([]*nn.Param, error) {
	first := r.learning()
	host := make([]float32, r.values.size-first)
	if err := r.read(host, first); err != nil {
		return nil, err
	}
	values := map[*nn.Param][]float32{}
	for _, t := range r.matrices {
		if !t.learns() && r.at(t) != 0 {
			t.split(host[t.at-first:], func(w *nn.Param) []float32 {
				values[w] = make([]float32, w.Size())
				return values[w]
			})
		}
	}
	var all []*nn.Param
	for _, w := range r.all {
		if !w.Learns() {
			now, ok := values[w]
			if !ok { // the device has none that could have changed
				now = w.Data
			}
			all = append(all, &nn.Param{Name: w.Name, Shape: w.Shape, Data: now, Frozen: true})
		}
	}
	return all, nil
}
