package corpus

import (
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func TestPackConcatenatesTexts(t *testing.T) {
	special, noWord := Span{}, int32(-1)
	tagged := &Example{ // [CLS] play ad ##ele [SEP]; the third word is truncated
		Text: "play adele now", Words: []Span{{0, 4}, {5, 10}, {11, 14}},
		Windows: []Encoding{{IDs: []int32{101, 7, 8, 9, 102}, Segments: make([]int8, 5),
			Offsets: []Span{special, {0, 4}, {5, 7}, {7, 10}, special}, Words: []int32{noWord, 0, 1, 1, noWord}}},
	}
	pair := &Example{
		Text: "a", Pair: "b", Paired: true,
		Windows: []Encoding{{IDs: []int32{101, 5, 102, 6, 102}, Segments: []int8{0, 0, 0, 1, 1},
			Offsets: []Span{special, {0, 1}, special, {0, 1}, special},
			Words:   []int32{noWord, noWord, noWord, noWord, noWord}}},
	}
	untokenized := &Example{ // the first word has no token, and the text begins without a special token
		Text: "\u200d b", Words: []Span{{0, 3}, {4, 5}},
		Windows: []Encoding{{IDs: []int32{6}, Segments: []int8{0}, Offsets: []Span{{4, 5}}, Words: []int32{1}}},
	}

	examples := []*Example{tagged, pair, untokenized}
	got := Pack(examples)
	want := &Batch{examples, Tokens{[]int32{101, 7, 8, 9, 102, 101, 5, 102, 6, 102, 6}, nn.Rows{
		Starts: []int{0, 5, 10, 11}, Words: []int{1, 2, 10}, WordIndex: []int{0, 1, 1}, WordCount: []int{3, 0, 2},
		Special: []bool{true, false, false, false, true, true, false, true, false, true, false},
		Segment: []int8{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0}, Example: []int{0, 1, 2}, Second: []bool{false, false, false},
	}}, []int{0, 1, 2, 3}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got.Tokens, want.Tokens)
	}
}

func TestPackPanicsOnExampleWithoutTokens(t *testing.T) {
	defer func() {
		if got := recover(); got != "corpus: packing an example that is not encoded" {
			t.Errorf("panic %v", got)
		}
	}()
	Pack([]*Example{{Text: "a"}})
}

func TestBatchesHaveEveryExampleOnceWithinLimits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		lengths := make([]int, r.IntN(400))
		for i := range lengths {
			lengths[i] = 1 + r.IntN(60)
		}
		size, budget := 1+r.IntN(40), r.IntN(2)*r.IntN(200)
		for _, source := range []*rand.Rand{nil, r} {
			var all []int
			for _, batch := range Batches(lengths, size, budget, source) {
				tokens := 0
				for _, i := range batch {
					tokens += lengths[i]
				}
				if len(batch) == 0 || len(batch) > size || budget > 0 && tokens > budget && len(batch) > 1 {
					t.Fatalf("a batch of %d texts and %d tokens; size %d, budget %d", len(batch), tokens, size, budget)
				}
				all = append(all, batch...)
			}
			slices.Sort(all)
			for i := range lengths {
				if len(all) != len(lengths) || all[i] != i {
					t.Fatalf("%d examples, %d in batches", len(lengths), len(all))
				}
			}
		}
	}
}

func TestUnshuffledBatchesAreSortedByLength(t *testing.T) {
	got := Batches([]int{5, 1, 9, 1, 3}, 2, 0, nil)
	if want := [][]int{{1, 3}, {4, 0}, {2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	got = Batches([]int{5, 1, 9, 1, 3}, 5, 8, nil)
	if want := [][]int{{1, 3, 4}, {0}, {2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("with a budget got %v, want %v", got, want)
	}
}

func TestTrainingBatchesAreShuffled(t *testing.T) {
	lengths := make([]int, 32*27)
	for i := range lengths {
		lengths[i] = 1 + i%50
	}
	r := rand.New(rand.NewPCG(3, 3))
	first := Batches(lengths, 32, 0, r)
	if len(first) != 27 {
		t.Fatalf("got %d batches, want 27 full ones", len(first))
	}
	spread, batchOf := 0, make([]int, len(lengths))
	for b, batch := range first {
		shortest, longest := lengths[batch[0]], lengths[batch[0]]
		for _, i := range batch {
			shortest, longest = min(shortest, lengths[i]), max(longest, lengths[i])
			batchOf[i] = b
		}
		spread += longest - shortest
	}
	if spread < 40*27 {
		t.Errorf("lengths in a batch differ by %.1f on average, want about 46 for 32 of 50 lengths", float64(spread)/27)
	}

	// of the 496 pairs of examples in a batch, one in 28 is expected to have shared a batch in the epoch before
	together := 0
	for _, batch := range Batches(lengths, 32, 0, r) {
		for i, one := range batch {
			for _, other := range batch[:i] {
				if batchOf[one] == batchOf[other] {
					together++
				}
			}
		}
	}
	if together > 2*27*496/28 {
		t.Errorf("%d pairs share a batch again in the next epoch, want about %d", together, 27*496/28)
	}

	if again := Batches(lengths, 32, 0, rand.New(rand.NewPCG(3, 3))); !reflect.DeepEqual(first, again) {
		t.Error("the same seed gives other batches")
	}
	if other := Batches(lengths, 32, 0, rand.New(rand.NewPCG(4, 3))); reflect.DeepEqual(first, other) {
		t.Error("another seed gives the same batches")
	}
}
