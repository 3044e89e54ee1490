package multitask

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// position is where a restored training goes on.
type position struct {
	progress
	streams   []*rand.PCG // of sampler and weighting
	iterators []*batchIterator
	length    length
}

// position returns where the training goes on with the progress of a snapshot. What may differ from when it was taken
// is the number of batches of an epoch: then the same fractions of them have been read; and that of a step: then the
// batches that are left make another number of steps.
func (t *Training) position(p progress) (at position, err error) {
	n := t.length
	if err := p.check(len(t.iterators), len(t.model.Groups)); err != nil {
		return at, err
	}
	p, moved := p.scaled(t.state.Batches, n.PerEpoch)
	for g, left := range p.Left {
		if have := t.state.Batches[g]; left > have || left < -n.Batches {
			return at, fmt.Errorf("%d batches left of %d", left, have)
		}
	}

	// the length of the training
	switch {
	case t.plan.MaxSteps > 0 && p.Step > n.Steps:
		return at, fmt.Errorf("step %d of %d", p.Step, n.Steps)
	case t.plan.MaxSteps > 0:
		n.Batches = p.Used + (n.Steps-p.Step)*n.Rounds*n.Groups
	case p.Used >= n.Batches+n.Groups: // the last step of a training may have more batches than are left
		return at, fmt.Errorf("%d batches are read, the training has %d", p.Used, n.Batches)
	default:
		n.Steps = p.Step + n.stepsFor(n.Batches-p.Used)
	}
	at = position{progress: p, length: n}

	// random streams and batches
	for _, b := range [][]byte{p.Sampling, p.Weighing} {
		stream := new(rand.PCG)
		if err := stream.UnmarshalBinary(b); err != nil {
			return at, fmt.Errorf("a random stream: %w", err)
		}
		at.streams = append(at.streams, stream)
	}
	for g, b := range p.Batches {
		it := *t.iterators[g]
		it.stream = new(rand.PCG)
		if err := it.stream.UnmarshalBinary(b.Stream); err != nil {
			return at, fmt.Errorf("a random stream: %w", err)
		}
		it.shuffle()
		if moved {
			b.Used = min(b.Used, it.count())
		}
		if b.Used < 0 || b.Used > it.count() {
			return at, fmt.Errorf("%d of %d batches are used", b.Used, it.count())
		}
		it.used = b.Used
		at.iterators = append(at.iterators, &it)
	}
	return at, nil
}

// maxProgress bounds the counts of a progress, so that sums of them do not overflow.
const maxProgress = 1 << 31

// check returns an error if the counts contradict each other, or the numbers of groups whose batches the training
// chooses and of groups of the model.
func (p progress) check(choosing, groups int) error {
	switch {
	case p.Step < 0 || p.Step > maxProgress || p.Length.Steps > 0 && p.Step > p.Length.Steps:
		return fmt.Errorf("step %d of %d", p.Step, p.Length.Steps)
	case p.Evaluated < 0 || p.Evaluated > p.Step:
		return fmt.Errorf("an evaluation after step %d, at step %d", p.Evaluated, p.Step)
	case p.Last < -1 || p.Last >= groups:
		return fmt.Errorf("a batch of group %d; there are %d", p.Last, groups)
	case len(p.Batches) != choosing:
		return fmt.Errorf("batches of %d groups; the training has %d", len(p.Batches), choosing)
	case choosing > 0 && (p.Epoch < 0 || p.Epoch > maxProgress || p.Used < 0 || p.Used > maxProgress),
		len(p.Left) != choosing && (p.Used > 0 || len(p.Left) > 0),
		len(p.Counts) > 0 && (len(p.Counts) != choosing || slices.Min(p.Counts) < 1 || !p.fits()):
		return errors.New("inconsistent counts of batches")
	}
	return nil
}

// fits reports whether the batches that are left of the length make the steps that are left.
func (p progress) fits() bool {
	n := p.Length
	return n.Groups > 0 && n.Rounds > 0 && n.stepsFor(n.Batches-p.Used) == n.Steps-p.Step
}

// scaled returns the progress in a training whose groups have other numbers of batches, perEpoch in an epoch, and
// whether it is another: the same fractions have been read of the epoch.
func (p progress) scaled(counts []int, perEpoch int) (scaled progress, moved bool) {
	same := p.Length.PerEpoch == perEpoch && slices.Equal(p.Counts, counts)
	if same || len(p.Counts) == 0 || len(p.Left) == 0 { // an earlier version did not write them
		return p, false
	}
	p.Left, p.Batches = slices.Clone(p.Left), slices.Clone(p.Batches)
	read := 0
	for g, count := range counts {
		factor := float64(count) / float64(p.Counts[g])
		p.Left[g] = int(math.Round(factor * float64(p.Left[g])))
		p.Batches[g].Used = int(math.Round(factor * float64(p.Batches[g].Used)))
		read += count - p.Left[g]
	}
	p.Used = p.Epoch*perEpoch + min(read, perEpoch)
	return p, true
}

// goTo sets the training to a position.
func (t *Training) goTo(at position) {
	t.state.Step, t.state.Epoch, t.state.Left, t.state.Last = at.Step, at.Epoch, slices.Clone(at.Left), at.Last
	t.used, t.serial, t.evaluated = at.Used, at.Serial, at.Evaluated
	t.sampling, t.weighing, t.iterators = at.streams[0], at.streams[1], at.iterators
	t.balance.restore(at.Balance)
	if t.data != nil {
		t.setLength(at.length)
	}
}
