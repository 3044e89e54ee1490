package config

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// decoding builds an experiment from a file's sections.
type decoding struct {
	e          *Experiment
	mistakes   plugin.Mistakes
	files      bool            // the files that the experiment names must exist
	absent     int             // mistakes about data files that do not exist
	base       *plugin.Section // experiment file of the base run; nil: none
	kept       *plugin.Section // entry of the kept task whose keys are read; nil: none
	baseLength int             // max_length of the base run
	badSampler bool            // training.sampling has mistakes
}

func (d *decoding) warn(at plugin.Place, format string, args ...any) {
	d.e.Warnings = append(d.e.Warnings, plugin.Warning(at, format, args...))
}

func (d *decoding) experiment(root *plugin.Section) {
	top := experimentDefaults
	stem := strings.TrimSuffix(filepath.Base(d.e.Path), filepath.Ext(d.e.Path))
	root.Decode("experiment", &top, &d.mistakes)
	if root.Kind != plugin.Mapping {
		return
	}
	d.e.Seed = top.Seed
	d.e.JengaNLP = isJengaNLP(root)
	if d.e.ProjectName = top.ProjectName; root.Has("project_name") {
		d.checkName("project_name", root.At("project_name"))
	} else if d.e.ProjectName = stem; !isName.MatchString(stem) {
		d.mistakes.Add(root.Place, "experiment without a project_name; %s", nameRule)
	}

	before := d.mistakes.Len()
	d.model(orEmpty(top.Model, root))
	d.tokenizer(orEmpty(top.Tokenizer, root))
	d.e.ModelMistaken = d.mistakes.Len() > before
	d.tasks(d.withKept(orEmpty(top.Tasks, root), root))
	d.training(orEmpty(top.Training, root))
	d.keepTasks()
	d.sampling()
	d.losses()
	d.sums()
}

// losses requires a head with a loss and a weight above 0, and enough examples in a batch for heads that compare them.
func (d *decoding) losses() {
	if !d.files { // a run trained with it still opens
		return
	}
	learning, weighted := 0, 0
	for _, task := range d.e.Tasks {
		for _, head := range task.Heads {
			if head.learns() {
				learning++
				if head.Weight > 0 {
					weighted++
				}
			}
		}
	}
	if err := d.e.CheckPairs(); err != nil {
		d.mistakes.Add(d.e.Place("training.batch_size"), "%v", err)
	}
	if learning > 0 && weighted == 0 {
		d.mistakes.Add(d.e.Tasks[0].Place,
			"the weights of all heads are 0, so that nothing is learned; leave one above 0")
	}
}

// orEmpty returns s, or an empty section at the place of within if s is nil or null.
func orEmpty(s, within *plugin.Section) *plugin.Section {
	if s == nil || s.Kind == plugin.Null {
		return &plugin.Section{Place: within.Place}
	}
	return s
}

// isName matches names, which become file names, keys of checkpoints and parts of --set's paths.
var isName = regexp.MustCompile(`^[\pL\pM\pN_]([\pL\pM\pN_ -]{0,62}[\pL\pM\pN_-])?$`)

const nameRule = "a name has 1 to 64 letters, digits, _, - or blanks within"

func (d *decoding) checkName(what string, s *plugin.Section) {
	if s.Kind < plugin.List && !isName.MatchString(s.Text) {
		d.mistakes.Add(s.Place, "%s: want a name, have %s; %s", what, s, nameRule)
	}
}

func (d *decoding) model(s *plugin.Section) {
	m := modelDefaults
	s.Decode("model", &m, &d.mistakes)

	switch {
	case m.BaseModel != nil && m.BaseModel.Kind != plugin.Null:
		d.e.Model.BaseModel = d.baseModel(m.BaseModel)
	case s.Kind == plugin.Null:
		d.mistakes.Add(s.Place, "experiment without a model; %s", modelRule())
	case s.Kind == plugin.Mapping && !s.Has("encoder"):
		d.mistakes.Add(s.Place, "model: neither base_model nor encoder; %s", modelRule())
	}
	if m.BackboneType != "text" {
		d.mistakes.Add(s.At("backbone_type").Place, "model: %s",
			plugin.Unknown("backbone_type", m.BackboneType, []string{"text"}))
	}
	d.e.Model.Dropout, d.e.Model.DropoutSet = m.Dropout, s.Has("dropout") || !s.Has("base_model")
	d.freeze(m.Freeze)
	d.lora(d.inheritLoRA(m.LoRA))
	d.inheritParts(s, &m)
	d.e.Model.Encoder = encoders.Registry().Choose(m.Encoder, encoderType(d.e.Model.BaseModel.Name), nil, &d.mistakes)
	d.e.Model.EncoderOfBase = d.e.Model.Encoder.Place == (plugin.Place{})
	if d.e.Model.BaseModel.given() {
		d.checkBase(s.At("encoder"))
	}
	d.e.Model.Fusion = fusion.Registry().Choose(m.Fusion, fusion.Registry().Default(), nil, &d.mistakes)
}

// modelRule describes a model section, for errors.
func modelRule() string {
	const rule = "base_model is a folder or an .onnx file of weights, encoder: {type: %s} is trained from scratch"
	return fmt.Sprintf(rule, encoders.Registry().Default())
}

func (d *decoding) tokenizer(s *plugin.Section) {
	t := tokenizerDefaults
	d.inheritLength(s, &t)
	s.Decode("tokenizer", &t, &d.mistakes)
	d.e.Tokenizer.MaxLength = t.MaxLength
	if !t.Truncation {
		d.warn(s.At("truncation").Place, "truncation: false has no effect: texts are truncated at max_length")
	}
	for _, key := range []string{"padding", "pad_token_id"} {
		if s.Has(key) {
			d.warn(s.At(key).Place, "%s has no effect: nothing is padded", key)
		}
	}

	if d.e.Model.BaseModel.given() {
		for _, key := range []string{"train", "type", "vectors"} {
			if at := s.At(key); s.Has(key) && at.Kind != plugin.Null {
				d.mistakes.Add(at.Place,
					"tokenizer: %s: the base model has a tokenizer; leave out one of %s and base_model", key, key)
			}
		}
		return
	}
	own := &d.e.Tokenizer
	own.Type, own.Train = t.Type, vocabularyDefaults
	if t.Type == WholeWords {
		own.Train.VocabSize = 30000
	}
	if t.Train != nil && t.Train.Kind != plugin.Null {
		t.Train.Decode("tokenizer: train", &own.Train, &d.mistakes)
	}
	own.Vectors = d.dataFile(t.Vectors, "tokenizer", "vectors")
	if own.Vectors.given() && t.Type != WholeWords {
		d.mistakes.Add(own.Vectors.Place,
			"tokenizer: vectors: unexpected with type: %s; vectors are of whole words, want type: words",
			t.Type)
	}
}

// Types of tokenizers that are trained on an experiment's texts.
const (
	WordPieces = "wordpiece"
	WholeWords = "words"
)

func (d *decoding) training(s *plugin.Section) {
	o := trainingDefaults
	s.Decode("training", &o, &d.mistakes)
	t := o.Training
	t.Optimizer = multitask.Optimizers().Choose(o.Optimizer, multitask.Optimizers().Default(), nil, &d.mistakes)
	t.Scheduler = multitask.Schedules().Choose(o.Scheduler, multitask.Schedules().Default(), nil, &d.mistakes)
	before := d.mistakes.Len()
	t.Sampling = multitask.Samplers().Choose(o.Sampling, multitask.Samplers().Default(), nil, &d.mistakes)
	d.badSampler = d.mistakes.Len() > before
	t.Weighting = multitask.Weightings().Choose(o.Weighting, multitask.Weightings().Default(), nil, &d.mistakes)
	if s.Has("output_dir") {
		t.OutputDir = d.relative(o.OutputDir, "training: output_dir")
	}
	if t.Precision == BF16 && d.files { // a run trained in bf16 predicts on every machine
		if err := checkBFloat16(); err != nil {
			d.mistakes.Add(d.e.Place("training.precision"),
				"training: precision: bf16: %w; leave precision out, or float32", err)
		}
	}
	if s.Has("cache_file") {
		d.cacheFile(o.CacheFile, &t)
	}
	if t.Device != "auto" && t.Device != "cpu" {
		d.warn(s.At("device").Place, "device %q is ignored: training runs on the CPU", t.Device)
	}
	if service := t.Logging.Service; service != "" && service != "none" {
		d.warn(s.At("logging").Place, "logging service %q is not supported: metrics go to the run folder's "+
			"metrics.jsonl",
			service)
	}
	if t.EvalStrategy != "steps" && d.lacksEffect(s, "eval_steps", "eval_strategy") {
		d.mistakes.Add(s.At("eval_steps").Place,
			"training: eval_steps: no effect with eval_strategy: %s; leave it out, or set eval_strategy: steps",
			t.EvalStrategy)
	}
	d.computedRate(s, &t)
	if t.LossLimit > 0 && t.LossLimit <= 1 {
		d.mistakes.Add(s.At("loss_limit").Place,
			"training: loss_limit: want a number above 1, or 0 for none, have %v", t.LossLimit)
	}
	d.saving(s, &t)
	if t.EvalStrategy == "no" {
		d.withoutEvaluation(s, &t)
	}
	d.e.Training = t
	d.metric(s)
}

// BF16 is the precision of encoders that learn in bfloat16.
const BF16 = "bf16"

// checkBFloat16 returns an error if this machine cannot train in BF16. Tests replace it.
var checkBFloat16 = kernel.BFloat16.Check

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

// lacksEffect reports whether a key that has no effect with a strategy, the value of another key, is a mistake: a run
// trained with it still opens, and an option of a file may lose its effect by a strategy of --set.
func (d *decoding) lacksEffect(s *plugin.Section, key, strategy string) bool {
	replaced := s.Has(strategy) && ofSet(s.At(strategy).Place) && s.Has(key) && !ofSet(s.At(key).Place)
	return d.files && s.Has(key) && !replaced
}

// saving rejects options of checkpoints that contradict each other, and warns of those that have no effect: predictions
// are made by the best checkpoint.
func (d *decoding) saving(s *plugin.Section, t *Training) {
	hasNoEffect := func(key string) bool { return d.lacksEffect(s, key, "save_strategy") }
	for _, option := range []struct{ key, strategy string }{{"save_steps", "steps"}, {"save_minutes", "minutes"}} {
		if t.SaveStrategy != option.strategy && hasNoEffect(option.key) {
			d.mistakes.Add(s.At(option.key).Place,
				"training: %s: no effect with save_strategy: %s; leave it out, or set save_strategy: %s",
				option.key, t.SaveStrategy, option.strategy)
		}
	}
	if t.SaveTotalLimit != 1 && t.SaveStrategy == SaveNever && hasNoEffect("save_total_limit") {
		d.mistakes.Add(s.At("save_total_limit").Place, "training: save_total_limit: no effect with save_strategy: no; "+
			"leave it out, or set save_strategy: epoch, steps or minutes")
	}
	if !t.LoadBestModelAtEnd && t.EvalStrategy != "no" {
		d.warn(s.At("load_best_model_at_end").Place,
			"load_best_model_at_end: false has no effect: predictions are made by the best model; the folder last "+
				"has the last one")
	}
}

// withoutEvaluation rejects options that need evaluations, and resets those that have lost them by --set.
func (d *decoding) withoutEvaluation(s *plugin.Section, t *Training) {
	if t.LoadBestModelAtEnd && d.lacksEffect(s, "load_best_model_at_end", "eval_strategy") {
		d.mistakes.Add(s.At("load_best_model_at_end").Place,
			"training: load_best_model_at_end: there is no best model without evaluations; eval_strategy is no")
	}
	if t.EarlyStoppingPatience > 0 && d.lacksEffect(s, "early_stopping_patience", "eval_strategy") {
		d.mistakes.Add(s.At("early_stopping_patience").Place,
			"training: early_stopping_patience: no effect without evaluations; eval_strategy is no")
	}
	t.LoadBestModelAtEnd, t.EarlyStoppingPatience = false, 0
}
