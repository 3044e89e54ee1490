package config

import (
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// SkipBadLoss is the value of on_bad_loss that leaves out the update of a step with a bad loss.
const SkipBadLoss = "skip"

// rateKeys are the keys of the learning rate.
var rateKeys = []string{"learning_rate", "head_learning_rate", "layer_decay", "lr_scheduler", "warmup_steps",
	"warmup_ratio"}

// computedRate rejects keys of the learning rate beside an optimizer that computes it.
func (d *decoding) computedRate(s *plugin.Section, t *Training) {
	if !multitask.ComputesRate(t.Optimizer.Options) || !d.files { // a run trained with it still opens
		return
	}
	for _, key := range rateKeys {
		if s.Has(key) {
			d.mistakes.Add(s.At(key).Place,
				"training: %s: no effect: the optimizer computes the learning rate; leave out %s", key, key)
		}
	}
}
