package transformer

import (
	"slices"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

func TestAnEncoderFromScratch(t *testing.T) {
	defaults, ok := encoders.Registry().Defaults("transformer")
	if !ok {
		t.Fatal("no encoder is registered as transformer")
	}
	o := defaults.(Options)
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
	defaults, _ := encoders.Registry().Defaults("transformer")
	for want, change := range map[string]func(*Options, *encoders.Env){
		"max_positions is 16, but max_length is 17": func(o *Options, s *encoders.Env) {
			o.MaxPositions,
				s.MaxLength = 16, 17
		},
		"width 256 is not a multiple of 3 heads": func(o *Options, s *encoders.Env) { o.Heads = 3 },
		"vocabulary is 0; want 1 to 16777216":    func(o *Options, s *encoders.Env) { s.Vocabulary = 0 },
		"dropout is 1; want a rate in [0, 1)": func(o *Options, s *encoders.Env) {
			s.Dropout, s.DropoutSet = 1,
				true
		},
	} {
		o, env := defaults.(Options), encoders.Env{Vocabulary: 50, Params: nn.NewParams(1)}
		change(&o, &env)
		if _, err := New(o, env); err == nil || err.Error() != want {
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
		states, err := e.Encode(p, tokens, nn.LastLayer)
		if err != nil {
			t.Error(err)
			return nil
		}
		into := nn.NewGradients(params.All())
		e.Backward(p, [][]float32{normal(5, len(states[0]))}, into)
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
			e.Backward(pass(), [][]float32{nil}, nn.NewGradients(params.All()))
		}()
	}
}
