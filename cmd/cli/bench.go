package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	data, tokenizer string
	measure         []string
	length, batch   int
	json            bool
	machine         machineFlags
	chosen          bool // measure is given
}

var benchMeasures = []string{"train", "infer", "one", "products", "peak"}

func (c *commands) benchCommand() *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench [MODEL]",
		Short: "Measure how fast this machine trains and encodes",
		Args:  between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			model := "distilbert"
			if len(args) > 0 {
				model = args[0]
			}
			f.chosen = cmd.Flags().Changed("measure")
			if err := f.check(model, cmd.Flags().Changed); err != nil {
				return err
			}
			return c.bench(cmd.Context(), f, model)
		},
	}
	cmd.Flags().StringVar(&f.data, "data", "", "measure on the texts of `FILE`")
	cmd.Flags().StringVar(&f.tokenizer, "tokenizer", "",
		"`MODEL` whose tokenizer encodes the texts (default: MODEL's own)")
	cmd.Flags().StringSliceVar(&f.measure, "measure", benchMeasures,
		"what to measure, `LIST`: train, infer, one (text of 16 tokens), products (of matrices), peak (of the machine)")
	cmd.Flags().IntVar(&f.length, "length", bench.TextTokens, "`TOKENS` of each text of full")
	cmd.Flags().IntVar(&f.batch, "batch", 0,
		"`TEXTS` of a batch (default: as many of full as have 2048 tokens, 32 of data)")
	f.machine.precision.flag(cmd, ", int8 in inference only")
	f.machine.device.flag(cmd, encoders.AutoDevice, "")
	cmd.Flags().BoolVar(&f.json, "json", false, "a JSON line on stdout")
	return cmd
}

func (f *benchFlags) check(model string, given func(flag string) bool) error {
	for _, name := range f.measure {
		if !slices.Contains(benchMeasures, name) {
			return usageErrorf("--measure %q: want one of %s", name, strings.Join(benchMeasures, ", "))
		}
	}
	switch {
	case f.length < 1:
		return usageErrorf("--length %d: want a number from 1 on", f.length)
	case f.batch < 0 || f.batch == 0 && given("batch"):
		return usageErrorf("--batch %d: want a number from 1 on", f.batch)
	case f.data != "" && given("length"):
		return usageErrorf("--data %q: its texts have lengths of their own; leave out --length", f.data)
	case f.data != "" && f.tokenizer == "" && slices.Contains(bench.SizeNames(), model):
		return usageErrorf("--data: a random network has no tokenizer; want --tokenizer MODEL, or a MODEL to measure")
	case f.machine.precision == "int8" && f.chosen && slices.Contains(f.measure, "train"):
		return usageErrorf("--precision int8: training is not in int8; leave train out of --measure")
	}
	if f.machine.precision == "int8" {
		f.measure = slices.DeleteFunc(slices.Clone(f.measure), func(name string) bool { return name == "train" })
	}
	return nil
}

func (c *commands) bench(ctx context.Context, f benchFlags, model string) error {
	device, err := f.machine.checked()
	if err != nil {
		return err
	}
	var texts []*corpus.Example
	var tokenizer corpus.Tokenizer
	if f.data != "" {
		if texts, err = readTexts(ctx, f.data); err != nil {
			return err
		}
	}
	if f.tokenizer != "" {
		if tokenizer, err = predict.OpenTokenizer(ctx, f.tokenizer); err != nil {
			return fmt.Errorf("--tokenizer: %w", err)
		}
	}
	network, err := bench.OpenNetwork(ctx, model, tokenizer, slices.Contains(f.measure, "train"), device)
	switch {
	case errors.Is(err, encoders.ErrQuantized):
		return fmt.Errorf("%w; --measure infer,one,products leaves training out", err)
	case err != nil:
		return ofDevice(err)
	case slices.Contains(f.measure, "train") && !network.Learns():
		return fmt.Errorf("%s: its encoder cannot be trained; --measure infer,one,products leaves training out", model)
	case f.length > network.Longest():
		return usageErrorf("--length %d: %s reads at most %d tokens", f.length, model, network.Longest())
	}
	if err := f.machine.precision.set(network.SetPrecision); err != nil {
		return err
	}
	if f.measure, err = f.measuredOn(network.Device()); err != nil {
		return err
	}

	network.Batch = f.batch
	batches := 3
	if network.Device() != "" { // their time is short
		batches = 20
	}
	work := network.Full(batches, f.length)
	if f.data != "" {
		work = network.Data(texts, batches+4)
	}
	m := measuring{name: model, network: network, work: work}
	if err := m.all(ctx, c, f.measure); err != nil {
		return err
	}
	if f.json {
		return writeLine(c.out, m.line())
	}
	return m.write(c.out)
}

// ofProcessor are the measures of the processor and its memory.
var ofProcessor = []string{"products", "peak"}

// measuredOn returns what is measured of a network on a device, "" for the processor.
func (f benchFlags) measuredOn(device string) ([]string, error) {
	if device == "" {
		return f.measure, nil
	}
	var left []string
	for _, name := range f.measure {
		switch of := slices.Contains(ofProcessor, name); {
		case of && f.chosen:
			return nil, usageErrorf("--measure %s: it is of the processor, and the encoder computes on %s; leave it "+
				"out, or want --device cpu", name, device)
		case !of:
			left = append(left, name)
		}
	}
	return left, nil
}

// measuring is what was measured of a network. Measurements that were not taken are zero.
type measuring struct {
	name                                string
	network                             *bench.Network
	work                                bench.Work
	train, infer, one, products, stream bench.Speed
	peakMemory                          int64 // of the process after both works, in bytes

	// A peak is zero too if the kernels have no loop that measures it. lowPeak is that of the network's precision, if
	// it is below float32.
	peak, lowPeak, bandwidth kernel.Rate
}

const peakTime = time.Second / 4

// all takes the measurements that --measure names. Training comes first, so that the peak memory is training's.
func (m *measuring) all(ctx context.Context, c *commands, measures []string) (err error) {
	var shown *bar
	counter := func(what string) func(done, of int) {
		shown = c.newBar(what, true)
		return shown.reach
	}
	defer func() { shown.clear() }()
	takes := func(what string) bool { return slices.Contains(measures, what) }
	if takes("train") {
		if m.train, err = m.network.Train(ctx, m.work, counter(m.work.Name+": training step")); err != nil {
			return err
		}
	}
	if takes("infer") {
		if m.infer, err = m.network.Infer(ctx, m.work, counter(m.work.Name+": inference on batch")); err != nil {
			return err
		}
	}
	m.peakMemory = bench.PeakMemory()

	if takes("one") {
		if m.one, err = m.network.OneText(ctx); err != nil {
			return err
		}
	}
	// the peaks before the products and after them, since other load on the machine varies
	if takes("peak") {
		m.peaks()
	}
	if takes("products") {
		if m.products, err = m.network.Products(ctx, counter("product")); err != nil {
			return err
		}
		m.stream = m.network.Stream()
	}
	if takes("peak") {
		m.peaks()
	}
	return nil
}

// peaks measures the machine's peaks.
func (m *measuring) peaks() {
	measure := func(peak *kernel.Rate, loop kernel.Loop) {
		if loop != nil {
			peak.Add(loop(peakTime))
		}
	}
	measure(&m.peak, kernel.MultiplyAdds(nn.Float32))
	if precision := m.network.Precision; precision != nn.Float32 {
		measure(&m.lowPeak, kernel.MultiplyAdds(precision))
	}
	measure(&m.bandwidth, kernel.MemoryReads())
}

// benchLine is the JSON line. Keys without a measurement are left out.
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
	Device    string `json:"device,omitempty"` // of the encoder, and its name, where that is not the processor
	Name      string `json:"device_name,omitempty"`
	// DeviceMemory is the most that was allocated on the device, in bytes.
	DeviceMemory int64 `json:"device_memory,omitzero"`
}

func (m *measuring) line() benchLine {
	return benchLine{
		Work: m.work.Name, Model: m.name, StepTokens: digits(m.work.StepTokens()),
		TrainTokens: digits(m.train.TokensPerSecond()), TrainStep: digits(m.train.Step().Seconds()),
		TrainGFLOPS: digits(m.train.Gigaflops()), TrainShare: digits(m.train.PeakFraction()),
		InferTokens: digits(m.infer.TokensPerSecond()), InferStep: digits(m.infer.Step().Seconds()),
		InferGFLOPS: digits(m.infer.Gigaflops()), InferShare: digits(m.infer.PeakFraction()),
		PeakMemory: m.peakMemory, OneText: digits(milliseconds(m.one)),
		GEMM: digits(m.products.Gigaflops()), GEMMShare: digits(m.products.PeakFraction()),
		Stream: digits(m.stream.Gigabytes()), StreamOf: digits(m.stream.PeakFraction()),
		Peak: digits(m.peak.Best / 1e9), LowPeak: digits(m.lowPeak.Best / 1e9),
		Bandwidth: digits(m.bandwidth.Best / 1e9),
		Precision: m.network.Precision.String(), Kernel: kernel.Name(), Threads: kernel.Threads(), CPU: bench.CPU(),
		Device: m.network.Device(), Name: encoders.DeviceName(m.network.Device()),
		DeviceMemory: m.network.DeviceMemory(),
	}
}

// digits rounds to five digits.
func digits(x float64) float64 {
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 5, 64), 64)
	if err != nil {
		panic(fmt.Sprintf("cli: %v", err))
	}
	return rounded
}

func milliseconds(s bench.Speed) float64 { return s.Step().Seconds() * 1000 }

func (m *measuring) write(w io.Writer) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s: %.1fM parameters, %.1fM of them in the layers' products\n", m.name,
		float64(m.network.Parameters())/1e6, float64(m.network.Multiplied())/1e6)
	fmt.Fprintf(&text, "%s, %s kernels, threads: %d, products in %s\n\n", bench.CPU(), kernel.Name(), kernel.Threads(),
		m.network.Precision)
	if device := m.network.Device(); device != "" {
		fmt.Fprintf(&text, "the encoder computes on %s\n\n", onDevice(device))
	}

	products := "products of a training step"
	if m.network.Precision == nn.Int8 {
		products = "products of a forward pass"
	}
	fmt.Fprintf(&text, "%-34s %9s %9s %9s %9s %9s\n", "", "tokens/s", "ms", "GFLOP/s", "GB/s", "of peak")
	for _, row := range []struct {
		what string
		bench.Speed
	}{
		{m.work.Name + ": training step", m.train}, {m.work.Name + ": inference", m.infer},
		{"one text of 16 tokens", m.one}, {products, m.products}, {"weights in products of 16 rows", m.stream},
	} {
		writeSpeed(&text, row.what, row.TokensPerSecond(), milliseconds(row.Speed), row.Gigaflops(), row.Gigabytes(),
			100*row.PeakFraction())
	}
	writeSpeed(&text, "peak: multiply-adds in registers", 0, 0, m.peak.Best/1e9)
	writeSpeed(&text, fmt.Sprintf("peak: of %v", m.network.Precision), 0, 0, m.lowPeak.Best/1e9)
	writeSpeed(&text, "peak: reading memory", 0, 0, 0, m.bandwidth.Best/1e9)

	memory := ""
	if m.peakMemory > 0 {
		memory = fmt.Sprintf("; memory at most %.2f GiB", float64(m.peakMemory)/(1<<30))
	}
	fmt.Fprintf(&text, "\n%s: %s, %.0f tokens a batch%s\n", m.work.Name, plugin.Count(m.work.Texts(), "text"),
		m.work.StepTokens(), memory)
	_, err := io.WriteString(w, text.String())
	return err
}

// writeSpeed writes a row of tokens a second, milliseconds, GFLOP/s, GB/s and per cent of the peak, where 0 is none; a
// row without any of them is left out.
func writeSpeed(text *strings.Builder, what string, values ...float64) {
	if slices.Max(values) == 0 {
		return
	}
	line := fmt.Sprintf("%-34s", what)
	for i, format := range []string{"%.0f", "%.2f", "%.1f", "%.1f", "%.0f%%"}[:len(values)] {
		cell := ""
		if values[i] != 0 {
			cell = fmt.Sprintf(format, values[i])
		}
		line += fmt.Sprintf(" %9s", cell)
	}
	fmt.Fprintln(text, strings.TrimRight(line, " "))
}
