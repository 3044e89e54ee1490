package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// small is a network small enough to be trained in a test.
var small = BERT(2, 16, 2, 32)

func smallNetwork(t *testing.T) *Network {
	t.Helper()
	tokenizer, err := corpus.TrainWordPiece(slices.Values(words(40)), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	n, err := NewNetwork(small, tokenizer, "bench")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// words are texts of 1, 2, 3… words.
func words(n int) []string {
	texts := make([]string, n)
	for i := range texts {
		texts[i] = strings.Repeat("play ", i) + "adele"
	}
	return texts
}

func examples(texts []string) []*corpus.Example {
	all := make([]*corpus.Example, len(texts))
	for i, text := range texts {
		all[i] = &corpus.Example{Text: text}
	}
	return all
}

func ignore(int, int) {}

func TestSizesHaveTheParametersThatWerePublished(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 66M random numbers")
	}
	n, err := NewNetwork(sizes["distilbert"], nil, "bench")
	if err != nil {
		t.Fatal(err)
	}
	// transformers' DistilBertModel(DistilBertConfig()) has 66,362,880. BERT's layout also has two token types, and
	// the head is 768 x 7 weights and 7 biases.
	if got, want := n.Parameters(), 66362880+2*768+768*7+7; got != want {
		t.Errorf("%d parameters, want %d", got, want)
	}
	if got, want := n.Multiplied(), 6*(4*768*768+2*768*3072); got != want {
		t.Errorf("%d of them multiply tokens, want %d", got, want)
	}
}

func TestWeightsOfABiLSTMMultiplyTokens(t *testing.T) {
	n, err := NewNetwork(biLSTM(2, 8), nil, "bench")
	if err != nil {
		t.Fatal(err)
	}
	// Of each layer and direction, those of four gates for the layer's input, 8 wide, then 16, and for the state
	// before.
	if got, want := n.Multiplied(), 2*(8+8)*4*8+2*(16+8)*4*8; got != want {
		t.Errorf("%d numbers multiply tokens, want %d", got, want)
	}
}

func TestTrainingMovesEveryParameter(t *testing.T) {
	n := smallNetwork(t)
	before := map[*nn.Param][]float32{}
	for _, w := range n.model.Params.All() {
		before[w] = slices.Clone(w.Data)
	}
	s, err := n.Train(context.Background(), n.Full(1, TextTokens), ignore)
	if err != nil {
		t.Fatal(err)
	}
	if s.Steps != 1 || s.Tokens != 16*128 || s.Operations != float64(6*16*128*n.Multiplied()) || s.Best <= 0 ||
		s.Mean < s.Best {
		t.Errorf("speed %+v, want that of a batch of 16 texts of 128 tokens", s)
	}
	for w, values := range before {
		if slices.Equal(w.Data, values) {
			t.Errorf("%s was not updated", w.Name)
		}
	}
}

func TestTheFirstBatchWarmsUpAndTheFasterRoundCounts(t *testing.T) {
	n := smallNetwork(t)
	w := n.Full(3, TextTokens)
	calls := map[*corpus.Example]int{} // by a batch's first text
	var progress []string
	beside := 0
	loop := func(time.Duration) kernel.Rate { beside++; return kernel.Rate{Done: 5, Time: time.Second, Best: 7} }
	s, err := w.measure(context.Background(), loop,
		func(done, of int) { progress = append(progress, fmt.Sprint(done, "/", of)) },
		func(batch []*corpus.Example) error {
			calls[batch[0]]++
			switch { // a millisecond in the second round, much more in the warm-up and the first
			case calls[batch[0]] == 2:
				time.Sleep(time.Millisecond)
			default:
				time.Sleep(40 * time.Millisecond)
			}
			return nil
		})
	if err != nil {
		t.Fatal(err)
	}
	if calls[w.Batches[0][0]] != 1 || calls[w.Batches[3][0]] != 2 {
		t.Errorf("the first batch was used %d times, the last %d, want 1 and 2", calls[w.Batches[0][0]],
			calls[w.Batches[3][0]])
	}
	if s.Steps != 3 || s.Tokens != 3*16*128 || s.Best >= 3*40*time.Millisecond {
		t.Errorf("%+v, want 3 steps of 2048 tokens in the second round's time", s)
	}
	if s.Mean < 3*(40+1)*time.Millisecond/2 {
		t.Errorf("the mean of both rounds is %v, which is less than was slept", s.Mean)
	}
	if s.Peak != (kernel.Rate{Done: 6 * 5, Time: 6 * time.Second, Best: 7}) || beside != 7 {
		t.Errorf("the loop in alternation with 6 steps and the warm-up ran %d times and reached %+v", beside, s.Peak)
	}
	if len(progress) != 7 || progress[6] != "7/7" {
		t.Errorf("progress %q, want 7 steps", progress)
	}
}

func TestAnInterruptEndsMeasuring(t *testing.T) {
	n := smallNetwork(t)
	ctx, cancel := context.WithCancel(context.Background())
	_, err := n.Infer(ctx, n.Full(2, TextTokens), func(done, _ int) {
		if done > 1 {
			t.Error("a batch after the interrupt")
		}
		cancel()
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if _, err := n.OneText(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("one text: error %v, want the context's", err)
	}
	if _, err := n.Products(ctx, ignore); !errors.Is(err, context.Canceled) {
		t.Errorf("products: error %v, want the context's", err)
	}
}

func TestTextsComeInBatchesOf32TruncatedTo128(t *testing.T) {
	n := smallNetwork(t)
	texts := examples(words(150))
	w := n.Data(texts, 2)
	if len(w.Batches) != 3 || len(w.Batches[2]) != 32 || w.Batches[1][0] != texts[32] {
		t.Fatalf("%d batches, want 3 of 32 in the file's order", len(w.Batches))
	}
	// Text i has i+1 words of one token each, [CLS] and [SEP].
	want := 0
	for i := 32; i < 96; i++ {
		want += i + 3
	}
	if w.Tokens() != want || w.Texts() != 64 || w.StepTokens() != float64(want)/2 {
		t.Errorf("%d texts of %d tokens measured, want 64 of %d", w.Texts(), w.Tokens(), want)
	}
	if all := n.Data(texts, 7); len(all.Batches) != 5 || len(all.Batches[4]) != 22 ||
		all.Batches[4][21].Tokens() != 128 {
		t.Errorf("150 texts make %d batches, want 5, the last of 22 texts, long ones truncated to 128 tokens",
			len(all.Batches))
	}
}

func TestFewTextsAreMeasuredAndWarmUpToo(t *testing.T) {
	n := smallNetwork(t)
	w := n.Data(examples(words(3)), 7)
	s, err := n.Infer(context.Background(), w, ignore)
	if err != nil {
		t.Fatal(err)
	}
	if s.Steps != 1 || s.Tokens != 3+4+5 || s.Operations != float64(2*12*n.Multiplied()) {
		t.Errorf("%+v, want the one batch of 12 tokens", s)
	}
}

func TestProductsAreAllOfAStep(t *testing.T) {
	n := smallNetwork(t)
	products := n.shapes(2048)
	if len(products) != 9 { // a width to itself, to the feed-forward's and back, in three layouts
		t.Errorf("%d shapes, want 9: %v", len(products), products)
	}
	operations := 0
	for _, p := range products {
		operations += p.count * 2 * p.m * p.k * p.n
	}
	if want := 6 * 2048 * n.Multiplied(); operations != want {
		t.Errorf("%d operations, want %d", operations, want)
	}

	measured, err := n.Products(context.Background(), ignore)
	if err != nil {
		t.Fatal(err)
	}
	if measured.Operations != float64(operations) || measured.Best <= 0 || measured.Mean < measured.Best {
		t.Errorf("%+v, want the time of %d operations", measured, operations)
	}
	s := n.Stream()
	if s.Bytes != float64(4*n.Multiplied()) || s.Best <= 0 {
		t.Errorf("%+v, want the time of %d bytes", s, 4*n.Multiplied())
	}
}

func TestProductsTogetherWeighByTime(t *testing.T) {
	peak := func(rate float64) kernel.Rate {
		return kernel.Rate{Done: rate / 10, Time: time.Second / 10, Best: rate}
	}
	var all Speed
	all.add(product{m: 10, k: 10, n: 10, count: 3}, Speed{Best: time.Second, Mean: 2 * time.Second, Peak: peak(1000)})
	all.add(product{m: 10, k: 10, n: 20, count: 1},
		Speed{Best: 3 * time.Second, Mean: 4 * time.Second, Peak: peak(2000)})
	if all.Operations != 3*2000+4000 || all.Best != 6*time.Second || all.Mean != 10*time.Second {
		t.Errorf("%v operations in %v, on average %v; want 10000 in 6s, 10s", all.Operations, all.Best,
			all.Mean)
	}
	// The first runs at its loop's speed, the second at half of it: for 6 and 4 seconds of 10.
	if got := all.Peak.Mean(); !(math.Abs(got-1400) <= 1e-6) || all.Peak.Best != 2000 {
		t.Errorf("the loops in alternation reach %v, at best %v; want 1400, 2000", got, all.Peak.Best)
	}
	if got := all.PeakFraction(); !(math.Abs(got-1000./1400) <= 1e-6) {
		t.Errorf("a fraction of %v, want 1000 of 1400", got)
	}
	if got := (Speed{Operations: 1, Best: 1, Mean: 1}).PeakFraction(); got != 0 {
		t.Errorf("a fraction of %v of an unknown peak", got)
	}
}

func TestAModelIsOpenedToLearnOrNot(t *testing.T) {
	made := smallNetwork(t)
	folder := filepath.Join(t.TempDir(), "model")
	if err := made.model.Encoder.Describe().Save(nil)(folder); err != nil {
		t.Fatal(err)
	}
	if err := made.tokenizer.Save(folder); err != nil {
		t.Fatal(err)
	}
	n, err := OpenNetwork(t.Context(), folder, nil, true, "")
	if err != nil {
		t.Fatal(err)
	}
	if n.Parameters() != made.Parameters() || n.longest != positions || !n.Learns() {
		t.Errorf("%d parameters, texts of %d tokens, learns: %v; want %d, %d, true", n.Parameters(), n.longest,
			n.Learns(), made.Parameters(), positions)
	}
	if _, err := n.Train(context.Background(), n.Data(examples(words(3)), 1), ignore); err != nil {
		t.Error(err)
	}
	reads, err := OpenNetwork(t.Context(), folder, nil, false, "")
	if err != nil {
		t.Fatal(err)
	}
	for n, learns := range map[*Network]bool{n: true, reads: false} {
		defer encoders.Close(n.model.Encoder)
		for _, w := range multitask.EncoderParams(n.model.Params).All() {
			if w.Frozen == learns {
				t.Errorf("%s is frozen: %v, in an encoder that is opened to learn: %v", w.Name, w.Frozen, learns)
			}
		}
	}

	var many []string
	for i := range 500 {
		many = append(many, fmt.Sprintf("%c%c%c", 'a'+i%26, 'a'+i/26%26, 0x4e00+i))
	}
	large, err := corpus.TrainWordPiece(slices.Values(many), 1000, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenNetwork(t.Context(), folder, large, true, ""); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("the tokenizer has %d tokens; ", large.Size())) {
		t.Errorf("error %v, want one of too many tokens", err)
	}
}

func TestPeakMemoryGrowsWithWhatIsHeld(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		if PeakMemory() != 0 {
			t.Error("a peak on a system where it is not implemented")
		}
		return
	}
	before := PeakMemory()
	if before <= 0 {
		t.Fatalf("the peak is %d bytes", before)
	}
	block := make([]byte, before+64<<20) // more than the peak so far
	for i := 0; i < len(block); i += 4096 {
		block[i] = 1
	}
	if got := PeakMemory(); got < before+64<<20 {
		t.Errorf("the peak is %d bytes with a block of %d", got, len(block))
	}
	runtime.KeepAlive(block)
	if CPU() == "" {
		t.Error("the processor has no name")
	}
}
