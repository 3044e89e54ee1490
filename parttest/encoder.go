package parttest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

const (
	vocabulary = 20 // token ids of the encoders under test
	longest    = 9  // tokens of their texts
)

// Encoder checks the encoder registered as name, made from scratch with options written as YAML. Small sizes keep it
// quick: "{layers: 2, hidden: 5}".
func Encoder(t *testing.T, name, options string) {
	t.Helper()
	m := encoderMaker(chosen(t, encoders.Registry(), name, options))
	e := m.encoder(t, encoders.FreezeNone, 0.2)

	t.Run("its description is consistent", func(t *testing.T) { checkDescription(t, e) })
	t.Run("it returns the states of the requested layers", func(t *testing.T) { checkLayers(t, e) })
	t.Run("states do not depend on the rest of the batch", func(t *testing.T) { checkEncoderCompany(t, e) })
	t.Run("states that are read do not depend on those that are not", func(t *testing.T) { checkRead(t, e) })
	t.Run("states do not depend on the number of threads", func(t *testing.T) { checkThreads(t, m) })
	t.Run("tokens without an embedding are an error that names the text", func(t *testing.T) { checkRefused(t, e) })
	if e.Backward != nil {
		t.Run("gradients agree with differences, dropout on", func(t *testing.T) { checkEncoderGradients(t, m) })
		t.Run("it reports final gradients by Ready", func(t *testing.T) { checkReady(t, m) })
		t.Run("frozen layers do not learn and have no dropout", func(t *testing.T) { checkFrozenLayers(t, m) })
	}
	if e.Words != nil {
		t.Run("gradients at its word embeddings agree with differences", func(t *testing.T) { checkWords(t, m) })
		t.Run("its memory estimate counts such gradients", func(t *testing.T) { checkMemoryOfWords(t, m) })
	}
	if e.Levels != nil {
		t.Run("layers that learn later are as frozen ones", func(t *testing.T) { checkLaterLayers(t, m) })
	}
	if e.Save != nil {
		t.Run("saved and opened it returns the same states", func(t *testing.T) { checkOpened(t, name, e) })
	}
	if e.ChoosesLayers {
		t.Run("it is made of some layers of what it has saved", func(t *testing.T) { checkChosen(t, name, e) })
	}
	if e.Memory != nil {
		t.Run("its memory estimate is right", func(t *testing.T) { checkMemory(t, m) })
		t.Run("its memory estimate counts attention maps", func(t *testing.T) { checkMemoryOfMaps(t, m) })
	}
}

func checkDescription(t *testing.T, e encoder) {
	d := e.Description
	if d.Width < 1 || d.Layers < 0 || d.MaxTokens < 0 || (d.Attention.Layers > 0) != (d.Attention.Heads > 0) {
		t.Errorf("%+v: want a width, and no number below 0", d)
	}
	if len(d.Files) > 0 {
		t.Errorf("an encoder from scratch was read from %q", d.Files)
	}
	w := d.WordEmbeddings
	if w != nil && (len(w.Shape) != 2 || w.Shape[0] < vocabulary || !slices.Contains(e.params, w)) {
		t.Errorf("word embeddings %q have shape %v; want one of the parameters, [V E]", w.Name, w.Shape)
	}
}

func checkLayers(t *testing.T, e encoder) {
	tokens := tokensOf(1, 5, 3)
	_, last := e.encode(t, tokens, lastLayer, false)
	_, all := e.encode(t, tokens, allLayers, false)
	if len(last) != 1 {
		t.Fatalf("%d layers where the last one is requested", len(last))
	}
	if want := max(1, e.Layers); len(all) != want {
		t.Errorf("%d layers where all are requested, Describe returns %d", len(all), want)
	}
	for l, x := range slices.Concat(all, last) {
		if width := e.Width; len(x) != len(tokens.IDs)*width {
			t.Fatalf("layer %d has %d numbers for %d tokens of width %d", l, len(x), len(tokens.IDs), width)
		}
	}
	if len(all) == 0 || !sameBits(all[len(all)-1], last[0]) {
		t.Error("the last of all layers is not the last layer")
	}
}

func checkEncoderCompany(t *testing.T, e encoder) {
	tokens := tokensOf(1, 5, longest, 3)
	_, all := e.encode(t, tokens, allLayers, false)
	_, backwards := e.encode(t, ofTexts(tokens, 3, 2, 1, 0), allLayers, false)
	row := len(tokens.IDs) // of the text in the batch that is backwards
	for b := range tokens.Rows.Texts() {
		lo, hi := tokens.Rows.Starts[b]*e.Width, tokens.Rows.Starts[b+1]*e.Width
		row -= tokens.Rows.Starts[b+1] - tokens.Rows.Starts[b]
		_, alone := e.encode(t, ofTexts(tokens, b), allLayers, false)
		for l := range all {
			if !sameBits(alone[l], all[l][lo:hi]) {
				t.Errorf("text %d: layer %d is not what it is in a batch", b, l)
			}
			if !sameBits(backwards[l][row*e.Width:][:hi-lo], all[l][lo:hi]) {
				t.Errorf("text %d: layer %d is not what it is in a batch of another order", b, l)
			}
		}
	}
}

func checkRead(t *testing.T, e encoder) {
	tokens, width := tokensOf(1, 5, longest, 3), e.Width
	_, want := e.encode(t, tokens, lastLayer, false)
	p := nn.NewPass(5)
	for _, read := range [][]int{{0}, nil, tokens.Rows.Starts[:tokens.Rows.Texts()], {1, 4, len(tokens.IDs) - 1}} {
		p.Reset(0)
		states, err := e.Encode(p, tokens, encoders.Mode{Read: read})
		if err != nil {
			t.Fatal(err)
		}
		for row := range tokens.IDs {
			got, whole := states[0][row*width:(row+1)*width], want[0][row*width:(row+1)*width]
			leftOut := !slices.ContainsFunc(got, func(x float32) bool { return x == x })
			if !sameBits(got, whole) && (!leftOut || read == nil || slices.Contains(read, row)) {
				t.Errorf("the state of token %d is %v where the tokens %v are read, else %v", row, got, read, whole)
			}
		}
	}
}

func checkThreads(t *testing.T, m encoderMaker) {
	defer kernel.SetThreads(0)
	lengths := make([]int, 60)
	for i := range lengths {
		lengths[i] = 1 + i%longest
	}
	var want [][]float32
	for threads := 1; threads <= 2; threads++ {
		kernel.SetThreads(threads)
		e := m.encoder(t, encoders.FreezeNone, 0.2)
		_, got := e.encode(t, tokensOf(lengths...), lastLayer, false)
		if e.Backward != nil {
			into, states := e.gradients(t, tokensOf(lengths...), lastLayer)
			got = append(slices.Clone(got), states...)
			for _, w := range e.params {
				got = append(got, into.Of(w))
			}
		}
		if threads == 1 {
			want = got
		}
		for i := range want {
			if !sameBits(got[i], want[i]) {
				t.Errorf("states or gradients, number %d of %d, differ with %d threads", i+1, len(want), threads)
			}
		}
	}
}

func checkRefused(t *testing.T, e encoder) {
	refused := func(what string, tokens corpus.Tokens) {
		t.Helper()
		_, err := e.Encode(nn.NewPass(1), tokens, encoders.Mode{})
		if err == nil || !strings.Contains(err.Error(), "text 3") {
			t.Errorf("%s in the third text: error %v, want one that names text 3", what, err)
		}
	}
	for what, id := range map[string]int32{"a token outside the vocabulary": vocabulary, "a token below 0": -1} {
		tokens := tokensOf(1, 5, 3)
		tokens.IDs[7] = id
		refused(what, tokens)
	}
	if most := e.MaxTokens; most > 0 {
		refused("more tokens than MaxTokens", tokensOf(1, 2, most+1))
	}
}

func checkEncoderGradients(t *testing.T, m encoderMaker) {
	tokens := tokensOf(1, 5, 3)
	for _, mode := range []encoders.Mode{lastLayer, allLayers} {
		e := m.encoder(t, encoders.FreezeNone, 0.2)
		into, states := e.gradients(t, tokens, mode)
		at := upstream(states)
		loss := func() float64 {
			for _, w := range e.params {
				w.Changed()
			}
			_, states := e.encode(t, tokens, mode, true)
			return dotOf(states, at)
		}

		if checkSlopes(t, e.params, into, loss) == 0 {
			t.Fatal("all gradients are 0")
		}
	}
}

func checkFrozenLayers(t *testing.T, m encoderMaker) {
	tokens := tokensOf(1, 5, 3)
	t.Run("all of it", func(t *testing.T) {
		e := m.encoder(t, encoders.FreezeAll, 0.5)
		if slices.ContainsFunc(e.params, (*nn.Param).Learns) {
			t.Error("freeze: all leaves a parameter that learns")
		}
		_, want := e.encode(t, tokens, allLayers, false)
		p, got := e.encode(t, tokens, allLayers, true)
		checkSame(t, "in training", got, want)
		e.Backward(p, upstream(got), nn.NewGradients(e.params)) // there is nothing to do
	})
	t.Run("its embeddings and first layer", func(t *testing.T) {
		whole, part := m.encoder(t, encoders.FreezeNone, 0), m.encoder(t, "1", 0)
		want, _ := whole.gradients(t, tokens, lastLayer)
		got, _ := part.gradients(t, tokens, lastLayer)
		frozen := 0
		for i, w := range part.params {
			switch {
			case w.Frozen:
				frozen++
			case !sameBits(got.Of(w), want.Of(whole.params[i])):
				t.Errorf("parameter %s has another gradient than where nothing is frozen", w.Name)
			}
		}
		if frozen == 0 {
			t.Error("freeze: 1 freezes nothing")
		}
	})
}

// checkOpened saves the encoder, and opens it without options for its sizes.
func checkOpened(t *testing.T, name string, e encoder) {
	folder, tokens := filepath.Join(t.TempDir(), "encoder"), tokensOf(1, 5, 3)
	if err := e.Save(nil)(folder); err != nil {
		t.Fatal(err)
	}
	checkCopy(t, e, folder)
	made := built(t, encoders.Registry(), name, "", encoders.Env{Model: folder, Vocabulary: vocabulary,
		MaxLength: longest, Params: nn.NewParams(9).In("encoder")})
	opened := encoder{made, made.Describe(), nil}
	if opened.Width != e.Width {
		t.Fatalf("opened it has the width %d, saved %d", opened.Width, e.Width)
	}
	if len(opened.Files) == 0 {
		t.Error("opened, its description lists no files")
	}
	_, want := e.encode(t, tokens, allLayers, false)
	_, got := opened.encode(t, tokens, allLayers, false)
	checkSame(t, "opened", got, want)
}

// checkChosen saves the encoder, and opens all of its layers, which are to return the same states, and the first alone,
// which is to be counted as one layer, and to be saved as one.
func checkChosen(t *testing.T, name string, e encoder) {
	opened := func(folder string, layers ...int) encoder {
		made := built(t, encoders.Registry(), name, "", encoders.Env{Model: folder, Vocabulary: vocabulary,
			MaxLength: longest, Layers: layers, Params: nn.NewParams(9).In("encoder")})
		return encoder{made, made.Describe(), nil}
	}
	if e.Save == nil {
		t.Fatal("it has no Save: layers that were chosen cannot be in a checkpoint")
	}
	folder, tokens := filepath.Join(t.TempDir(), "encoder"), tokensOf(1, 5, 3)
	if err := e.Save(nil)(folder); err != nil {
		t.Fatal(err)
	}
	var all []int
	for i := range e.Levels[1:] {
		all = append(all, i)
	}
	_, want := e.encode(t, tokens, allLayers, false)
	_, got := opened(folder, all...).encode(t, tokens, allLayers, false)
	checkSame(t, "of all its layers", got, want)

	first, single := opened(folder, 0), filepath.Join(t.TempDir(), "first")
	if err := first.Save(nil)(single); err != nil {
		t.Fatal(err)
	}
	_, want = first.encode(t, tokens, allLayers, false)
	again := opened(single)
	_, got = again.encode(t, tokens, allLayers, false)
	checkSame(t, "saved with its first layer", got, want)
	for _, made := range []encoder{first, again} {
		if len(made.Levels) != 2 {
			t.Errorf("of one layer it has %d levels, want those of the embeddings and of the layer", len(made.Levels))
		}
	}
}

// checkCopy compares what an encoder has saved with what a copy saves after the parameters have changed.
func checkCopy(t *testing.T, e encoder, saved string) {
	save := e.Save(new(nn.Copies))
	for _, w := range e.params {
		values := slices.Clone(w.Data)
		for i := range w.Data {
			w.Data[i]++
		}
		w.Changed()
		defer func() { copy(w.Data, values); w.Changed() }()
	}
	folder := filepath.Join(t.TempDir(), "copy")
	if err := save(folder); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "model.safetensors"} {
		want, err := os.ReadFile(filepath.Join(saved, name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(folder, name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s of a copy is not what the encoder has saved: %v", name, err)
		}
	}
}

// checkLaterLayers requires that each parameter is in one of its Levels, and that levels that learn later give
// the same states and gradients as frozen ones.
func checkLaterLayers(t *testing.T, m encoderMaker) {
	e := m.encoder(t, encoders.FreezeNone, 0.5)
	in := map[*nn.Param]int{}
	for _, level := range e.Levels {
		for _, w := range level {
			in[w]++
		}
	}
	for _, w := range e.params {
		if in[w] != 1 {
			t.Errorf("parameter %s is in %d levels, want one", w.Name, in[w])
		}
	}
	for _, freeze := range []string{"1", encoders.FreezeAll} {
		checkLater(t, m.encoder(t, encoders.FreezeNone, 0.5), m.encoder(t, freeze, 0.5))
	}
}

// checkLater compares an encoder, some of whose parameters learn later, with one in which they are frozen.
func checkLater(t *testing.T, later, frozen encoder) {
	for i, w := range later.params {
		w.Later = frozen.params[i].Frozen
	}
	tokens := tokensOf(1, 5, 3)
	_, want := frozen.encode(t, tokens, allLayers, true)
	_, got := later.encode(t, tokens, allLayers, true)
	checkSame(t, "beside an encoder that is frozen as far", got, want)
	wantGradients, _ := frozen.gradients(t, tokens, lastLayer)
	gradients, _ := later.gradients(t, tokens, lastLayer)
	for i, w := range later.params {
		switch d := gradients.Of(w); {
		case w.Later && d != nil:
			t.Errorf("parameter %s, which learns later, has a gradient", w.Name)
		case !w.Later && !sameBits(d, wantGradients.Of(frozen.params[i])):
			t.Errorf("parameter %s has another gradient than in an encoder that is frozen as far", w.Name)
		}
	}
}

// checkReady requires that Backward reports each parameter that learns once, when its gradient is final, and always in
// the same order: processes that sum gradients expect the same parameter at each step.
func checkReady(t *testing.T, m encoderMaker) {
	for _, freeze := range []string{encoders.FreezeNone, "1"} {
		var order []string // of the first batch
		for batch, lengths := range [][]int{{1, 5, 3}, {longest, 2}} {
			e := m.encoder(t, freeze, 0.2)
			p, states := e.encode(t, tokensOf(lengths...), allLayers, true)
			into := nn.NewGradients(e.params)
			reported, names := map[*nn.Param][]float32{}, []string{} // gradients as they were when they were reported
			e.Backward(p, upstream(states), into.Observed(func(w *nn.Param) {
				if _, twice := reported[w]; twice {
					t.Errorf("freeze %s: parameter %s is reported twice", freeze, w.Name)
				}
				reported[w], names = slices.Clone(into.Of(w)), append(names, w.Name)
			}))

			for _, w := range e.params {
				then, ok := reported[w]
				switch {
				case !into.Has(w):
				case !ok:
					t.Errorf("freeze %s: parameter %s is not reported by Ready", freeze, w.Name)
				case !sameBits(then, into.Of(w)):
					t.Errorf("freeze %s: the gradient of %s changes after it is reported", freeze, w.Name)
				}
			}
			if batch == 0 {
				order = names
			} else if !slices.Equal(names, order) {
				t.Errorf("freeze %s: the order of reports is %q, in another batch %q", freeze, names, order)
			}
		}
	}
}

// checkWords compares the gradient at the word embeddings of an encoder, all of which is frozen, with differences.
func checkWords(t *testing.T, m encoderMaker) {
	tokens := tokensOf(1, 5, 3)
	for _, mode := range []encoders.Mode{lastLayer, allLayers} {
		e := m.encoder(t, encoders.FreezeAll, 0.2)
		words, err := e.Words.Embed(tokens.IDs) // [T E]
		if err != nil {
			t.Fatal(err)
		}

		_, want := e.encode(t, tokens, mode, false)
		mode.Words = words
		p, states := e.encode(t, tokens, mode, false)
		checkSame(t, "by word embeddings", states, want)
		at := upstream(states)
		gradient := slices.Clone(e.Words.Backward(p, at))
		if len(gradient) != len(words) || norm(gradient) == 0 {
			t.Fatalf("a gradient of %d numbers and norm %v, want %d numbers that are not all 0", len(gradient),
				norm(gradient), len(words))
		}
		if !sameBits(e.Words.Backward(p, at), gradient) {
			t.Error("a second backward pass returns another gradient")
		}
		loss := func() float64 {
			_, states := e.encode(t, tokens, mode, false)
			return dotOf(states, at)
		}
		checkSlope(t, "word embeddings", words, gradient, 3, norm(gradient), loss)
	}
}

func checkMemoryOfWords(t *testing.T, m encoderMaker) {
	e := m.encoder(t, encoders.FreezeAll, 0)
	if e.Memory == nil {
		t.Skip("it does not estimate its memory")
	}
	words := make([]float32, 3*longest*e.WordEmbeddings.Shape[1])
	e.checkMemory(t, "by word embeddings", encoders.Mode{Words: words}, false)
}
