package multitask

import (
	"context"
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Logits returns the logits of the heads of group g that are heads.Calibrators, for examples whose Windows are set:
// [heads][examples][windows][labels], nil for other heads. A logit that is not finite is an error. batchSize,
// batchTokens and done are those of Evaluate.
func (m *Model) Logits(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	done func(n int)) ([][][][]float32, error) {
	of := g.Heads()
	all := make([][][][]float32, len(of))
	for h, head := range of {
		if heads.CalibratorOf(head.Head) != nil {
			all[h] = make([][][]float32, len(examples))
		}
	}
	batches := evaluationBatches(lengths(examples), batchSize, batchTokens)
	visit := func(pass *nn.Pass, at int, _ *corpus.Batch, a forwarded) error {
		if err := pass.Forward(); err != nil {
			return err
		}
		for h, head := range of {
			if all[h] == nil {
				continue
			}
			for i, windows := range heads.WindowLogits(a.logits[h]) {
				e := batches[at][i]
				if c, ok := notFinite(windows); ok {
					return fmt.Errorf("%s: head %q: the logit of label %q is not a finite number", examples[e].Place,
						head.Name, head.Labels.Name(c))
				}
				all[h][e] = windows
			}
		}
		if done != nil {
			done(len(batches[at]))
		}
		return nil
	}
	return all, cachedModel{Model: m}.forEachBatch(ctx, g, examples, batches, visit)
}

// notFinite returns the first label with a logit that is not finite.
func notFinite(windows [][]float32) (label int, ok bool) {
	for _, z := range windows {
		if c := floats.NotFinite(z); c >= 0 {
			return c, true
		}
	}
	return 0, false
}
