package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

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
