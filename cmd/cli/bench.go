package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/internal/bench"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
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
	if err := f.precision.check(); err != nil {
		return err
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
