package run

import (
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/multitask"
)

// lists stands for the lists of tasks and of their heads among the beginnings of keys.
const lists = "lists of tasks and heads"

// causesOf are the beginnings of the keys that a part of a state other than parameters depends on.
var causesOf = map[string][]string{
	multitask.OfOrder:     {lists, "model.keep_tasks", "training.rehearse"},
	multitask.OfTasks:     {lists, "model.keep_tasks", "training.rehearse"},
	multitask.OfOptimizer: {"training.optimizer", "training.ema"},
	multitask.OfSampler:   {lists, "training.sampling", "training.rehearse", "model.keep_tasks"},
	multitask.OfWeighting: {lists, "training.weighting", "training.rehearse", "model.keep_tasks"},
	multitask.OfPosition: {lists, "training.num_epochs", "training.max_steps", "training.rehearse",
		"model.keep_tasks"},
}

// sizeless are the last parts of keys of a model on which its parameters do not depend.
var sizeless = []string{"dropout", "weight", "label_smoothing", "focal_gamma", "threshold", "tune"}

// mayCause reports whether a misfit may follow from another value of a key.
func mayCause(key string, m multitask.Misfit) bool {
	starts := causesOf[m.Of]
	if m.Of == multitask.OfParams {
		starts = causesOfParams(m.Params)
		if slices.Contains(sizeless, key[strings.LastIndexByte(key, '.')+1:]) || strings.Contains(key, ".data.") {
			return false
		}
	}
	return slices.ContainsFunc(starts, func(start string) bool {
		return start == lists && isList(key) || key == start || strings.HasPrefix(key, start+".")
	})
}

// causesOfParams returns the beginnings of the keys that parameters depend on, also on whether they learn.
func causesOfParams(names []string) []string {
	all := []string{lists, "model.keep_tasks", "training.rehearse"}
	for _, name := range names {
		switch parts := strings.SplitN(name, ".", 4); {
		case parts[0] == "encoder":
			all = append(all, "model.base_model", "model.encoder", "model.freeze", "model.lora", "tokenizer")
		case parts[0] == "fusion":
			all = append(all, "model.fusion", "model.freeze")
		case parts[0] == "heads" && len(parts) == 4:
			task := "tasks." + parts[1]
			all = append(all, task+".heads."+parts[2], task+".type", task+".labels")
		default:
			all = append(all, "model", "tasks")
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
