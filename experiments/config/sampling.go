package config

import (
	"github.com/jenga-nlp/jenga/multitask"
)

// sampling reports options of the sampler that do not fit the tasks, such as a name that no task has. It makes one for
// the groups of tasks that are trained and not rehearsed, as the training does.
func (d *decoding) sampling() {
	choice := d.e.Training.Sampling
	if !d.files || d.badSampler || !d.named() {
		return
	}
	var env multitask.SamplerEnv
	for _, group := range d.e.Groups() {
		if d.e.KeepsAll(group) {
			continue
		}
		var names []string
		for _, number := range group {
			names = append(names, d.e.Tasks[number].Name)
		}
		env.Groups, env.Tasks = append(env.Groups, names[0]), append(env.Tasks, names)
	}
	_, err := choice.Build(env)
	d.mistakes.Append(err)
}

// named reports whether all tasks have a name of their own, and each same_as is one of them.
func (d *decoding) named() bool {
	first := map[string]string{} // task → the one that it reads the texts of
	for _, task := range d.e.Tasks {
		if _, duplicate := first[task.Name]; duplicate || task.Name == "" {
			return false
		}
		first[task.Name] = task.Data.SameAs
	}
	for name := range first {
		for n := 0; first[name] != ""; n++ {
			if name = first[name]; n == len(first) {
				return false
			}
		}
		if _, known := first[name]; !known {
			return false
		}
	}
	return true
}
