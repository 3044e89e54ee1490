package parttest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Head checks the head registered as name, made with options written as YAML ("dropout: 0.2"; "" for the defaults),
// for each kind of outputs that it has.
func Head(t *testing.T, name, options string) {
	t.Helper()
	choice, err := heads.Registry().FromString(name, options)
	if err != nil {
		t.Fatalf("head %q with options %q: %v", name, options, err)
	}
	served, refusals := 0, []string{}
	for _, kind := range sampled() {
		build := func(seed uint64) (heads.Head, nn.Params, error) {
			params := nn.NewParams(seed)
			h, err := choice.Build(headEnv(kind, params))
			return h, params, err
		}
		if _, _, err := build(1); err != nil {
			refusals = append(refusals, err.Error())
			continue
		}
		served++
		check := checkHead
		if h, _, _ := build(1); isFitter(h) {
			check = checkFitter
		}
		t.Run(kind.String(), func(t *testing.T) { check(t, kind, build) })
	}
	if served == 0 {
		t.Fatalf("head %q has no kind of outputs:\n%s", name, strings.Join(refusals, "\n"))
	}
}

// headEnv returns the env of a head for a kind of outputs.
func headEnv(kind *outputs.Kind, params nn.Params) heads.Env {
	env := heads.Env{Task: "task", Name: "head", Output: kind, Labels: labels, Width: width,
		Dropout: 0.1, Training: heads.Training{Units: 6, Counts: []int{2, 2, 2}, Mean: 0.9, Deviation: 0.8},
		Attention: attention, Params: params.In("heads").In("head")}
	if kind.HidesTokens {
		env.Mask, env.Words = 1, params.In("encoder").Normal("words", 1, len(labels), width)
	}
	return env
}

// sampled lists the kinds of outputs that have test data.
func sampled() []*outputs.Kind {
	return slices.DeleteFunc(outputs.Kinds(), func(k *outputs.Kind) bool { return k.Sample() == nil })
}

func checkHead(t *testing.T, kind *outputs.Kind, m maker) {
	texts := labelledTexts(kind)
	t.Run("it trains: the loss falls", func(t *testing.T) { checkTrains(t, m, pack(texts...)) })
	t.Run("gradients agree with differences of the loss, dropout on", func(t *testing.T) {
		checkGradients(t, m, pack(texts...), !kind.Sample().Detached)
	})
	t.Run("a frozen input changes no gradient", func(t *testing.T) { checkFrozen(t, m, pack(texts...)) })
	t.Run("a text of one token has a prediction", func(t *testing.T) { checkOneToken(t, m, kind) })
	t.Run("unlabelled texts have predictions but no loss", func(t *testing.T) {
		checkUnlabelled(t, m, kind, texts)
	})
	t.Run("the loss is a sum over texts, or compares them", func(t *testing.T) { checkSum(t, m, texts) })
	t.Run("the loss does not change the logits", func(t *testing.T) { checkLogitsUnchanged(t, m, pack(texts...)) })
	t.Run("predictions are of the required kind",
		func(t *testing.T) { checkKinds(t, m.untrained(t), kind, pack(texts...)) })
	t.Run("it saves, loads and predicts the same", func(t *testing.T) { checkSaved(t, m, pack(texts...)) })
	t.Run("predictions do not depend on the rest of the batch",
		func(t *testing.T) { checkCompany(t, m.untrained(t), texts) })
	if !kind.HidesTokens { // each window hides tokens of its own
		t.Run("a text in two windows is one example", func(t *testing.T) {
			checkWindows(t, m.untrained(t), kind, texts)
			checkGradients(t, m, packWindows(kind, 1.5, texts...), !kind.Sample().Detached)
		})
	}
	t.Run("it reads the states that Reads returns, and no others",
		func(t *testing.T) { checkReads(t, m.untrained(t), pack(texts...)) })
	t.Run("NaN does not make it panic", func(t *testing.T) { checkNaN(t, m.untrained(t), pack(texts...)) })
}

// checkFitter checks a head that is a Fitter.
func checkFitter(t *testing.T, kind *outputs.Kind, m maker) {
	texts := labelledTexts(kind)
	fitted := func(t *testing.T) subject {
		s := m.subject(t, 1)
		s.fit(t, pack(texts...))
		return s
	}
	t.Run("fitting changes what it predicts", func(t *testing.T) {
		b := pack(texts...)
		without, with := m.untrained(t), fitted(t)
		if reflect.DeepEqual(without.Predict(without.run(t, b, false, false).logits),
			with.Predict(with.run(t, b, false, false).logits)) {
			t.Error("it predicts the same: fitted values must be in its env's Params")
		}
	})
	t.Run("it has no loss", func(t *testing.T) {
		b := pack(texts...)
		s := fitted(t)
		if p := s.run(t, b, true, true); p.loss != nil || s.Units(b.gold) != 0 {
			t.Error("a head that is fitted learns nothing by gradients")
		}
	})
	t.Run("predictions are of the required kind",
		func(t *testing.T) { checkKinds(t, fitted(t), kind, pack(texts...)) })
	t.Run("it saves, loads and predicts the same",
		func(t *testing.T) { checkLoaded(t, fitted(t), m.subject(t, 2), pack(texts...)) })
	t.Run("predictions do not depend on the rest of the batch",
		func(t *testing.T) { checkCompany(t, fitted(t), texts) })
	t.Run("a text in two windows is one example", func(t *testing.T) { checkWindows(t, fitted(t), kind, texts) })
	t.Run("NaN does not make it panic", func(t *testing.T) { checkNaN(t, fitted(t), pack(texts...)) })
}

func isFitter(h heads.Head) bool {
	_, fits := h.(heads.Fitter)
	return fits
}

// untrained makes the head once.
func (m maker) untrained(t *testing.T) subject { t.Helper(); return m.subject(t, 1) }
