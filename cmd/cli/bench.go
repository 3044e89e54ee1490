package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

type benchFlags struct {
	size, data, tokenizer, order string
	work, measure                []string
	steps, texts, length         int
	products, json               bool
	precision                    precisionFlag
}

// What --order, --work and --measure take.
var (
	benchOrders   = []string{"shuffled", "file"}
	benchWorks    = []string{"full", "data"}
	benchMeasures = []string{"train", "infer", "one", "products", "peak"}
)

func (c *commands) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [MODEL]",
		Short: "Measure how fast this machine trains and encodes",
		Long: `Measure how fast this machine trains and encodes, in tokens a second. MODEL is as for embed; without
one it is a network of a published size with random weights. A training step is forward, backward, clipping and an
update of all parameters.

The workload "full" is batches of 16 texts of 128 random tokens, or as --texts and --length say. The workload "data",
with --data, is batches of 32 texts of the file, truncated to 128 tokens: plain lines, or JSON lines with text, pair or
words. The first batch of a workload is a warm-up and not counted; the faster of two rounds through the others is
reported.

Fractions of the peak are means: each measurement alternates with a loop of multiply-adds in registers (of memory
reads, for weights in products of 16 rows), so that other processes slow both alike. The peaks themselves are the best
of half a second.`,
		Example: `  jenga bench
  jenga bench models/minilm-l6 --data texts.txt --json
  jenga bench models/modernbert --texts 1 --length 8192 --measure train
  jenga bench --size minilm --measure products --products --threads 1`,
		Args: between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(len(args) > 0, cmd.Flags().Changed); err != nil {
				return err
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
	cmd.Flags().IntVar(&f.texts, "texts", bench.FullTexts, "`NUMBER` of texts in a batch of full")
	cmd.Flags().IntVar(&f.length, "length", 0, "`TOKENS` of each text of full (default 128)")
	f.precision.flag(cmd, ", int8 in inference only")
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
		return usageErrorf("--size %q: MODEL has sizes of its own; leave out one of the two", f.size)
	}
	for _, list := range []struct {
		flag         string
		given, valid []string
	}{{"size", []string{f.size}, benchSizes()}, {"order", []string{f.order}, benchOrders},
		{"work", f.work, benchWorks}, {"measure", f.measure, benchMeasures}} {
		for _, name := range list.given {
			if err := checkOneOf(list.flag, name, list.valid...); err != nil {
				return err
			}
		}
	}
	switch {
	case f.steps < 0:
		return usageErrorf("--steps %d: want a number from 1 on, or 0 for the default", f.steps)
	case f.texts < 1:
		return usageErrorf("--texts %d: want a number from 1 on", f.texts)
	case f.length < 0:
		return usageErrorf("--length %d: want a number from 1 on, or 0 for the default", f.length)
	case f.data == "" && given("work") && slices.Contains(f.work, "data"):
		return usageErrorf("--work data: no texts; want --data FILE")
	case given("order") && (f.data == "" || !slices.Contains(f.work, "data")):
		return usageErrorf("--order %q: no texts to order; want --data FILE, and data in --work", f.order)
	case f.products && f.json:
		return usageErrorf("--products: the list is part of the table; leave out --json, which has one figure for " +
			"all products")
	case f.products && !slices.Contains(f.measure, "products"):
		return usageErrorf("--products: --measure %q lacks products; add it to the list", strings.Join(f.measure, ","))
	case f.data != "" && !model && f.tokenizer == "":
		return usageErrorf("--data: a random network has no tokenizer; want --tokenizer MODEL, or a MODEL to measure")
	case f.precision == "int8" && given("measure") && slices.Contains(f.measure, "train"):
		return usageErrorf("--precision int8: training is not in int8; leave train out of --measure")
	}
	if f.precision == "int8" {
		f.measure = slices.DeleteFunc(slices.Clone(f.measure), func(name string) bool { return name == "train" })
	}
	if f.data == "" {
		f.work = []string{"full"}
	}
	return nil
}

// bench takes the measurements that the flags select, and writes them.
func (c *commands) bench(ctx context.Context, f benchFlags, args []string) error {
	if err := f.precision.set(nn.Precision.Check); err != nil {
		return err
	}
	var texts []*corpus.Example
	if f.data != "" {
		var err error
		if texts, err = readTexts(ctx, f.data); err != nil {
			return err
		}
	}
	network, name, err := benchNetwork(f, args)
	if errors.Is(err, encoders.ErrQuantized) {
		return fmt.Errorf("%w; --measure infer,one,products leaves training out", err)
	}
	if err != nil {
		return err
	}
	if err := f.precision.set(network.SetPrecision); err != nil {
		return err
	}
	if slices.Contains(f.measure, "train") && !network.Learns() {
		return fmt.Errorf("%s: its encoder cannot be trained; --measure infer,one,products leaves training out", name)
	}

	if longest := network.Longest(); f.length > longest && slices.Contains(f.work, "full") {
		return usageErrorf("--length %d: %s reads at most %d tokens", f.length, name, longest)
	}

	m := measuring{ctx: ctx, f: f, network: network, progress: c.progress()}
	var works []bench.Work
	for _, work := range f.work {
		if work == "full" {
			works = append(works, network.Full(cmp.Or(f.steps, 3), f.texts, cmp.Or(f.length, bench.FullTokens)))
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
		network, err := bench.OpenNetwork(args[0], tokenizer, slices.Contains(f.measure, "train"))
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

// benchLine is the JSON line of a work. Keys without a measurement are left out; values that do not depend on the work
// are the same in all lines.
type benchLine struct {
	Work       string  `json:"work"`
	Model      string  `json:"model"`
	StepTokens float64 `json:"step_tokens"` // of a batch, on average

	TrainTokens float64 `json:"train_tokens_s,omitzero"`
	TrainStep   float64 `json:"train_step_s,omitzero"`
	TrainGFLOPS float64 `json:"train_gflops,omitzero"` // of the layers' products alone
	TrainShare  float64 `json:"train_share,omitzero"`  // fraction of the peak measured in alternation, from means
	InferTokens float64 `json:"infer_tokens_s,omitzero"`
	InferStep   float64 `json:"infer_step_s,omitzero"`
	InferGFLOPS float64 `json:"infer_gflops,omitzero"`
	InferShare  float64 `json:"infer_share,omitzero"`
	PeakMemory  int64   `json:"peak_memory,omitzero"` // of the process up to the end of the work, in bytes

	OneText   float64 `json:"one_text_ms,omitzero"`
	GEMM      float64 `json:"gemm_gflops,omitzero"` // a training step's products together; int8: forward
	GEMMShare float64 `json:"gemm_share,omitzero"`
	Stream    float64 `json:"stream_gb_s,omitzero"`           // weights that products of 16 rows read
	StreamOf  float64 `json:"stream_share,omitzero"`          // fraction of the memory reads measured in alternation
	Peak      float64 `json:"peak_gflops,omitzero"`           // of multiply-adds in registers
	LowPeak   float64 `json:"precision_peak_gflops,omitzero"` // the same in Precision, below float32
	Bandwidth float64 `json:"bandwidth_gb_s,omitzero"`        // of reading memory

	Precision string `json:"precision"` // of products
	Kernel    string `json:"kernel"`
	Threads   int    `json:"threads"`
	CPU       string `json:"cpu"`
}

// lines returns the JSON lines of the measurements.
func (m *measured) lines() []benchLine {
	var lines []benchLine
	for _, w := range m.works {
		l := benchLine{
			Work: w.Name, Model: m.name, StepTokens: digits(w.StepTokens()), PeakMemory: w.peakMemory,
			Peak: digits(m.peak.Best / 1e9), LowPeak: digits(m.lowPeak.Best / 1e9),
			Bandwidth: digits(m.bandwidth.Best / 1e9),
			Precision: m.network.Precision.String(), Kernel: kernel.Name(), Threads: kernel.Threads(), CPU: bench.CPU(),
		}
		if w.train.Steps > 0 {
			l.TrainTokens, l.TrainStep = digits(w.train.TokensPerSecond()), digits(w.train.Step().Seconds())
			l.TrainGFLOPS, l.TrainShare = digits(gflops(m.training(w.train), w.train.Best)),
				digits(w.train.PeakFraction(m.training(w.train)))
		}
		if w.infer.Steps > 0 {
			l.InferTokens, l.InferStep = digits(w.infer.TokensPerSecond()), digits(w.infer.Step().Seconds())
			l.InferGFLOPS, l.InferShare = digits(gflops(m.inference(w.infer), w.infer.Best)),
				digits(w.infer.PeakFraction(m.inference(w.infer)))
		}
		if m.one.Steps > 0 {
			l.OneText = digits(milliseconds(m.one.Step()))
		}
		if len(m.products) > 0 {
			operations, together := bench.Total(m.products)
			l.GEMM, l.GEMMShare = digits(gflops(operations, together.Best)), digits(together.PeakFraction(operations))
			l.Stream, l.StreamOf = digits(gflops(float64(m.stream.Bytes), m.stream.Best)),
				digits(m.stream.PeakFraction(float64(m.stream.Bytes)))
		}
		lines = append(lines, l)
	}
	return lines
}

// digits rounds x to five digits.
func digits(x float64) float64 {
	if x == 0 || math.IsInf(x, 0) {
		return x
	}
	scale := math.Pow(10, 4-math.Floor(math.Log10(math.Abs(x))))
	return math.Round(x*scale) / scale
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// gflops returns a rate in 10⁹ operations, or bytes, a second.
func gflops(operations float64, d time.Duration) float64 { return operations / float64(d) }

// inference and training count the operations of the layers' products: for each weight a token costs one to multiply
// and one to add, and in training twice as many again backward.
func (m *measured) inference(s bench.Speed) float64 {
	return 2 * float64(m.network.Multiplied()) * float64(s.Tokens)
}
func (m *measured) training(s bench.Speed) float64 { return 3 * m.inference(s) }

// write writes the measurements as a table, with a line for each product if products is set.
func (m *measured) write(w io.Writer, products bool) error {
	var t benchTable
	t.text("%s: %.1fM parameters, %.1fM of them in the layers' products", m.name, float64(m.network.Parameters())/1e6,
		float64(m.network.Multiplied())/1e6)
	t.text("%s, %s kernels, threads: %d, products in %s\n", bench.CPU(), kernel.Name(), kernel.Threads(),
		m.network.Precision)

	t.row("", "tokens/s", "ms", "GFLOP/s", "GB/s", "of peak")
	for _, work := range m.works {
		if work.train.Steps > 0 {
			t.speed(work.Name+": training step", work.train, m.training(work.train))
		}
		if work.infer.Steps > 0 {
			t.speed(work.Name+": inference", work.infer, m.inference(work.infer))
		}
	}
	if m.one.Steps > 0 {
		t.speed("one text of 16 tokens", m.one, m.inference(m.one))
	}
	if products {
		for _, p := range m.products {
			t.operations(fmt.Sprintf("%s, %d × %d × %d", p.Layout, p.M, p.K, p.N), p.Operations(), p.Timing)
		}
	}
	if len(m.products) > 0 {
		operations, together := bench.Total(m.products)
		name := "products of a training step"
		if m.network.Precision == nn.Int8 {
			name = "products of a forward pass"
		}
		t.operations(name, operations, together)
		bytes := float64(m.stream.Bytes)
		t.row("weights in products of 16 rows", "", number(milliseconds(m.stream.Best), 2),
			number(gflops(m.stream.Operations, m.stream.Best), 1), number(gflops(bytes, m.stream.Best), 1),
			percent(m.stream.PeakFraction(bytes)))
	}
	t.peak("multiply-adds in registers", m.peak, "", number(m.peak.Best/1e9, 1))
	t.peak(fmt.Sprintf("of %v", m.network.Precision), m.lowPeak, "", number(m.lowPeak.Best/1e9, 1))
	t.peak("reading memory", m.bandwidth, "", "", number(m.bandwidth.Best/1e9, 1))

	t.text("")
	for _, work := range m.works {
		memory := ""
		if work.peakMemory > 0 {
			memory = fmt.Sprintf("; memory at most %.2f GiB", float64(work.peakMemory)/(1<<30))
		}
		t.text("%s: %s, %.0f tokens a batch%s", work.Name, plugin.Count(work.Texts(), "text"), work.StepTokens(),
			memory)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// benchTable is a table of speeds, each with its fraction of the machine's peak where that is known.
type benchTable struct{ strings.Builder }

func (t *benchTable) text(format string, values ...any) { fmt.Fprintf(t, format+"\n", values...) }

func (t *benchTable) row(what string, cells ...string) {
	line := fmt.Sprintf("%-34s", what)
	for _, cell := range cells {
		line += fmt.Sprintf(" %9s", cell)
	}
	t.text("%s", strings.TrimRight(line, " "))
}

// speed adds a row for a network's speed.
func (t *benchTable) speed(what string, s bench.Speed, operations float64) {
	t.row(what, number(s.TokensPerSecond(), 0), number(milliseconds(s.Step()), 2),
		number(gflops(operations, s.Best), 1), "", percent(s.PeakFraction(operations)))
}

// operations adds a row for arithmetic.
func (t *benchTable) operations(what string, operations float64, d bench.Timing) {
	t.row(what, "", number(milliseconds(d.Best), 2), number(gflops(operations, d.Best), 1), "",
		percent(d.PeakFraction(operations)))
}

// peak adds a row for a peak of the machine, if it was measured.
func (t *benchTable) peak(what string, reached kernel.Rate, cells ...string) {
	if reached.Time > 0 {
		t.row("peak: "+what, append([]string{""}, cells...)...)
	}
}

func number(x float64, decimals int) string { return strconv.FormatFloat(x, 'f', decimals, 64) }

// percent writes the fraction x in per cent, "" for 0, which is unknown.
func percent(x float64) string {
	if x == 0 {
		return ""
	}
	return number(100*x, 0) + "%"
}
