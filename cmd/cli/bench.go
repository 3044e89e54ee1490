package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/plugin"
)

type benchFlags struct {
	size, data, tokenizer, order, precision string
	work, measure                           []string
	steps                                   int
	products, json                          bool
}

// What --order, --work and --measure take.
var (
	benchOrders   = []string{"shuffled", "file"}
	benchWorks    = []string{"full", "data"}
	benchMeasures = []string{"train", "infer", "one", "products", "peak"}
	// benchPrecisions are of training, as an experiment's training.precision.
	benchPrecisions = []string{"float32", "bf16"}
)

func (c *commands) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [MODEL]",
		Short: "Measure how fast this machine trains and encodes",
		Long: `Measure how fast this machine trains and encodes, in tokens a second. MODEL is as for embed; without
one it is a network of a published size with random weights. A training step is forward, backward, clipping and an
update of all parameters.

The work "full" is batches of 16 texts of 128 random tokens. The work "data", with --data, is batches of 32 texts of
the file, truncated to 128 tokens: plain lines, or JSON lines with text, pair or words. The first batch of a work
warms up; of two rounds through the others the faster counts.

Fractions of the peak are means: each measurement alternates with a loop of multiply-adds in registers (of memory
reads, for weights in products of 16 rows), so that other processes slow both alike. The peaks themselves are the best
of half a second.`,
		Example: `  jenga bench
  jenga bench models/minilm-l6 --data texts.txt --json
  jenga bench --size minilm --measure products --products --threads 1`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(len(args) > 0, cmd.Flags().Changed); err != nil {
				return usageError{err}
			}
			return c.bench(cmd.Context(), f, args)
		},
	}
	cmd.Flags().StringVar(&f.size, "size", "distilbert",
		"`NAME` of the random network's sizes: "+strings.Join(benchSizes(), ", "))
	cmd.Flags().StringVar(&f.data, "data", "", "measure on the texts of `FILE` too")
	cmd.Flags().StringVar(&f.tokenizer, "tokenizer", "",
		"`MODEL` whose tokenizer encodes the texts (default: MODEL's own)")
	cmd.Flags().StringVar(&f.order, "order", benchOrders[0],
		"`ORDER` of the texts of --data: "+strings.Join(benchOrders, ", "))
	cmd.Flags().StringSliceVar(&f.work, "work", benchWorks, "what to measure on, `LIST`")
	cmd.Flags().StringSliceVar(&f.measure, "measure", benchMeasures,
		"what to measure, `LIST`: train, infer, one (text of 16 tokens), products (of matrices), peak (of the machine)")
	cmd.Flags().IntVar(&f.steps, "steps", 0, "measured `BATCHES` of each work (default 3 of full, 7 of data)")
	cmd.Flags().StringVar(&f.precision, "precision", benchPrecisions[0],
		"`PRECISION` of a training step's products: "+strings.Join(benchPrecisions, ", "))
	cmd.Flags().BoolVar(&f.products, "products", false, "list the speed of each product of matrices")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON line for each work on stdout")
	return cmd
}

func benchSizes() []string {
	var names []string
	for _, size := range bench.Sizes {
		names = append(names, size.Name)
	}
	return names
}

// check returns an error for flags that are invalid or contradict each other, and removes the work data if there is no
// --data. model reports whether MODEL is given, given whether a flag is.
func (f *benchFlags) check(model bool, given func(flag string) bool) error {
	if model && given("size") {
		return errors.New("--size is a random network's; MODEL has its own")
	}
	for _, list := range []struct {
		flag         string
		given, valid []string
	}{{"size", []string{f.size}, benchSizes()}, {"order", []string{f.order}, benchOrders},
		{"precision", []string{f.precision}, benchPrecisions}, {"work", f.work, benchWorks},
		{"measure", f.measure, benchMeasures}} {
		for _, name := range list.given {
			if !slices.Contains(list.valid, name) {
				return fmt.Errorf("--%s %s: want one of %s", list.flag, name, strings.Join(list.valid, ", "))
			}
		}
	}
	switch {
	case f.steps < 0:
		return fmt.Errorf("--steps %d: want a number from 1 on, or 0 for the default", f.steps)
	case f.data == "" && given("work") && slices.Contains(f.work, "data"):
		return errors.New("--work data: no texts; --data names the file")
	case given("order") && (f.data == "" || !slices.Contains(f.work, "data")):
		return errors.New("--order: it applies to the texts of --data, which are not measured")
	case f.products && f.json:
		return errors.New("--products: the list is part of the table; --json reports all products together")
	case f.products && !slices.Contains(f.measure, "products"):
		return errors.New("--products: --measure does not include products")
	case f.data != "" && !model && f.tokenizer == "":
		return errors.New("--data: a random network has no tokenizer; --tokenizer names a model that has one, or " +
			"name a MODEL")
	case f.data == "":
		f.work = []string{"full"}
	}
	return nil
}

// bench takes the measurements that the flags select, and writes them.
func (c *commands) bench(ctx context.Context, f benchFlags, args []string) error {
	bfloat16 := f.precision == "bf16"
	if bfloat16 {
		if err := kernel.CheckBFloat16(); err != nil {
			return fmt.Errorf("--precision bf16: %w", err)
		}
	}
	var texts []*corpus.Example
	if f.data != "" {
		var err error
		if texts, err = readTexts(ctx, f.data); err != nil {
			return err
		}
	}
	network, name, err := benchNetwork(f, args)
	if err != nil {
		return err
	}
	network.BFloat16 = bfloat16
	if slices.Contains(f.measure, "train") && !network.Learns() {
		return fmt.Errorf("%s: its encoder cannot be trained; --measure infer,one,products leaves training out", name)
	}

	m := measuring{ctx: ctx, f: f, network: network, progress: c.progress()}
	var works []bench.Work
	for _, work := range f.work {
		if work == "full" {
			works = append(works, network.Full(cmp.Or(f.steps, 3)))
		} else {
			works = append(works, network.Data(texts, f.order == "shuffled", cmp.Or(f.steps, 7)))
		}
	}
	measured, err := m.all(works)
	m.progress("")
	if err != nil {
		return err
	}
	measured.name = name
	if !f.json {
		return measured.write(c.out, f.products)
	}
	for _, line := range measured.lines() {
		if err := writeLine(c.out, line); err != nil {
			return err
		}
	}
	return nil
}

// benchNetwork makes the network to measure, and a name for it.
func benchNetwork(f benchFlags, args []string) (*bench.Network, string, error) {
	var tokenizer corpus.Tokenizer
	if f.tokenizer != "" {
		var err error
		if tokenizer, err = predict.OpenTokenizer(f.tokenizer); err != nil {
			return nil, "", fmt.Errorf("--tokenizer: %w", err)
		}
	}
	if len(args) > 0 {
		network, err := bench.OpenNetwork(args[0], tokenizer)
		return network, args[0], err
	}
	for _, size := range bench.Sizes {
		if size.Name == f.size {
			network, err := bench.NewNetwork(size, tokenizer)
			return network, f.size, err
		}
	}
	panic("cli: " + plugin.Unknown("size", f.size, benchSizes())) // check accepts no other size
}

// readTexts reads a file of texts, lines as predict reads them.
func readTexts(ctx context.Context, name string) ([]*corpus.Example, error) {
	file, err := openTexts(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := texts{reader: bufio.NewReaderSize(interruptible{ctx, file}, 1<<16)}
	var all []*corpus.Example
	for !lines.ended {
		examples, read, err := lines.next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, line := range read {
			if bad, ok := line.(errorLine); ok {
				return nil, fmt.Errorf("%s: %s", name, bad.Error)
			}
		}
		all = append(all, examples...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no texts", name)
	}
	return all, nil
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

	// A peak is zero too if the kernels have no loop that measures it. The peak of bfloat16 is measured only if
	// training steps multiply in it.
	peak, bfloat16Peak, bandwidth kernel.Rate
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
	measure(&all.peak, kernel.MultiplyAdds())
	if m.network.BFloat16 {
		measure(&all.bfloat16Peak, kernel.BFloat16MultiplyAdds())
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
