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

	features := make([][]float32, len(chosen)) // by example, so that the result does not depend on batches
	err := m.forEachBatch(ctx, g, chosen, plan.BatchSize, plan.BatchTokens,
		func(pass *nn.Pass, numbers []int, _ *corpus.Batch, a forwarded) error {
			if err := pass.Forward(); err != nil {
				return err
			}
			for i, row := range fitter.Features(a.logits[h]) {
				features[numbers[i]] = row
			}
			return nil
		})
	if err != nil || len(features) == 0 {
		return err
	}
	fitter.Fit(features)
	return nil
}
