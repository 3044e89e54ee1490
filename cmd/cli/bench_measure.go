package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// measuring measures a network.
type measuring struct {
	ctx      context.Context
	f        benchFlags
	network  *bench.Network
	progress func(what string)
}

// measured holds all measurements. Those that were not taken are zero.
type measured struct {
	name     string // of the network
	network  *bench.Network
	one      bench.Speed
	products []bench.Product
	stream   bench.Stream
	works    []measuredWork

	// A peak is zero too if the kernels have no loop that measures it. lowPeak is that of the network's precision, if
	// it is below float32.
	peak, lowPeak, bandwidth kernel.Rate
}

type measuredWork struct {
	bench.Work
	train, infer bench.Speed
	peakMemory   int64 // of the process so far, in bytes
}

// peakTime is how long a peak is measured at a time.
const peakTime = time.Second / 4

// all measures works, and what does not depend on them. Training comes first, so that the peak memory is training's.
func (m measuring) all(works []bench.Work) (*measured, error) {
	all := &measured{network: m.network}
	for _, work := range works {
		w := measuredWork{Work: work}
		var err error
		if m.measures("train") {
			if w.train, err = m.network.Train(m.ctx, work, m.counter(work.Name+": training step")); err != nil {
				return nil, err
			}
		}
		if m.measures("infer") {
			if w.infer, err = m.network.Infer(m.ctx, work, m.counter(work.Name+": inference on batch")); err != nil {
				return nil, err
			}
		}
		w.peakMemory = bench.PeakMemory()
		all.works = append(all.works, w)
	}

	var err error
	if m.measures("one") {
		m.progress("one text of 16 tokens")
		if all.one, err = m.network.OneText(m.ctx); err != nil {
			return nil, err
		}
	}
	m.peaks(all)
	if m.measures("products") {
		if all.products, err = m.network.Products(m.ctx, m.counter("product")); err != nil {
			return nil, err
		}
		all.stream = m.network.Stream()
	}
	m.peaks(all)
	return all, nil
}

// peaks measures the machine's peaks. It runs before the products and after them, since other load on the machine
// varies.
func (m measuring) peaks(all *measured) {
	if !m.measures("peak") {
		return
	}
	m.progress("peak of processor and memory")
	measure := func(peak *kernel.Rate, loop kernel.Loop) {
		if loop != nil {
			peak.Add(loop(peakTime))
		}
	}
	measure(&all.peak, kernel.MultiplyAdds(nn.Float32))
	if precision := m.network.Precision; precision != nn.Float32 {
		measure(&all.lowPeak, kernel.MultiplyAdds(precision))
	}
	measure(&all.bandwidth, kernel.MemoryReads())
}

// measures reports whether --measure includes what.
func (m measuring) measures(what string) bool { return slices.Contains(m.f.measure, what) }

// counter returns a function that shows how many units of what are done.
func (m measuring) counter(what string) func(done, of int) {
	m.progress(what)
	return func(done, of int) { m.progress(fmt.Sprintf("%s %d of %d", what, done, of)) }
}

// progress returns a function that shows the current work on a terminal; "" clears it.
func (c *commands) progress() func(what string) {
	if !onTerminal(c.log) {
		return func(string) {}
	}
	return func(what string) {
		fmt.Fprintf(c.log, "\r\x1b[K%s", fitting(terminalWidth(c.log), what))
	}
}
