package collective

import (
	"sync"
	"unsafe"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Floats returns memory of n zeros for values that are sent.
func (g *Group) Floats(n int) ([]float32, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	memory, err := g.allocate(4 * n)
	if err != nil {
		return nil, err
	}
	values := floats(memory)[:n]
	kernel.RequestLargePages(values)
	return values, nil
}

// Release gives back memory of Floats, which is not used any more.
func (g *Group) Release(values []float32) {
	if cap(values) == 0 {
		return
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	g.free = append(g.free, bytesOf(values[:cap(values)]))
}

// floats returns the memory of a message, which is aligned, as values.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// Part returns the range of units whose sums a rank has after Scatter: they are halved as often as there are bits in
// ranks, the lowest bit of the rank first.
func Part(units, rank, ranks int) (from, to int) {
	to = units
	for distance := 1; distance < ranks; distance *= 2 {
		if middle := half(from, to); rank&distance == 0 {
			to = middle
		} else {
			from = middle
		}
	}
	return from, to
}

func half(from, to int) int { return to - (to-from)/2 }

// Bounds returns the bounds of units of at most size values.
func Bounds(values, size int) []int {
	var bounds []int
	for at := 0; at < values; at += size {
		bounds = append(bounds, at)
	}
	return append(bounds, values)
}

// RoundSums makes Sum and Scatter round the sum of each two values, which are in bfloat16, to it, and send them in half
// the bytes.
func (g *Group) RoundSums() { g.rounds = true }

// SumNative replaces values, in memory of Floats, by their sums over all ranks in the transport's own order.
func (g *Group) SumNative(values []float32) error {
	if len(values) == 0 {
		return nil
	}
	g.meter.begin(4 * len(values)) // more or less, by the transport's algorithm
	defer g.meter.end()
	return wait(func(done func(error)) { g.transport.(Summer).Sum(bytesOf(values), done) })
}

// Sum replaces values, in memory of Floats, by their sums over all ranks, which have the order of the tree.
func (g *Group) Sum(values []float32) error {
	bounds := Bounds(len(values), 1024)
	s := &scatter{tag: tagValues, values: values, bounds: bounds, to: len(bounds) - 1, distance: 1}
	err := wait(func(done func(error)) {
		s.done = done
		g.scatter(s)
	})
	if err != nil {
		return err
	}
	if g.rounds {
		return g.gatherPairs(values, bounds)
	}
	return g.GatherParts(values, bounds)
}

// lanes is the number of scatters that run beside each other.
const lanes = 2

// lane runs scatters one after the other.
type lane struct {
	tag   int
	mutex sync.Mutex
	queue []*scatter // the first one runs
}

// scatter is a Scatter that has not ended: so far its units from to to have the sums over some of the ranks.
type scatter struct {
	tag      int
	values   []float32
	bounds   []int
	from, to int
	distance int
	done     func(error)
}

// Scatter begins to replace the values of this rank's Part of the units by their sums over all ranks, and others by
// sums over some of them (recursive halving, Thakur et al. 2005, with the nearest neighbours first): the sums have the
// order of the tree. Unit i is values[bounds[i]:bounds[i+1]], in memory of Floats. Scattered waits for the end.
func (g *Group) Scatter(values []float32, bounds []int) {
	if g.scatters == nil {
		result := make(chan error, 1)
		g.scatters, g.scattered = &pending{left: 1, done: func(err error) { result <- err }}, result
	}
	l, ended := &g.lanes[g.started%lanes], g.scatters.add()
	g.started++
	s := &scatter{tag: l.tag, values: values, bounds: bounds, to: len(bounds) - 1, distance: 1}
	s.done = func(err error) {
		if next := l.next(); next != nil {
			g.scatter(next)
		}
		ended(err)
	}
	if l.add(s) {
		g.scatter(s)
	}
}

// Scattered waits for all that Scatter has begun, and returns the first error.
func (g *Group) Scattered() error {
	if g.scatters == nil {
		return nil
	}
	return wait(func(done func(error)) {
		all, result := g.scatters, g.scattered
		g.scatters = nil
		all.end(nil)
		done(<-result)
	})
}

// add adds a scatter to a lane, and reports whether it is the first.
func (l *lane) add(s *scatter) (first bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.queue = append(l.queue, s)
	return len(l.queue) == 1
}

// next ends the first scatter of a lane and returns the next one, nil if there is none.
func (l *lane) next() *scatter {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.queue = l.queue[1:]; len(l.queue) == 0 {
		return nil
	}
	return l.queue[0]
}

// scatter exchanges a half of the units with the rank at a distance, adds up the other half, and goes on with that at
// twice the distance.
func (g *Group) scatter(s *scatter) {
	if s.distance >= g.ranks {
		s.done(nil)
		return
	}
	middle := half(s.from, s.to)
	keep, give := s.values[s.bounds[s.from]:s.bounds[middle]], s.values[s.bounds[middle]:s.bounds[s.to]]
	if g.rank&s.distance != 0 {
		keep, give = give, keep
		s.from = middle
	} else {
		s.to = middle
	}
	with := g.rank ^ s.distance
	s.distance *= 2
	send, other, err := g.messages(s.tag, give, len(keep))
	if err != nil {
		s.done(err)
		return
	}
	g.post(with, s.tag, send, other, func(err error) {
		switch {
		case err != nil:
			s.done(err)
			return
		case g.rounds:
			kernel.AddBFloat16(keep, floats(other))
		default:
			kernel.Add(keep, floats(other))
		}
		g.scatter(s)
	})
}

// messages returns what is sent of values, and memory of a tag for so many that are received: in bfloat16 where sums
// are rounded to it.
func (g *Group) messages(tag int, give []float32, receive int) (send, received []byte, err error) {
	if !g.rounds {
		received, err = g.buffer(tag, 4*receive)
		return bytesOf(give), received, err
	}
	sent := 4 * kernel.BFloat16Pairs(len(give))
	memory, err := g.buffer(tag, sent+4*kernel.BFloat16Pairs(receive))
	if err != nil {
		return nil, nil, err
	}
	kernel.PackBFloat16(floats(memory[:sent]), give)
	return memory[:sent], memory[sent:], nil
}

// GatherParts replaces the values of the other ranks' parts of units by those that these ranks have. Each of bounds is
// that of units which are divided among the ranks.
func (g *Group) GatherParts(values []float32, bounds ...[]int) error {
	for distance := g.ranks / 2; distance > 0; distance /= 2 {
		partner := g.rank ^ distance
		err := wait(func(done func(error)) {
			all := &pending{left: 1, done: done}
			for _, of := range bounds {
				part := func(rank int) []byte {
					from, to := Part(len(of)-1, rank%(2*distance), 2*distance)
					return bytesOf(values[of[from]:of[to]])
				}
				g.post(partner, tagValues, part(g.rank), part(partner), all.add())
			}
			all.end(nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// gatherPairs is GatherParts of values that are in bfloat16, which are sent so.
func (g *Group) gatherPairs(values []float32, bounds []int) error {
	for distance := g.ranks / 2; distance > 0; distance /= 2 {
		part := func(rank int) []float32 {
			from, to := Part(len(bounds)-1, rank%(2*distance), 2*distance)
			return values[bounds[from]:bounds[to]]
		}
		partner := g.rank ^ distance
		own, theirs := part(g.rank), part(partner)
		send, received, err := g.messages(tagValues, own, len(theirs))
		if err != nil {
			return err
		}
		if err := g.swap(partner, tagValues, send, received); err != nil {
			return err
		}
		kernel.UnpackBFloat16(theirs, floats(received))
	}
	return nil
}
