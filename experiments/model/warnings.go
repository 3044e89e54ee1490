package model

import (
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// warnIdle warns of options of model and training that have no effect on the encoder, or a harmful one.
func (b *builder) warnIdle() {
	e, m := b.Data.Experiment, b.Model
	warn := func(at plugin.Place, format string, args ...any) {
		b.Warnings = append(b.Warnings, plugin.Warning(at, format, args...))
	}
	about := m.Encoder.Describe()
	switch {
	case e.Training.Precision == config.BF16 && m.Frozen():
		warn(e.Place("training.precision"),
			"training: precision: bf16 has no effect: a frozen encoder computes in float32")
	case e.Training.Precision == config.BF16 && !about.MixedPrecision:
		warn(e.Place("training.precision"), "training: precision: bf16 has no effect: encoder %q computes in float32",
			e.Model.Encoder.Type)
	}
	switch {
	case e.Training.Recompute && m.Frozen():
		warn(e.Place("training.recompute"),
			"training: recompute has no effect: a frozen encoder keeps nothing of a batch")
	case e.Training.Recompute && !about.Recomputes:
		warn(e.Place("training.recompute"), "training: recompute has no effect: encoder %q keeps all of a batch",
			e.Model.Encoder.Type)
	}
	if !m.Frozen() {
		const effect = "training: %s has no effect: the encoder learns, so that its states are computed in each step"
		if e.Training.CacheMemory != config.DefaultCacheMemory {
			warn(e.Place("training.cache_memory"), effect, "cache_memory")
		}
		if e.Training.NoCacheFile || e.Training.CacheFolder != "" {
			warn(e.Place("training.cache_file"), effect, "cache_file")
		}
	}
	if e.Training.WarmupSteps > 0 && e.Training.WarmupRatio > 0 {
		warn(e.Place("training.warmup_ratio"), "training: warmup_ratio has no effect: warmup_steps: %d overrules it",
			e.Training.WarmupSteps)
	}
	if e.Model.Freeze == encoders.FreezeEmbeddings && e.Model.LoRA.Rank > 0 {
		warn(e.Place("model.freeze"),
			"model: freeze: embeddings has no effect: with lora nothing else of the encoder learns")
	}
	if b.EncoderPath == "" {
		if e.Model.Freeze != encoders.FreezeNone &&
			(e.Model.Freeze != encoders.FreezeEmbeddings || b.Data.Vectors == nil) {
			warn(e.Place("model.freeze"),
				"model: freeze: %s freezes random weights: the encoder is initialised randomly, without a base_model",
				e.Model.Freeze)
		}
		if e.Model.LoRA.Rank > 0 {
			warn(e.Place("model.lora"),
				"model: lora freezes random weights: the encoder is initialised randomly, without a base_model")
		}
	}
}
