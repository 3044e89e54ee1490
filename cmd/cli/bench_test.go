package cli

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// writeVocabulary writes the tokenizer of a model.
func writeVocabulary(t *testing.T, folder string) {
	t.Helper()
	writeFile(t, folder, "vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nplay\nadele\nnow\n")
	writeFile(t, folder, "tokenizer_config.json", `{"do_lower_case": true}`)
}

// benchLineOf runs bench and reads its JSON line.
func benchLineOf(t *testing.T, args ...string) map[string]any {
	t.Helper()
	status, out, log := call("", append([]string{"bench", "--json"}, args...)...)
	if status != 0 || log != "" || strings.Count(out, "\n") != 1 {
		t.Fatalf("bench %q: %d, want one line\n%s%s", args, status, out, log)
	}
	line := map[string]any{}
	if err := json.Unmarshal([]byte(out), &line); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return line
}

func TestBenchWritesALine(t *testing.T) {
	if testing.Short() {
		t.Skip("trains and multiplies for seconds")
	}
	t.Chdir(t.TempDir())
	writeVocabulary(t, ".")
	writeFile(t, ".", "texts.txt", strings.Repeat("play adele now\n\n{\"text\": \"adele\", \"pair\": \"now\"}\n", 32))
	full := benchLineOf(t, "tiny")
	data := benchLineOf(t, "tiny", "--data", "texts.txt", "--tokenizer", ".")
	if full["work"] != "full" || data["work"] != "data" {
		t.Fatalf("lines %v and %v, want one of full and one of data", full, data)
	}
	// A pair and a text of three words have five tokens each, special ones included.
	for i, tokens := range []float64{16 * 128, 32 * 5} {
		line := []map[string]any{full, data}[i]
		if line["step_tokens"] != tokens || line["model"] != "tiny" || line["kernel"] != kernel.Name() ||
			line["cpu"] == "" || line["threads"] != float64(kernel.Threads()) {
			t.Errorf("%v: want %v tokens a batch, and the machine, kernels and threads", line, tokens)
		}
		for _, key := range []string{"train_tokens_s", "train_step_s", "train_gflops", "infer_tokens_s", "infer_step_s",
			"infer_gflops", "one_text_ms", "gemm_gflops", "stream_gb_s"} {
			if x, ok := line[key].(float64); !ok || x <= 0 {
				t.Errorf("%s: %s is %v, want a speed", line["work"], key, line[key])
			}
		}
		if got, want := line["train_tokens_s"].(float64)*line["train_step_s"].(float64),
			tokens; !(math.Abs(got/want-1) <= 1e-3) {
			t.Errorf("%s: speed times time are %v tokens, want %v", line["work"], got, want)
		}
		if line["peak_memory"] == nil && runtime.GOOS == "linux" {
			t.Errorf("%s: no peak of memory", line["work"])
		}
		if (line["peak_gflops"] == nil) != (kernel.Name() == "plain") {
			t.Errorf("the peak of the %s kernels is %v", kernel.Name(), line["peak_gflops"])
		}
	}
}

func TestBenchMeasuresOnlyWhatFlagsSelect(t *testing.T) {
	line := benchLineOf(t, "tiny", "--measure", "infer,one")
	if line["infer_tokens_s"] == nil || line["one_text_ms"] == nil {
		t.Fatalf("%v, want inference and one text", line)
	}
	for _, key := range []string{"train_tokens_s", "train_step_s", "train_gflops", "gemm_gflops", "stream_gb_s",
		"peak_gflops", "bandwidth_gb_s"} {
		if line[key] != nil {
			t.Errorf("%s is %v, though --measure does not include it", key, line[key])
		}
	}
}

func TestBenchOfARun(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, out, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatalf("train: %d\n%s%s", status, out, log)
	}
	writeFile(t, ".", "texts.txt", "the card was charged twice\nthe button hangs\n")
	run := filepath.Join("runs", "mails")
	line := benchLineOf(t, run, "--data", "texts.txt", "--measure", "train,infer")
	if line["model"] != run || line["train_tokens_s"] == nil || line["step_tokens"].(float64) < 11 {
		t.Errorf("%v, want one for the texts' nine words and four special tokens", line)
	}
}

func TestBenchTakesTextsOfALength(t *testing.T) {
	line := benchLineOf(t, "tiny", "--length", "40", "--measure", "infer")
	if line["step_tokens"].(float64) != 2040 {
		t.Errorf("%v, want one of batches of 51 texts of 40 tokens", line)
	}
}

func TestBenchWritesATable(t *testing.T) {
	if testing.Short() {
		t.Skip("multiplies for seconds")
	}
	status, out, log := call("", "bench", "tiny", "--measure", "products")
	if status != 0 {
		t.Fatalf("%d\n%s", status, log)
	}
	for _, want := range []string{"tiny: 4.4M parameters", "products of a training step",
		"full: 48 texts, 2048 tokens a batch"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q not found in\n%s", want, out)
		}
	}
	if strings.Contains(out, "full: inference") {
		t.Errorf("inference is in the table, though --measure does not include it\n%s", out)
	}
}

func TestBenchsTable(t *testing.T) {
	network, err := bench.NewNetwork(bench.BERT(1, 16, 2, 32), nil, "bench")
	if err != nil {
		t.Fatal(err)
	}
	second := time.Second
	m := &measuring{
		name: "small", network: network, peak: kernel.Rate{Done: 3e11, Time: 2 * second, Best: 200e9},
		bandwidth: kernel.Rate{Done: 20e9, Time: second, Best: 20e9},
		work:      network.Full(2, bench.TextTokens), peakMemory: 3 << 29,
		train: bench.Speed{Steps: 2, Tokens: 4096, Operations: 4096 * 6 * 2048, Best: 4 * second, Mean: 5 * second},
		one: bench.Speed{Steps: 50, Tokens: 800, Operations: 800 * 2 * 2048, Best: second, Mean: 2 * second,
			Peak: kernel.Rate{Done: 8192e3, Time: second}},
		products: bench.Speed{Steps: 1, Operations: 2e9, Best: second / 50, Mean: second / 40,
			Peak: kernel.Rate{Done: 160e9, Time: second}},
		stream: bench.Speed{Steps: 1, Bytes: 1e9, Operations: 8e9, Best: second / 10, Mean: second / 8,
			Peak: kernel.Rate{Done: 16e9, Time: second}},
	}
	var out strings.Builder
	if err := m.write(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	// 1024 tokens/s times 6 operations for each of 2048 weights are 0.0126 GFLOP/s. The text alone has 400 tokens/s on
	// average, times 2 for each of 2048 1.6 of 8.2 MFLOP/s.
	want := []string{
		"                                    tokens/s        ms   GFLOP/s      GB/s   of peak",
		"full: training step                     1024   2000.00       0.0",
		"one text of 16 tokens                    800     20.00       0.0                 20%",
		"products of a training step                      20.00     100.0                 50%",
		"weights in products of 16 rows                  100.00      80.0      10.0       50%",
		"peak: multiply-adds in registers                           200.0",
		"peak: reading memory                                                  20.0",
		"",
		"full: 32 texts, 2048 tokens a batch; memory at most 1.50 GiB",
		"",
	}
	if got := lines[3:]; !slices.Equal(got, want) {
		t.Errorf("the table is\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	l := m.line()
	if got, want := fmt.Sprint(l.TrainTokens, l.TrainStep, l.TrainGFLOPS, l.OneText, l.GEMM, l.GEMMShare, l.Stream,
		l.StreamOf, l.Peak, l.Bandwidth, l.PeakMemory),
		"1024 2 0.012583 20 100 0.5 10 0.5 200 20 1610612736"; got != want {
		t.Errorf("the JSON line has %s, want %s", got, want)
	}
}

func TestBenchsTableOfBF16(t *testing.T) {
	network, err := bench.NewNetwork(bench.BERT(1, 16, 2, 32), nil, "bench")
	if err != nil {
		t.Fatal(err)
	}
	network.Precision = nn.BFloat16
	m := &measuring{
		name: "small", network: network, peak: kernel.Rate{Done: 2, Time: 1, Best: 200e9},
		lowPeak: kernel.Rate{Done: 4, Time: 1, Best: 400e9},
		products: bench.Speed{Steps: 1, Operations: 2e9, Best: time.Second / 50, Mean: time.Second / 50,
			Peak: kernel.Rate{Done: 400e9, Time: time.Second}},
		work: network.Full(1, bench.TextTokens),
	}
	var out strings.Builder
	if err := m.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"products in bf16\n",
		"products of a training step                      20.00     100.0                 25%\n",
		"peak: multiply-adds in registers                           200.0\n",
		"peak: of bf16                                              400.0\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q not found in\n%s", want, out.String())
		}
	}
	if l := m.line(); l.Precision != "bf16" || l.Peak != 200 || l.LowPeak != 400 {
		t.Errorf("the JSON line is %+v", l)
	}
}

func TestBenchInAPrecisionBelowFloat32(t *testing.T) {
	for _, precision := range []nn.Precision{nn.BFloat16, nn.Int8} {
		name := precision.String()
		args := []string{"bench", "--json", "tiny", "--measure", "one,products", "--precision", name}
		status, out, log := call("", args...)
		if err := precision.Check(); err != nil {
			if status != exitMistake || out != "" || !strings.Contains(log, "--precision "+name+": "+err.Error()) {
				t.Errorf("status %d, want %d and %v\n%s%s", status, exitMistake, err, out, log)
			}
			continue
		}
		if status != 0 || !strings.Contains(out, `"precision":"`+name+`"`) || !strings.Contains(out, `"one_text_ms"`) {
			t.Errorf("status %d\n%s%s", status, out, log)
		}
	}
}

func TestBenchRejectsMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	writeVocabulary(t, ".")
	writeFile(t, ".", "bad.txt", "play\n{\"text\": \n")
	writeFile(t, ".", "empty.txt", "\n")
	for _, test := range []struct {
		args   string
		status int
		want   string // in the error
	}{
		{"a b", exitUsage, `jenga bench: unexpected argument "b"`},
		{"--precision fp16", exitUsage, `--precision "fp16": want one of float32, bf16, int8`},
		{"--precision int8 --measure train", exitUsage,
			"--precision int8: training is not in int8; leave train out of --measure"},
		{"--data bad.txt --tokenizer . --length 64", exitUsage, `--data "bad.txt": its texts have lengths of`},
		{"--measure speed", exitUsage, `--measure "speed": want one of train, infer, one, products, peak`},
		{"--length -1", exitUsage, "--length -1: want"},
		{"tiny --length 513", exitUsage, "--length 513: tiny reads at most 512 tokens"},
		{"--data bad.txt", exitUsage, "--tokenizer"},
		{"nowhere", exitMistake, "nowhere: no run, no folder"},
		{"--tokenizer nowhere --data bad.txt", exitMistake, "line 2"},
		{"--tokenizer nowhere", exitMistake, "--tokenizer: nowhere"},
		{"--tokenizer . --data nowhere.txt", exitMistake, "nowhere.txt: no such file"},
		{"--tokenizer . --data .", exitMistake, "a folder"},
		{"--tokenizer . --data bad.txt", exitMistake, "bad.txt: line 2: "},
		{"--tokenizer . --data empty.txt", exitMistake, "empty.txt: no texts"},
	} {
		t.Run(test.args, func(t *testing.T) {
			status, out, log := call("", append([]string{"bench"}, strings.Fields(test.args)...)...)
			if status != test.status || !strings.Contains(log, test.want) || out != "" {
				t.Errorf("status %d, want %d, and %q in\n%s%s", status, test.status, test.want, out, log)
			}
		})
	}
}
