package multitask

import (
	"errors"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/nn"
)

// makeStores allocates gradients and the stores of the optimizer's state.
func (t *Training) makeStores() error {
	if err := t.plan.CheckWeighting(t.model.Model); err != nil {
		return err
	}
	tasks := 0
	if t.weighting.byGradients != nil {
		tasks = len(t.model.tasks())
	}
	t.host = nn.NewHostStore(t.model.Params.All(), t.plan.optimizer().New(t.plan.WeightDecay))
	if tasks > 0 {
		t.host.SeparateTasks(tasks, t.model.shared())
	}
	if t.shards.own > 1 {
		t.host.SeparateShards(t.shards.own)
	}
	if t.plan.RoundGradients {
		t.host.RoundGradients()
	}
	rates, err := t.plan.rates(t.model.Model)
	if err != nil {
		return err
	}
	t.host.SetRates(rates)
	if t.plan.Average > 0 {
		t.host.Average(t.plan.Average)
	}
	t.stores = []nn.Store{t.host}

	if err := t.makeResidentStore(tasks); err != nil {
		return err
	}
	return t.makeExchange(tasks)
}

// makeResidentStore makes the store of an encoder with a memory of its own that learns, with the gradients of so many
// tasks.
func (t *Training) makeResidentStore(tasks int) error {
	resident, ok := t.model.Encoder.(encoders.Resident)
	if !ok || t.frozen {
		return nil
	}
	if t.shards.all > 1 {
		return errors.New("gradients of an encoder with a memory of its own are not summed over shards")
	}
	if t.plan.optimizer() != Optimizer(defaultAdamW) {
		return errors.New("an encoder with a memory of its own is updated by AdamW with its default options")
	}
	if t.plan.RoundGradients {
		return errors.New("gradients of an encoder with a memory of its own are not rounded to bfloat16")
	}
	if t.plan.Average > 0 {
		return errors.New("an encoder with a memory of its own has no running means of its parameters")
	}
	store := resident.Store(t.plan.WeightDecay, tasks)
	if _, ok := store.(nn.TaskStore); tasks > 0 && !ok {
		return errors.New("the encoder does not keep gradients by task, which the weighting combines")
	}
	t.stores = append(t.stores, store)
	return nil
}

// makeExchange makes what the ranks exchange, if there are several, with the gradients of so many tasks.
func (t *Training) makeExchange(tasks int) (err error) {
	if t.plan.Ranks == nil {
		return nil
	}
	if t.plan.RoundGradients {
		t.plan.Ranks.RoundSums()
	}
	t.reducing = t.model.reducing(t.host)
	var shared []*nn.Param
	if tasks > 0 { // those of shared parameters are summed task by task
		shared = t.host.Shared()
		t.reducing = slices.DeleteFunc(t.reducing, func(w *nn.Param) bool { return slices.Contains(shared, w) })
	}
	if t.exchange, err = newExchange(t.plan, t.host, t.reducing); err != nil {
		return err
	}
	t.exchange.shared = bucketsOf(shared)
	return nil
}

// shared returns the parameters in the tree that all tasks share.
func (m *Model) shared() []*nn.Param {
	return append(EncoderParams(m.Params).All(), fusion.DescriptionOf(m.Fusion).Shared...)
}
