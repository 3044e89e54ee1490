package cli

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"

	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

// benchLine is what bench writes of a work. What was not measured is left out; what does not depend on the work is the
// same in all lines.
type benchLine struct {
	Work       string  `json:"work"`
	Model      string  `json:"model"`
	StepTokens float64 `json:"step_tokens"` // of a batch, on average

	TrainTokens float64 `json:"train_tokens_s,omitzero"`
	TrainStep   float64 `json:"train_step_s,omitzero"`
	TrainGFLOPS float64 `json:"train_gflops,omitzero"` // of the layers' products alone
	InferTokens float64 `json:"infer_tokens_s,omitzero"`
	InferStep   float64 `json:"infer_step_s,omitzero"`
	InferGFLOPS float64 `json:"infer_gflops,omitzero"`
	PeakMemory  int64   `json:"peak_memory,omitzero"` // of the process up to the end of the work, in bytes

	OneText   float64 `json:"one_text_ms,omitzero"`
	GEMM      float64 `json:"gemm_gflops,omitzero"` // a training step's products together
	Stream    float64 `json:"stream_gb_s,omitzero"` // weights that products of 16 rows read
	Peak      float64 `json:"peak_gflops,omitzero"` // of multiply-adds in registers
	BF16Peak  float64 `json:"bf16_peak_gflops,omitzero"`
	Bandwidth float64 `json:"bandwidth_gb_s,omitzero"` // of reading memory

	Precision string `json:"precision"` // of a training step's products
	Kernel    string `json:"kernel"`
	Threads   int    `json:"threads"`
	CPU       string `json:"cpu"`
}

// lines are the JSON lines of what was measured.
func (m *measured) lines() []benchLine {
	var lines []benchLine
	for _, w := range m.works {
		l := benchLine{
			Work: w.Name, Model: m.name, StepTokens: digits(w.StepTokens()), PeakMemory: w.peakMemory,
			Peak: digits(m.peakGFLOPS), BF16Peak: digits(m.bfloat16GFLOPS), Bandwidth: digits(m.bandwidthGB),
			Precision: m.precision(), Kernel: kernel.Name(), Threads: kernel.Threads(), CPU: bench.CPU(),
		}
		if w.train.Steps > 0 {
			l.TrainTokens, l.TrainStep, l.TrainGFLOPS = digits(w.train.TokensPerSecond()), digits(w.train.Step().Seconds()), digits(m.trainGFLOPS(w.train))
		}
		if w.infer.Steps > 0 {
			l.InferTokens, l.InferStep, l.InferGFLOPS = digits(w.infer.TokensPerSecond()), digits(w.infer.Step().Seconds()), digits(m.inferGFLOPS(w.infer))
		}
		if m.one.Steps > 0 {
			l.OneText = digits(milliseconds(m.one.Step()))
		}
		if len(m.products) > 0 {
			l.GEMM, l.Stream = digits(bench.MeanGFLOPS(m.products)), digits(m.stream.GBPerSecond())
		}
		lines = append(lines, l)
	}
	return lines
}

// precision is that of a training step's products.
func (m *measured) precision() string {
	if m.network.BFloat16 {
		return "bf16"
	}
	return "float32"
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

// A token costs an operation to multiply and one to add for each weight, and in training twice as many again backward.
func (m *measured) inferGFLOPS(s bench.Speed) float64 {
	return 2 * float64(m.network.Multiplied()) * s.TokensPerSecond() / 1e9
}
func (m *measured) trainGFLOPS(s bench.Speed) float64 { return 3 * m.inferGFLOPS(s) }

// write writes a table of what was measured, with a line for each product if they are asked for.
func (m *measured) write(w io.Writer, products bool) error {
	t := benchTable{bandwidth: m.bandwidthGB}
	learning := m.peakGFLOPS // the peak of what training multiplies
	if m.network.BFloat16 {
		learning = m.bfloat16GFLOPS
	}
	t.text("%s: %.1fM parameters, %.1fM of them in the layers' products", m.name, float64(m.network.Parameters())/1e6, float64(m.network.Multiplied())/1e6)
	t.text("%s, %s kernels, threads: %d, training in %s\n", bench.CPU(), kernel.Name(), kernel.Threads(), m.precision())

	t.head()
	for _, work := range m.works {
		if work.train.Steps > 0 {
			t.speed(work.Name+": training step", work.train, m.trainGFLOPS(work.train), learning)
		}
		if work.infer.Steps > 0 {
			t.speed(work.Name+": inference", work.infer, m.inferGFLOPS(work.infer), m.peakGFLOPS)
		}
	}
	if m.one.Steps > 0 {
		t.speed("one text of 16 tokens", m.one, m.inferGFLOPS(m.one), m.peakGFLOPS)
	}
	if products {
		for _, p := range m.products {
			t.operations(fmt.Sprintf("%s, %d × %d × %d", p.Layout, p.M, p.K, p.N), p.Time, p.GFLOPS(), learning)
		}
	}
	if len(m.products) > 0 {
		t.operations("products of a training step", 0, bench.MeanGFLOPS(m.products), learning)
		t.bytes("weights under 16 rows", m.stream.Time, m.stream.GBPerSecond())
	}
	if m.peakGFLOPS > 0 {
		t.row("peak: multiply-adds in registers", "", "", fmt.Sprintf("%.1f", m.peakGFLOPS))
	}
	if m.bfloat16GFLOPS > 0 {
		t.row("peak: of bfloat16", "", "", fmt.Sprintf("%.1f", m.bfloat16GFLOPS))
	}
	if m.bandwidthGB > 0 {
		t.row("peak: reading memory", "", "", "", fmt.Sprintf("%.1f", m.bandwidthGB))
	}

	t.text("")
	for _, work := range m.works {
		memory := ""
		if work.peakMemory > 0 {
			memory = fmt.Sprintf("; memory at most %.2f GiB", float64(work.peakMemory)/(1<<30))
		}
		t.text("%s: %d texts, %.0f tokens a batch%s", work.Name, work.Texts(), work.StepTokens(), memory)
	}
	_, err := io.WriteString(w, t.String())
	return err
}

// benchTable is a table of speeds, each with its share of the machine's peak where that is known.
type benchTable struct {
	strings.Builder
	bandwidth float64 // of the machine, in GB/s
}

func (t *benchTable) text(format string, values ...any) { fmt.Fprintf(t, format+"\n", values...) }

func (t *benchTable) head() { t.row("", "tokens/s", "ms", "GFLOP/s", "GB/s", "of peak") }

func (t *benchTable) row(what string, cells ...string) {
	line := fmt.Sprintf("%-34s", what)
	for _, cell := range cells {
		line += fmt.Sprintf(" %9s", cell)
	}
	t.text("%s", strings.TrimRight(line, " "))
}

// speed is a row of how fast a network is, of a machine that reaches peak GFLOP/s.
func (t *benchTable) speed(what string, s bench.Speed, gflops, peak float64) {
	t.row(what, fmt.Sprintf("%.0f", s.TokensPerSecond()), fmt.Sprintf("%.2f", milliseconds(s.Step())), fmt.Sprintf("%.1f", gflops), "", share(gflops, peak))
}

// operations and bytes are rows of arithmetic and of memory; a time of 0 is none.
func (t *benchTable) operations(what string, d time.Duration, gflops, peak float64) {
	t.row(what, "", timeOrNone(d), fmt.Sprintf("%.1f", gflops), "", share(gflops, peak))
}

func (t *benchTable) bytes(what string, d time.Duration, gb float64) {
	t.row(what, "", timeOrNone(d), "", fmt.Sprintf("%.1f", gb), share(gb, t.bandwidth))
}

func timeOrNone(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", milliseconds(d))
}

// share is x of the peak in per cent, nothing where the peak is not known.
func share(x, peak float64) string {
	if peak == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f%%", 100*x/peak)
}
