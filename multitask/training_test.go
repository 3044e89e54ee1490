package multitask

import (
	"context"
	"slices"
	"testing"
)

func TestUpdatesByChosenBatchesAreTrains(t *testing.T) {
	const freeze, dropout, examples = "none", 0.1, 4
	plan := smallPlan()
	plan.BatchSize, plan.Epochs, plan.NeverEvaluate = examples, 3, true

	// A single group, whose texts make one batch: what Train draws is that batch, in an order by chance.
	trained := smallModel(t, freeze, dropout)
	trained.Groups = trained.Groups[:1]
	data := smallData(trained, examples)
	var want []float64
	if err := Train(context.Background(), trained, data, plan, func(event any) error {
		want = append(want, event.(Step).Loss)
		return nil
	}); err != nil {
		t.Fatal(err)
	}

	stepped := smallModel(t, freeze, dropout)
	stepped.Groups = stepped.Groups[:1]
	iterators, err := newBatchIterators(stepped, data, plan)
	if err != nil {
		t.Fatal(err)
	}
	training := stepping(t, stepped, plan, plan.Epochs)
	var got []float64
	for range plan.Epochs {
		report, err := training.Update([]Batch{{0, iterators[0].next()}})
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, report.Loss)
	}
	if !slices.Equal(got, want) {
		t.Errorf("losses %v, want Train's %v", got, want)
	}
	for i, w := range stepped.Params.All() {
		if !slices.Equal(w.Data, trained.Params.All()[i].Data) {
			t.Errorf("%s differs from what Train makes of it", w.Name)
		}
	}
}

func TestUpdateBeyondTheLastPanics(t *testing.T) {
	m := smallModel(t, "none", 0)
	training := stepping(t, m, smallPlan(), 1)
	batch := []Batch{{1, smallData(m, 2)[1].Train}}
	if _, err := training.Update(batch); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if got, want := recover(), "multitask: step 2 of 1"; got != want {
			t.Errorf("panic %v, want %s", got, want)
		}
	}()
	training.Update(batch)
}
