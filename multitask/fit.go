package multitask

import (
	"context"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
)

// fitAll fits the heads that are heads.Fitters to features of training texts by the current model.
func (m cachedModel) fitAll(ctx context.Context, data []Data, plan Plan) error {
	for g := range m.Groups {
		for h, head := range m.Groups[g].Heads() {
			if fitter, fits := head.Head.(heads.Fitter); fits {
				if err := m.fit(ctx, &m.Groups[g], h, fitter, data[g].Train, plan); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fit fits head h of a group.
func (m cachedModel) fit(
	ctx context.Context, g *Group, h int, fitter heads.Fitter, train []*corpus.Example, plan Plan,
) error {
	var chosen []*corpus.Example
	for _, i := range fitter.Choose(gold(train, h)) {
		chosen = append(chosen, train[i])
	}

	batches := evaluationBatches(lengths(chosen), plan.BatchSize, plan.BatchTokens)
	rows := make([][][]float32, len(batches))
	err := m.forEachBatch(ctx, g, chosen, batches, func(pass *nn.Pass, at int, _ *corpus.Batch, a forwarded) error {
		if err := pass.Forward(); err != nil {
			return err
		}
		rows[at] = fitter.Features(a.logits[h])
		return nil
	})
	if err != nil || len(chosen) == 0 {
		return err
	}
	if err := m.gatherRows(batches, rows); err != nil {
		return err
	}
	features := make([][]float32, len(chosen)) // by example, so that the result does not depend on batches
	for at, numbers := range batches {
		for i, n := range numbers {
			features[n] = rows[at][i]
		}
	}
	fitter.Fit(features)
	return nil
}
