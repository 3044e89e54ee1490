package config

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/plugin"
)

// Training is the training section. Its tags declare the keys, except those that choose parts or name paths, which
// trainingOptions declares.
type Training struct {
	multitask.Options `yaml:",inline"`

	EvalStrategy string `yaml:"eval_strategy" choice:"epoch|steps|no" doc:"when dev is evaluated and the model saved"`
	// number of updates between evaluations, with eval_strategy: steps
	EvalSteps int `yaml:"eval_steps" range:"[1,)"`

	// when last/ is saved, with the state from which jenga train --resume goes on, beside after each evaluation: at the
	// end of each epoch, every save_steps updates or every save_minutes; no: never, and no checkpoint has that state,
	// but for one that a signal leaves
	SaveStrategy string `yaml:"save_strategy" choice:"epoch|steps|minutes|no"`
	// number of updates between checkpoints, with save_strategy: steps
	SaveSteps int `yaml:"save_steps" range:"[1,)"`
	// number of minutes between checkpoints, with save_strategy: minutes
	SaveMinutes float64 `yaml:"save_minutes" range:"(0,)"`
	// number of checkpoints that training can be resumed from, last/ among them; earlier ones are in
	// checkpoints/step-N, and the oldest are removed; 0: all are kept
	SaveTotalLimit int `yaml:"save_total_limit" range:"[0,)"`
	// whether tasks/NAME has the best checkpoint for each task by its own main metric; false: there is none but best/
	// and last/
	TaskBests bool `yaml:"save_task_bests"`

	// for files of Jenga-NLP, no effect: predictions are made by the best checkpoint
	LoadBestModelAtEnd bool             `yaml:"load_best_model_at_end" listed:"no"`
	Selection          report.Selection `yaml:",inline"`
	Reversed           bool             `yaml:"-"` // Selection.Higher contradicts the metric

	// number of evaluations without a new best after which training ends; 0: off
	EarlyStoppingPatience int `yaml:"early_stopping_patience" range:"[0,)"`

	OutputDir string `yaml:"-"` // run folder; "": runs/PROJECT_NAME
	// MiB of memory for the states of a frozen encoder, which are computed once
	CacheMemory int    `yaml:"cache_memory" range:"[0,16777216]"`
	NoCacheFile bool   `yaml:"-"` // cache_file: false: states beyond CacheMemory are computed each time
	CacheFolder string `yaml:"-"` // of the file for states beyond CacheMemory; "": the run folder

	// alone: each task without a teacher of its own is trained alone first, by the same options on its own examples, in
	// RUN/teachers/TASK, and then teaches the training of all
	Teachers string `yaml:"teachers" choice:"none|alone"`
	// texts of no task, which teachers label too; without files there are none
	Unlabelled Unlabelled `yaml:"-"`
	// type of teachers' answers in their file, in the run folder; int8 takes a quarter of the disk
	TeacherAnswers string `yaml:"teacher_answers" choice:"float32|int8"`
	// states: the encoder learns, beside what teachers answer, the last states of that of model.teacher, by a linear
	// projection of its own: the mean squared error of each token (Jiao et al. 2020, "TinyBERT"). Both have the same
	// tokenizer
	Match string `yaml:"match" choice:"none|states"`

	// what the encoder is trained on: cpu, the processor, or cuda:N, the CUDA device number N, as docs/gpu.md says; auto
	// is cuda:0 where that is there and has all that the experiment asks for, else cpu
	Device string `yaml:"device" takes:"auto, cpu or cuda:N"`
	// for files of Jenga-NLP, no effect: metrics are in the run folder's metrics.jsonl
	Logging Logging `yaml:"logging" listed:"no"`
	// number of updates between lines of the run's metrics.jsonl
	LoggingSteps int `yaml:"logging_steps" range:"[1,)"`

	// how gradients change weights, with its own keys, as jenga parts optimizer lists them
	Optimizer plugin.Choice[struct{}, updates.Optimizer] `yaml:"optimizer"`
	// the learning rate after the warmup, with its own keys, as jenga parts lr_scheduler lists them
	Scheduler plugin.Choice[updates.ScheduleEnv, updates.Schedule] `yaml:"lr_scheduler"`
	// which task's batch trains next, with its own keys, as jenga parts sampling lists them
	Sampling plugin.Choice[samplers.Env, samplers.Sampler] `yaml:"sampling"`
	// how the losses are combined into one, with its own keys, as jenga parts weighting lists them
	Weighting plugin.Choice[weightings.Env, weightings.Weighting] `yaml:"weighting"`
}

// SaveNever is the save_strategy of runs that cannot be resumed.
const SaveNever = "no"

// DefaultCacheMemory is the default of training.cache_memory, in MiB.
const DefaultCacheMemory = 2048

// Logging is the mapping `training.logging` of files of Jenga-NLP: the service that receives the metrics. It has no
// effect here: the metrics are in the run folder's metrics.jsonl. A service other than `none` is a warning.
type Logging struct {
	Service        string `yaml:"service" takes:"a name" doc:"name of the service; no effect"`
	ExperimentName string `yaml:"experiment_name" takes:"a name" doc:"name of the experiment at the service; no effect"`
	TrackingURI    string `yaml:"tracking_uri" takes:"a URI" doc:"address of the service; no effect"`
}

// trainingOptions are the keys of `training`. An update is one step of the optimizer.
type trainingOptions struct {
	Training `yaml:",inline"`
	// metric of dev that selects the best checkpoint: eval_overall, the mean of all heads' main metrics, eval_loss,
	// eval_all_right, eval_TASK_loss, eval_TASK_HEAD_METRIC, …; {intent: 2, slots: 1} is the weighted mean of those
	// tasks' main metrics
	Metric *plugin.Section `yaml:"metric_for_best_model" takes:"a name or {TASK: WEIGHT}" default:"eval_overall"`
	// run folder, for checkpoints and metrics
	OutputDir *plugin.Section `yaml:"output_dir,omitempty" takes:"a path" default:"(runs/PROJECT_NAME)"`
	// files of texts without labels that teachers label too, in training alone: a path, a list of paths or patterns, or
	// a mapping of path, of the columns text, pair and words where they differ from those of the tasks' data, and of
	// the keys of data for how a file is written. A file whose name ends in none of a format that data reads, as .txt,
	// has a text in each line
	Unlabelled *plugin.Section `yaml:"unlabelled,omitempty" takes:"a path, a list of paths or {path: …}"`
	// folder of a temporary file for the states of a frozen encoder beyond cache_memory; true: the run folder, of
	// processes beside the first the system's temporary folder; false: no file, they are computed each time
	CacheFile *plugin.Section `yaml:"cache_file" takes:"true, false or a path" default:"true"`
}

// DefaultTraining returns the section training of a file that has none.
func DefaultTraining() (Training, error) {
	var mistakes plugin.Mistakes
	o := trainingDefaults
	new(plugin.Section).Decode("training", &o, &mistakes)
	o.Selection = report.Selection{Metric: report.Overall, Higher: true}
	return o.Training, mistakes.Err()
}

var trainingDefaults = trainingOptions{Training: Training{
	Options:      multitask.DefaultOptions,
	EvalStrategy: "epoch", EvalSteps: 500, LoadBestModelAtEnd: true,
	SaveStrategy: "epoch", SaveSteps: 500, SaveMinutes: 30, SaveTotalLimit: 1, TaskBests: true,
	CacheMemory: DefaultCacheMemory, Device: encoders.AutoDevice, LoggingSteps: 10,
	Teachers: "none", TeacherAnswers: "float32", Match: "none",
	Optimizer: updates.Optimizers().Unset(), Scheduler: updates.Schedules().Unset(),
	Sampling: samplers.Registry().Unset(), Weighting: weightings.Registry().Unset(),
}}

func (d *decoding) training(s *plugin.Section) {
	o := trainingDefaults
	s.Decode("training", &o, &d.mistakes)
	t := o.Training
	if s.Has("output_dir") {
		t.OutputDir = d.relative(o.OutputDir, "training: output_dir")
	}
	d.device(s, &t)
	if t.BFloat16 && d.files && (t.Device == encoders.CPU || encoders.CUDA == nil) { // a run predicts on every machine
		d.mistakes.Append(d.e.CheckBFloat16())
	}
	if s.Has("unlabelled") {
		t.Unlabelled = d.unlabelled(o.Unlabelled)
	}
	if s.Has("cache_file") {
		d.cacheFile(o.CacheFile, &t)
	}
	if service := t.Logging.Service; service != "" && service != "none" {
		d.warn(s.At("logging").Place, "logging service %q is not supported: metrics go to the run folder's "+
			"metrics.jsonl",
			service)
	}
	d.computedRate(s, &t)
	if t.LossLimit > 0 && t.LossLimit <= 1 {
		d.mistakes.Add(s.At("loss_limit").Place,
			"training: loss_limit: want a number above 1, or 0 for none, have %v", t.LossLimit)
	}
	d.strategies(s, &t)
	d.e.Training = t
}

// checkBFloat16 returns an error if this processor cannot train in BF16. Tests replace it.
var checkBFloat16 = kernel.BFloat16.Check

// CheckBFloat16 returns an error at the place of the precision if this processor cannot train in BF16.
func (e *Experiment) CheckBFloat16() error {
	if err := checkBFloat16(); err != nil {
		return &plugin.Mistake{Place: e.Place("training.precision"), Err: fmt.Errorf(
			"training: precision: bf16: %w; leave precision out, or float32", err)}
	}
	return nil
}

// cacheFile reads cache_file: true, false or the folder of a temporary file for the states of a frozen encoder beyond
// cache_memory.
func (d *decoding) cacheFile(s *plugin.Section, t *Training) {
	switch s.Kind {
	case plugin.Bool:
		t.NoCacheFile = s.Text != "true"
	case plugin.Text:
		t.CacheFolder = d.relative(s, "training: cache_file")
		if d.files && t.CacheFolder != "" && !runfolder.IsFolder(t.CacheFolder) {
			d.mistakes.Add(s.Place,
				"training: cache_file: folder %q not found; want a folder for a temporary file, or true for the run "+
					"folder, or false", s.Text)
		}
	default:
		d.mistakes.Add(s.Place, "training: cache_file: want true, false or a folder, have %s", s)
	}
}

// ofStrategies are the keys that have an effect with some values of a strategy alone; idle is the value that they may
// have with any.
var ofStrategies = []struct{ key, idle, strategy, values string }{
	{"eval_steps", "", "eval_strategy", "steps"}, {"save_steps", "", "save_strategy", "steps"},
	{"save_minutes", "", "save_strategy", "minutes"},
	{"save_total_limit", "1", "save_strategy", "epoch, steps or minutes"},
	{"early_stopping_patience", "0", "eval_strategy", "epoch or steps"},
	{"load_best_model_at_end", "false", "eval_strategy", "epoch or steps"},
}

// strategies rejects options that have no effect with the strategies of evaluation and of checkpoints, and warns of one
// that never has: predictions are made by the best checkpoint. A run trained with such an option still opens, and an
// option of a file may lose its effect by a strategy of --set.
func (d *decoding) strategies(s *plugin.Section, t *Training) {
	written := plugin.SectionOf(*t)
	for _, o := range ofStrategies {
		have := written.At(o.strategy).Text
		replaced := s.Has(o.strategy) && s.At(o.strategy).Place.Argument != "" && s.Has(o.key) &&
			s.At(o.key).Place.Argument == ""
		if d.files && s.Has(o.key) && !replaced && !strings.Contains(o.values, have) &&
			written.At(o.key).Text != o.idle {
			d.mistakes.Add(s.At(o.key).Place, "training: %s: no effect with %s: %s; leave it out, or set %[2]s: %[4]s",
				o.key, o.strategy, have, o.values)
		}
	}
	if t.EvalStrategy == "no" {
		t.LoadBestModelAtEnd, t.EarlyStoppingPatience = false, 0
	} else if !t.LoadBestModelAtEnd {
		d.warn(s.At("load_best_model_at_end").Place,
			"load_best_model_at_end: false has no effect: predictions are made by the best model; the folder last "+
				"has the last one")
	}
}

// sampling reports options of the sampler that do not fit the tasks, which have no mistakes, such as a name that no task
// has. It makes one for the groups of tasks that are trained and not rehearsed, as the training does.
func (d *decoding) sampling() {
	choice := d.e.Training.Sampling
	if !d.files || choice.Mistaken() {
		return
	}
	var env samplers.Env
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

// rateKeys are the keys that have no effect where the optimizer computes the learning rate.
var rateKeys = append([]string{"lr_scheduler"}, multitask.RateKeys...)

func (d *decoding) computedRate(s *plugin.Section, t *Training) {
	if !updates.ComputesRate(t.Optimizer) || !d.files { // a run trained with it still opens
		return
	}
	for _, key := range rateKeys {
		if s.Has(key) {
			d.mistakes.Add(s.At(key).Place,
				"training: %s: no effect: the optimizer computes the learning rate; leave out %s", key, key)
		}
	}
}

func (d *decoding) sums() {
	t := d.e.Training
	if bits.OnesCount(uint(t.Shards)) > 1 {
		d.mistakes.Add(d.e.Place("training.shards"), "training: shards: want a power of two, have %d", t.Shards)
	}
	if t.NativeSums && t.RoundGradients {
		d.mistakes.Add(d.e.Place("training.all_reduce"),
			"training: all_reduce: native sums float32; leave it out, or gradient_dtype: bf16")
	}
}

// CheckPairs returns an error where a head learns by comparing the examples of a batch, or of a shard of one, and these
// have less than two.
func (e *Experiment) CheckPairs() error {
	shards := max(1, e.Training.Shards)
	if e.Training.BatchSize/shards >= 2 {
		return nil
	}
	for _, task := range e.Tasks {
		for _, head := range task.Heads {
			switch {
			case !heads.TraitsOf(head.Part.Options).Compares:
			case shards == 1:
				return fmt.Errorf("training: batch_size is 1: head %q of task %q learns by comparing the examples of "+
					"a batch; want at least 2", head.Name, task.Name)
			default:
				return fmt.Errorf("training: batch_size is %d, in %d shards: head %q of task %q learns by comparing "+
					"the examples of a shard; want at least %d, or fewer training.shards", e.Training.BatchSize,
					shards, head.Name, task.Name, 2*shards)
			}
		}
	}
	return nil
}

func (f *writing) training() *plugin.Section {
	t := f.e.Training
	o := trainingOptions{
		Training: t, OutputDir: f.path(t.OutputDir), CacheFile: f.path(t.CacheFolder),
		Unlabelled: f.unlabelled(t.Unlabelled),
		Metric:     plugin.SectionOf(t.Selection.Metric),
	}
	if t.Selection.Weights != nil {
		o.Metric = plugin.SectionOf(t.Selection.Weights)
	}
	if t.CacheFolder == "" {
		o.CacheFile = plugin.SectionOf(!t.NoCacheFile)
	}
	s := plugin.SectionOf(o)
	for _, o := range ofStrategies {
		if o.idle == "" && s.At(o.strategy).Text != o.values {
			s.Remove(o.key)
		}
	}
	if !t.Reversed { // the metric implies it, also one of --set
		s.Remove("greater_is_better")
	}
	if !f.e.rehearsable() {
		s.Remove("rehearse")
	}
	if !f.e.Taught() {
		s.Remove(append([]string{"teachers"}, teacherKeys...)...)
	}
	if t.SaveStrategy == SaveNever {
		s.Remove("save_total_limit")
	}
	if t.TaskBests {
		s.Remove("save_task_bests")
	}
	if updates.ComputesRate(t.Optimizer) {
		s.Remove(rateKeys...)
	}
	return s
}
