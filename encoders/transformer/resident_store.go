//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// deviceStore has the gradients of a resident encoder and the moments of AdamW in the device's memory.
type deviceStore struct {
	of                      *resident
	rule                    kernel.AdamW
	gradients, mean, square cuda.Pointer // [learning] float32
	partial                 cuda.Pointer // float64: of each block of the sum of squares, and the sum
	sum                     []float32    // page-locked memory of one float64
	steps                   int          // updates so far
	added                   bool         // a backward pass has added to the gradients since Zero
	moved                   bool         // the last sum of squares was not 0
}

var (
	_ nn.Store         = (*deviceStore)(nil)
	_ nn.SnapshotStore = (*deviceStore)(nil)
)

// newStore is encoders.Resident.Store. Where the device has too little memory, the store's first sum is that error.
func (r *resident) newStore(weightDecay float64, _ int) nn.Store {
	usual := nn.DefaultAdamW
	s := &deviceStore{of: r, rule: kernel.AdamW{
		Beta1: usual.Beta1, Beta2: usual.Beta2, Epsilon: usual.Epsilon, Decay: weightDecay,
	}}
	if r.failed = r.holdWide(0, 1, 2); r.failed != nil {
		return s
	}
	n := r.learning()
	blocks := cuda.SquareSums(n)
	for to, bytes := range map[*cuda.Pointer]int{
		&s.gradients: 4 * n, &s.mean: 4 * n, &s.square: 4 * n, &s.partial: 8 * (blocks + 1),
	} {
		made, err := r.gpu.Alloc(bytes)
		if err != nil {
			r.failed = err
			return s
		}
		*to = made
		r.gpu.Clear(made, bytes)
	}
	s.sum, r.failed = r.gpu.HostFloats(2)
	r.store = s
	return s
}

// Close releases the memory.
func (s *deviceStore) Close() error {
	for _, p := range []cuda.Pointer{s.gradients, s.mean, s.square, s.partial} {
		s.of.gpu.FreeMemory(p)
	}
	s.of.gpu.FreeHost(s.sum)
	if s.of.store == s {
		s.of.store = nil
	}
	return nil
}

// Zero implements nn.Store.
func (s *deviceStore) Zero() {
	if s.of.failed == nil {
		s.of.gpu.Clear(s.gradients, 4*s.of.learning())
	}
	s.added = false
}

// SumSquares implements nn.Store.
func (s *deviceStore) SumSquares() (float64, error) {
	if s.of.failed != nil {
		return 0, s.of.failed
	}
	if s.moved = s.added; !s.added {
		return 0, nil
	}
	n := s.of.learning()
	blocks := cuda.SquareSums(n)
	total := s.partial + cuda.Pointer(8*blocks)
	s.of.gpu.Squares(s.partial, s.gradients, n)
	s.of.gpu.SumDoubles(total, s.partial, blocks)
	s.of.gpu.Download(cuda.Bytes(s.sum), total)
	if err := s.of.gpu.Synchronize(); err != nil {
		return 0, err
	}
	sum := math.Float64frombits(uint64(math.Float32bits(s.sum[0])) | uint64(math.Float32bits(s.sum[1]))<<32)
	s.moved = sum != 0
	return sum, nil
}

// Update implements nn.Store.
func (s *deviceStore) Update(factor float32, rate float64) error {
	r := s.of
	if r.failed != nil || !s.moved {
		return r.failed
	}
	s.steps++
	v, from := &r.values, 0
	for section, to := range v.sections[:learningTables+1] {
		rule := s.rule
		rule.Rate = rate
		low := cuda.Pointer(0)
		if v.lowCurrent && section != learningTables {
			low = v.low[0].at(from, 2)
		}
		values := &v.wide[1]
		switch section {
		case learningFactors:
			values = &v.wide[0]
		case learningVectors:
			rule.Decay = 0
		}
		at := cuda.Pointer(4 * from)
		r.gpu.AdamW(values.at(from, 4), s.mean+at, s.square+at, s.gradients+at, low, to-from,
			adamWStep(rule, factor, s.steps))
		from = to
	}
	return r.gpu.Err()
}

// adamWStep returns the constants of a step for cuda.Device.AdamW, as internal/kernel computes them.
func adamWStep(rule kernel.AdamW, scale float32, step int) [8]float32 {
	return [8]float32{
		scale,
		float32(1 - rule.Beta1),
		float32(rule.Beta2), float32(1 - rule.Beta2),
		rule.Factor(),
		float32(rule.Rate / (1 - math.Pow(rule.Beta1, float64(step)))),
		float32(1 / math.Sqrt(1-math.Pow(rule.Beta2, float64(step)))),
		float32(rule.Epsilon),
	}
}

// slotNames are those of nn.AdamW's moments.
var slotNames = [2]string{"mean", "square"}

// State implements nn.SnapshotStore.
func (s *deviceStore) State() (all []nn.ParamState, err error) {
	arena := make([]float32, s.of.learning())
	at := map[*nn.Param]*[3][]float32{}
	for i, moment := range []cuda.Pointer{0, s.mean, s.square} { // the values first
		if i > 0 {
			s.of.gpu.Download(cuda.Bytes(arena), moment)
			err = s.of.gpu.Synchronize()
		} else {
			err = s.of.read(arena, 0)
		}
		if err != nil {
			return nil, err
		}
		for _, t := range s.of.matrices {
			if !t.learns() {
				continue
			}
			t.split(arena[t.at:], func(w *nn.Param) []float32 {
				if at[w] == nil {
					at[w] = &[3][]float32{}
				}
				at[w][i] = make([]float32, w.Size())
				return at[w][i]
			})
		}
	}
	for _, w := range s.params() {
		p := nn.ParamState{Name: w.Name, Values: at[w][0]}
		if s.steps > 0 {
			p.Steps = s.steps
			for i, name := range slotNames {
				p.Slots = append(p.Slots, nn.Slot{Name: name, Values: at[w][1+i]})
			}
		}
		all = append(all, p)
	}
	return all, nil
}

// params returns the parameters that learn, in the order of the network's list.
func (s *deviceStore) params() []*nn.Param {
	var all []*nn.Param
	for _, p := range s.of.parameters {
		if p.Learns() {
			all = append(all, p.Param)
		}
	}
	return all
}

// SetState implements nn.SnapshotStore.
func (s *deviceStore) SetState(state []nn.ParamState) error {
	params := s.params()
	if err := nn.CheckState(params, state); err != nil {
		return err
	}
	of, steps := map[*nn.Param]nn.ParamState{}, 0
	for i, p := range state {
		if p.Steps > 0 && (len(p.Slots) != 2 || len(p.Slots[0].Values) != len(p.Values) ||
			len(p.Slots[1].Values) != len(p.Values)) {
			return fmt.Errorf("parameter %q: its state is not that of AdamW", p.Name)
		}
		// on the processor a parameter has no update of a step whose gradient is 0
		steps = max(steps, p.Steps)
		of[params[i]] = p
	}
	n := s.of.learning()
	for i, moment := range []cuda.Pointer{0, s.mean, s.square} { // the values first
		arena := make([]float32, n)
		for _, t := range s.of.matrices {
			if !t.learns() {
				continue
			}
			t.join(arena[t.at:], func(w *nn.Param) []float32 {
				switch p := of[w]; {
				case i == 0:
					return p.Values
				case p.Steps > 0:
					return p.Slots[i-1].Values
				}
				return make([]float32, w.Size())
			})
		}
		if i > 0 {
			s.of.gpu.Upload(moment, cuda.Bytes(arena))
		} else {
			s.of.write(arena)
		}
	}
	s.steps = steps
	return s.of.gpu.Synchronize()
}
