package transformer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

func TestAnEncoderFromScratch(t *testing.T) {
	choice, err := encoders.Registry().FromString("transformer", "")
	if err != nil {
		t.Fatal(err)
	}
	o := choice.Options.(Options)
	env := encoders.Env{Vocabulary: 50, MaxLength: o.MaxPositions, Params: nn.NewParams(1).In("encoder")}
	built, err := encoders.Registry().Build("transformer", o, env)
	if err != nil {
		t.Fatal(err)
	}
	e := built.(*encoder)
	if e.config.Width != o.Width || e.config.Vocabulary != 50 || len(e.blocks) != o.Layers {
		t.Errorf("%+v makes %+v", o, e.config)
	}
	if e.config.Dropout != 0.1 || e.config.AttentionDropout != 0.1 { // BertConfig's
		t.Errorf("dropouts are %v and %v, want 0.1", e.config.Dropout, e.config.AttentionDropout)
	}
	states := encode(t, e, nn.NewPass(1), pack([]int32{1, 2, 49}), nn.LastLayer)
	if len(states[0]) != 3*o.Width {
		t.Errorf("3 tokens have %d numbers, want %d", len(states[0]), 3*o.Width)
	}

	env.Params, env.Dropout, env.DropoutSet = nn.NewParams(1), 0.25, true
	built, err = encoders.Registry().Build("transformer", o, env)
	if err != nil {
		t.Fatal(err)
	}
	if c := built.(*encoder).config; c.Dropout != 0.25 || c.AttentionDropout != 0.25 {
		t.Errorf("dropouts are %v and %v, want the experiment's 0.25", c.Dropout, c.AttentionDropout)
	}
}

func TestOptionsOfNoEncoderAreErrors(t *testing.T) {
	choice, err := encoders.Registry().FromString("transformer", "")
	if err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Options, *encoders.Env){
		"max_positions is 16, but max_length is 17": func(o *Options, s *encoders.Env) {
			o.MaxPositions,
				s.MaxLength = 16, 17
		},
		"layers: want a whole number in [1, 1024], have 0": func(o *Options, s *encoders.Env) {
			o.Layers = 0
		},
		"width: want a whole number in [1, 16777216], have -12": func(o *Options, s *encoders.Env) {
			o.Width = -12
		},
		"heads: want a whole number in [1, 16777216], have 0": func(o *Options, s *encoders.Env) {
			o.Heads = 0
		},
		"feed_forward: want a whole number in [1, 16777216], have 16777217": func(o *Options, s *encoders.Env) {
			o.FeedForward = 1<<24 + 1
		},
		"max_positions: want a whole number in [1, 16777216], have 0": func(o *Options, s *encoders.Env) {
			o.MaxPositions = 0
		},
		"width 256 is not a multiple of 3 heads": func(o *Options, s *encoders.Env) { o.Heads = 3 },
		"vocabulary is 0; want 1 to 16777216":    func(o *Options, s *encoders.Env) { s.Vocabulary = 0 },
		"dropout is 1; want a rate in [0, 1)": func(o *Options, s *encoders.Env) {
			s.Dropout, s.DropoutSet = 1,
				true
		},
	} {
		o, env := choice.Options.(Options), encoders.Env{Vocabulary: 50, Params: nn.NewParams(1)}
		change(&o, &env)
		if _, err := encoders.Registry().Build("transformer", o, env); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestManyPassesMayRunAtOnce(t *testing.T) {
	c := tiny("bert")
	c.Dropout, c.AttentionDropout = 0.2, 0.2
	e, params := network(t, c, "none")
	tokens := someBatch()
	run := func() []float32 {
		p := training(1)
		states, err := e.Encode(p, tokens, encoders.Mode{})
		if err != nil {
			t.Error(err)
			return nil
		}
		into := nn.NewGradients(params.All())
		e.backward(p, [][]float32{normal(5, len(states[0]))}, into)
		return into.Of(e.embeddings.words)
	}
	want := run()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if !slices.Equal(run(), want) {
				t.Errorf("a pass beside others has other gradients")
			}
		})
	}
	wg.Wait()
}

func TestBackwardOfWhatWasNotKeptPanics(t *testing.T) {
	e, params := network(t, tiny("bert"), "none")
	for want, pass := range map[string]func() *nn.Pass{
		"transformer: Backward of a pass that was not encoded": func() *nn.Pass { return training(1) },
		"transformer: Backward of a pass that was not training, or to a frozen parameter": func() *nn.Pass {
			p := nn.NewPass(1)
			encode(t, e, p, someBatch(), nn.LastLayer)
			return p
		},
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			e.backward(pass(), [][]float32{nil}, nn.NewGradients(params.All()))
		}()
	}
}

var testedLayouts = []string{"bert", "distilbert", "roberta", "electra", "mpnet", "modernbert"}

// someBatch has a text of one token, an empty one, and the longest that tiny networks take.
func someBatch() corpus.Tokens {
	return pack([]int32{3, 17, 5, 17, 29, 8, 2}, []int32{4}, nil, []int32{11, 12, 13, 1, 22, 9, 7, 8, 21})
}

func TestATextHasTheSameStatesAloneAndInAnyBatch(t *testing.T) {
	for _, layout := range testedLayouts {
		c := tiny(layout)
		c.Width, c.Heads, c.FeedForward, c.MaxPositions = 12, 2, 13, 42
		e, _ := network(t, c, "none")
		texts := [][]int32{}
		for length := range 40 {
			text := make([]int32, length)
			for i := range text {
				text[i] = int32((i*i + length) % c.Vocabulary)
			}
			texts = append(texts, text)
		}
		together := pack(texts...)
		for _, train := range []bool{false, true} {
			pass := func() *nn.Pass { p := nn.NewPass(1); p.Training = train; return p }
			all := encode(t, e, pass(), together, nn.LastLayer)[0]
			for b, text := range texts {
				alone := encode(t, e, pass(), pack(text), nn.LastLayer)[0]
				if got := all[together.Rows.Starts[b]*c.Width:][:len(alone)]; !slices.Equal(got, alone) {
					t.Errorf("%s, training %v: text %d of the batch differs from the same text alone", layout, train, b)
				}
			}
		}
	}
}

func TestThreadsChangeNoBit(t *testing.T) {
	defer kernel.SetThreads(0)
	for _, layout := range testedLayouts {
		threadsChangeNoBit(t, layout)
	}
}

func threadsChangeNoBit(t *testing.T, layout string) {
	c := tiny(layout)
	c.Dropout, c.AttentionDropout, c.FeedForward = 0.1, 0.1, 700 // more columns than a tile has
	e, params := network(t, c, "none")
	tokens := someTexts(60, 1, c.maxTokens(), c.Vocabulary)
	var wantStates, wantGradients []float32
	for threads := 1; threads <= 3; threads++ {
		kernel.SetThreads(threads)
		p := training(4)
		states := encode(t, e, p, tokens, nn.LastLayer)[0]
		into := nn.NewGradients(params.All())
		e.backward(p, [][]float32{normal(5, len(states))}, into)
		var gradients []float32
		for _, w := range params.All() {
			gradients = append(gradients, into.Of(w)...)
		}
		if threads == 1 {
			wantStates, wantGradients = states, gradients
		}
		if !slices.Equal(states, wantStates) || !slices.Equal(gradients, wantGradients) {
			t.Errorf("%s: %d threads give other bits than one", layout, threads)
		}
	}
}

func TestDropoutIsAFunctionOfSeedAndStep(t *testing.T) {
	for _, layout := range testedLayouts {
		for _, rates := range [][2]float64{{0.3, 0}, {0, 0.3}} {
			c := tiny(layout)
			c.Dropout, c.AttentionDropout = rates[0], rates[1]
			e, _ := network(t, c, "none")
			tokens := someBatch()
			first := encode(t, e, training(1), tokens, nn.LastLayer)[0]
			if again := encode(t, e, training(1), tokens, nn.LastLayer)[0]; !slices.Equal(first, again) {
				t.Errorf("%s, dropouts %v: the same step has other states", layout, rates)
			}
			if next := encode(t, e, training(2), tokens, nn.LastLayer)[0]; slices.Equal(first, next) {
				t.Errorf("%s, dropouts %v: the next step has the same states", layout, rates)
			}
			evaluation := training(1)
			evaluation.Training = false
			if plain := encode(t, e, evaluation, tokens, nn.LastLayer)[0]; slices.Equal(first, plain) {
				t.Errorf("%s, dropouts %v: training drops nothing", layout, rates)
			}
		}
	}
}

// BertSelfOutput drops attention's output, DistilBERT's TransformerBlock does not.
func TestOnlyBERTDropsTheOutputOfAttention(t *testing.T) {
	for layout, want := range map[string]bool{"bert": true, "distilbert": false} {
		c := tiny(layout)
		c.Dropout = 0.3
		e, _ := network(t, c, "none")
		s, rows := newBlockState(training(1), c, 4), 4
		x, out := normal(1, rows*c.Width), make([]float32, rows*c.Width)
		e.blocks[0].forward(pass{Pass: training(1)}, s, out, x, []int{0, rows})
		kept := slices.Clone(s.sums[0])
		s.drops = true
		e.blocks[0].forward(pass{Pass: training(1)}, s, out, x, []int{0, rows})
		if got := !slices.Equal(kept, s.sums[0]); got != want {
			t.Errorf("%s drops the output of attention: %v, want %v", layout, got, want)
		}
	}
}

// TestEachDropoutHasAPlaceOfItsOwn: two dropouts with the same place would have the same mask in each pass.
func TestEachDropoutHasAPlaceOfItsOwn(t *testing.T) {
	e, err := newEncoder(tiny("bert"), encoders.Env{Vocabulary: 30, Freeze: "none", Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	places := map[string]string{e.embeddings.drop.place: "the embeddings"}
	for i, b := range e.blocks {
		for of, drop := range map[string]dropout{
			"attention's weights": b.attention.drop, "attention's output": b.attentionDrop, "output": b.outputDrop,
		} {
			if other, taken := places[drop.place]; taken {
				t.Errorf("block %d: %s has the place %q of %s", i, of, drop.place, other)
			}
			places[drop.place] = fmt.Sprintf("block %d: %s", i, of)
		}
	}
	if want := 1 + 3*len(e.blocks); len(places) != want {
		t.Errorf("%d places, want %d", len(places), want)
	}
}

func TestBackwardLeavesThePassAsItIs(t *testing.T) {
	c := tiny("bert")
	c.Dropout, c.AttentionDropout = 0.2, 0.2
	e, params := network(t, c, "none")
	p := training(1)
	states := encode(t, e, p, someBatch(), nn.LastLayer)
	before := slices.Clone(states[0])
	upstream := [][]float32{normal(5, len(states[0]))}
	given := slices.Clone(upstream[0])
	once, other, again := nn.NewGradients(params.All()), nn.NewGradients(params.All()), nn.NewGradients(params.All())
	e.backward(p, upstream, once)
	e.backward(p, [][]float32{normal(6, len(states[0]))}, other)
	e.backward(p, upstream, again)
	for _, w := range params.All() {
		if !slices.Equal(once.Of(w), again.Of(w)) {
			t.Errorf("Backward called again gives %s another gradient", w.Name)
		}
		if slices.Equal(once.Of(w), other.Of(w)) && !strings.HasSuffix(w.Name, "key.bias") {
			t.Errorf("another gradient at the states leaves that of %s", w.Name)
		}
	}
	if !slices.Equal(states[0], before) || !slices.Equal(upstream[0], given) {
		t.Errorf("Backward changed what it was given")
	}
	e.backward(p, upstream, again)
	for _, w := range params.All() {
		for i, g := range once.Of(w) {
			if !(math.Abs(float64(again.Of(w)[i]-2*g)) <= 1e-5*(1+math.Abs(float64(g)))) {
				t.Fatalf("Backward does not add to the gradient of %s", w.Name)
			}
		}
	}
}

func TestWhatIsFrozenTakesNoGradientAndDropsNothing(t *testing.T) {
	for freeze, levels := range map[string]int{"": 0, "none": 0, "embeddings": 1, "0": 1, "1": 2, "2": 3, "all": 3} {
		c := tiny("bert")
		free, freeParams := network(t, c, "none")
		p := training(1)
		tokens := someBatch()
		upstream := [][]float32{normal(5, len(tokens.IDs)*c.Width)}
		want := nn.NewGradients(freeParams.All())
		encode(t, free, p, tokens, nn.LastLayer)
		free.backward(p, upstream, want)

		e, params := network(t, c, freeze)
		p = training(1)
		encode(t, e, p, tokens, nn.LastLayer)
		got := nn.NewGradients(params.All())
		e.backward(p, upstream, got)
		for i, w := range params.All() {
			frozen := slices.IndexFunc(e.levels,
				func(level []*nn.Param) bool { return slices.Contains(level, w) }) < levels
			if w.Frozen != frozen {
				t.Errorf("freeze %q: %s is frozen: %v", freeze, w.Name, w.Frozen)
			}
			if !frozen && !slices.Equal(got.Of(w), want.Of(freeParams.All()[i])) {
				t.Errorf("freeze %q: %s has another gradient than where nothing is frozen", freeze, w.Name)
			}
		}

		c.Dropout, c.AttentionDropout = 0.3, 0.3
		e, _ = network(t, c, freeze)
		dropping := encode(t, e, training(1), tokens, nn.AllLayers)
		plain := encode(t, e, nn.NewPass(1), tokens, nn.AllLayers)
		for i := range plain {
			if dropped := !slices.Equal(dropping[i], plain[i]); dropped != (i >= levels) {
				t.Errorf("freeze %q: training changes the states of level %d: %v", freeze, i, dropped)
			}
		}
	}
}

func TestFreezeOfMissingLayers(t *testing.T) {
	for _, freeze := range []string{"3", "-1", "1.5", "layers"} {
		_, err := newEncoder(tiny("bert"), encoders.Env{Params: nn.NewParams(1), Freeze: freeze})
		want := fmt.Sprintf("freeze: %q is not known; available: none, embeddings, all, and a number of layers from "+
			"0 to 2", freeze)
		if err == nil || err.Error() != want {
			t.Errorf("freeze %q: %v, want %s", freeze, err, want)
		}
	}
}

func TestLayersThatShareMemoryHaveTheStatesOfThoseThatDoNot(t *testing.T) {
	c := tiny("bert")
	c.Layers = 6
	for _, freeze := range []string{"none", "embeddings", "3", "5", "all"} {
		e, _ := network(t, c, freeze)
		for _, train := range []bool{false, true} {
			pass := func() *nn.Pass { p := nn.NewPass(1); p.Training = train; return p }
			all := encode(t, e, pass(), someBatch(), nn.AllLayers)
			last := encode(t, e, pass(), someBatch(), nn.LastLayer)
			if len(all) != c.Layers+1 || len(last) != 1 || !slices.Equal(all[c.Layers], last[0]) {
				t.Errorf("freeze %s, training %v: the last of all layers differs from the last layer", freeze, train)
			}
		}
	}
}

func TestGradientsAtAllLayersAddUp(t *testing.T) {
	c := tiny("bert")
	e, params := network(t, c, "none")
	p := training(1)
	states := encode(t, e, p, someBatch(), nn.AllLayers)
	at := [][]float32{normal(5, len(states[0])), nil, normal(6, len(states[0]))}
	together, apart := nn.NewGradients(params.All()), nn.NewGradients(params.All())
	e.backward(p, at, together)
	e.backward(p, [][]float32{at[0], nil, nil}, apart)
	e.backward(p, [][]float32{nil, nil, at[2]}, apart)
	for _, w := range params.All() {
		for i, g := range together.Of(w) {
			if !(math.Abs(float64(g-apart.Of(w)[i])) <= 1e-4) {
				t.Fatalf("%s: gradients at two layers give %v, one after the other %v", w.Name, g, apart.Of(w)[i])
			}
		}
	}
}

func TestTokensWithoutEmbeddingAreErrors(t *testing.T) {
	typed := pack([]int32{1, 2}, []int32{3, 4})
	typed.Rows.Segment[3] = 2
	for want, tokens := range map[string]corpus.Tokens{
		"text 2 of the batch has 10 tokens; the encoder takes 9": pack([]int32{1},
			make([]int32, 10)),
		"text 1 of the batch: token id 30 is outside the encoder's vocabulary of 30": pack([]int32{1, 30},
			[]int32{2}),
		"text 2 of the batch: token id -1 is outside the encoder's vocabulary of 30": pack([]int32{1, 29},
			[]int32{-1}),
		"text 2 of the batch: the encoder has no token type 2; it has 2, counted from 0": typed,
	} {
		e, _ := network(t, tiny("bert"), "none")
		if _, err := e.Encode(nn.NewPass(1), tokens, encoders.Mode{}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	e, _ := network(t, tiny("distilbert"), "none")
	if _, err := e.Encode(nn.NewPass(1), typed, encoders.Mode{}); err != nil {
		t.Errorf("a layout without token types minds them: %v", err)
	}
}

func TestTokenTypesNeedNotNumberTheTexts(t *testing.T) {
	e, _ := network(t, tiny("bert"), "none")
	states := func(segment, types []int8) []float32 {
		tokens := pack([]int32{3, 17, 5, 17}, []int32{29, 8})
		tokens.Rows.Segment, tokens.Rows.Types = segment, types
		return encode(t, e, nn.NewPass(1), tokens, nn.LastLayer)[0]
	}
	types := []int8{0, 1, 1, 0, 1, 0}
	if d := farthest(states(make([]int8, 6), types), states(types, nil)); d != 0 {
		t.Errorf("with types other than segments, states differ by %v", d)
	}
}

func TestAnEmptyBatchHasNoStates(t *testing.T) {
	e, params := network(t, tiny("bert"), "none")
	p := training(1)
	states := encode(t, e, p, pack(), nn.LastLayer)
	e.backward(p, states, nn.NewGradients(params.All()))
	if len(states[0]) != 0 {
		t.Errorf("no texts have %d states", len(states[0]))
	}
}

func TestAttentionIsPassedToWatchers(t *testing.T) {
	c := tiny("bert")
	for _, freeze := range []string{"none", "all"} {
		e, _ := network(t, c, freeze)
		p := nn.NewPass(1)
		tokens := someBatch()
		var texts []int
		lower := map[int][]float32{} // the maps of the layer below, by text
		for layer := range c.Layers {
			p.Observe(nn.AttentionMaps(layer), func(text int, shape []int, maps []float32) {
				texts = append(texts, text)
				n := tokens.Rows.Starts[text+1] - tokens.Rows.Starts[text]
				if want := []int{c.Heads, n, n}; !slices.Equal(shape, want) || len(maps) != c.Heads*n*n {
					t.Fatalf("text %d: %d values of shape %v, want %v", text, len(maps), shape, want)
				}
				for i := 0; i < len(maps); i += n {
					var sum float64
					for _, v := range maps[i : i+n] {
						sum += float64(v)
					}
					if !(math.Abs(sum-1) < 1e-5) {
						t.Fatalf("text %d: a query's weights sum to %v", text, sum)
					}
				}
				if n > 1 && slices.Equal(maps, lower[text]) {
					t.Errorf("text %d: layers %d and %d have the same maps", text, layer-1, layer)
				}
				lower[text] = slices.Clone(maps)
			})
		}
		encode(t, e, p, tokens, nn.LastLayer)
		if want := slices.Repeat([]int{0, 1, 2, 3}, c.Layers); !slices.Equal(texts, want) {
			t.Errorf("shown texts %v, want %v", texts, want)
		}
	}
}

func TestParametersHaveBERTsNames(t *testing.T) {
	c := tiny("distilbert")
	c.Layers = 1
	params := nn.NewParams(1)
	e, err := newEncoder(c, encoders.Env{Params: params.In("encoder")})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, w := range params.All() {
		got = append(got, fmt.Sprint(strings.TrimPrefix(w.Name, "encoder."), w.Shape, w.Decay))
	}
	// The names of transformers' BertModel.
	want := strings.Split(`embeddings.word_embeddings.weight[30 12] true
embeddings.position_embeddings.weight[9 12] true
embeddings.LayerNorm.weight[12] false
embeddings.LayerNorm.bias[12] false
encoder.layer.0.attention.self.query.weight[12 12] true
encoder.layer.0.attention.self.query.bias[12] false
encoder.layer.0.attention.self.key.weight[12 12] true
encoder.layer.0.attention.self.key.bias[12] false
encoder.layer.0.attention.self.value.weight[12 12] true
encoder.layer.0.attention.self.value.bias[12] false
encoder.layer.0.attention.output.dense.weight[12 12] true
encoder.layer.0.attention.output.dense.bias[12] false
encoder.layer.0.attention.output.LayerNorm.weight[12] false
encoder.layer.0.attention.output.LayerNorm.bias[12] false
encoder.layer.0.intermediate.dense.weight[12 20] true
encoder.layer.0.intermediate.dense.bias[20] false
encoder.layer.0.output.dense.weight[20 12] true
encoder.layer.0.output.dense.bias[12] false
encoder.layer.0.output.LayerNorm.weight[12] false
encoder.layer.0.output.LayerNorm.bias[12] false`, "\n")
	if !slices.Equal(got, want) {
		t.Errorf("parameters are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if e.Describe().WordEmbeddings != params.All()[0] {
		t.Errorf("the word embeddings are %s", e.Describe().WordEmbeddings.Name)
	}
}
