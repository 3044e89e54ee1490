// Package config reads and writes experiment files. It locates data files but does not read them.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Experiment is the content of an experiment file, with every default filled in and every path resolved.
type Experiment struct {
	Path        string // of the file
	ProjectName string
	Seed        uint64
	Model       Model
	Tokenizer   Tokenizer
	Tasks       []Task
	Kept        []Task // of the base run, which are saved with the model but not trained; none where a run is opened
	Training    Training

	// Warnings name settings that have no effect, or an unexpected one, each with its place.
	Warnings []string
	// JengaNLP is true if the file uses only keys of Jenga-NLP. Wrong num_labels, frequent in such files, are then
	// warnings, not errors.
	JengaNLP bool

	// ModelMistaken is true if the sections model and tokenizer have mistakes.
	ModelMistaken bool

	root *plugin.Section // of the file, with the values of --set; nil where it was not read
}

// Model is the model section.
type Model struct {
	BaseModel  File     // folder or .onnx file of the weights; no name: trained from scratch
	BaseRun    *BaseRun // that base_model names, BaseModel being its encoder; nil: it names no run
	Dropout    float64
	DropoutSet bool          // else the base model's config.json applies
	Freeze     string        // none | embeddings | all | a number of layers
	Unfreeze   float64       // epochs between layers that begin to learn; 0: all learn from the start
	LoRA       encoders.LoRA // of rank 0: none
	Encoder    plugin.Choice[encoders.Env, encoders.Encoder]
	Fusion     plugin.Choice[fusion.Env, fusion.Fusion]

	EncoderOfBase bool // no encoder is named: Encoder is of the type in the base model's config.json
}

// Fixed reports whether the training of a task leaves the encoder as it is for the others.
func (m Model) Fixed() bool { return m.Freeze == encoders.FreezeAll || m.LoRA.PerTask }

// File is a path in an experiment file. Name is "" where there is none. Where several files are named, Name is their
// pattern or list, and Paths lists them.
type File struct {
	Name  string
	Place plugin.Place

	several *fileList // nil: Name is the path
}

// fileList is the files of a pattern or a list.
type fileList struct {
	paths   []string // as they are read
	entries []File   // of a list; nil: of a pattern
	folder  string   // where pattern was found; "": pattern is absolute or relative to the working directory
	pattern string   // as it is written
}

// given reports whether the experiment file has the key, even if its value is a mistake.
func (f File) given() bool { return f.Place != (plugin.Place{}) }

// Tokenizer is the tokenizer section.
type Tokenizer struct {
	MaxLength int // tokens of a text or pair, special tokens included
	// Set for an encoder trained from scratch, zero where the base model has a tokenizer:
	Type    string // wordpiece | words
	Train   Vocabulary
	Vectors File // of whole words, initial values of the embeddings; no name: initialised randomly
}

// Vocabulary has the options of training a tokenizer.
type Vocabulary struct {
	VocabSize int  `yaml:"vocab_size" range:"[100,1000000]" default:"(8000 or 30000)"`
	Lowercase bool `yaml:"lowercase" doc:"whether text is lowercased"`
}

// Task is one entry of tasks.
type Task struct {
	Name        string
	Place       plugin.Place
	Part        plugin.Choice[tasks.Env, tasks.Task]
	Data        Data
	Heads       []Head
	Labels      []string                  // for its heads without labels of their own; nil: those of the data
	LabelMaps   map[string]map[int]string // head → label number in the data → label
	Windowing   corpus.Windowing          // how long texts are truncated or split into windows
	HidesTokens bool                      // the task masks tokens of its texts
	From        string                    // task of the base run whose heads it takes over; "": none
	Keep        bool                      // it is a task of the base run, and not of this experiment
	Adapter     string                    // of the encoder, if a checkpoint has one for the task; see encoders.Env

	mistaken bool // its section has mistakes, apart from files that do not exist
}

// HeadNames returns the names of the task's heads.
func (t Task) HeadNames() []string {
	all := make([]string, len(t.Heads))
	for i, h := range t.Heads {
		all[i] = h.Name
	}
	return all
}

// Head is one entry of a task's heads.
type Head struct {
	Name      string
	Place     plugin.Place
	Part      plugin.Choice[heads.Env, heads.Head]
	Weight    float64  // of its loss
	NumLabels int      // 0: not given
	Labels    []string // in the order of their numbers; nil: the task's
}

// learns reports whether the head has a loss.
func (h Head) learns() bool { return !heads.TraitsOf(h.Part.Options).Fitted }

// Training is the training section. Its tags declare the keys, except those that choose parts or name paths, which
// trainingOptions declares.
type Training struct {
	LearningRate float64 `yaml:"learning_rate" range:"(0,)"`
	HeadRate     float64 `yaml:"head_learning_rate,omitempty" range:"(0,)" default:"(learning_rate)"`
	LayerDecay   float64 `yaml:"layer_decay" range:"(0,1]"`
	WeightDecay  float64 `yaml:"weight_decay" range:"[0,)"`
	BatchSize    int     `yaml:"batch_size" range:"[1,)"`
	BatchTokens  int     `yaml:"batch_tokens" range:"[0,)"`
	NumEpochs    int     `yaml:"num_epochs" range:"[1,)" doc:"number of passes over the training data"`
	MaxSteps     int     `yaml:"max_steps" range:"[0,)"`
	WarmupSteps  int     `yaml:"warmup_steps" range:"[0,)"`
	WarmupRatio  float64 `yaml:"warmup_ratio" range:"[0,1]" doc:"fraction of all updates until the peak"`
	EMA          float64 `yaml:"ema" range:"[0,1)"`
	MaxGradNorm  float64 `yaml:"max_grad_norm" range:"[0,)"`
	OnBadLoss    string  `yaml:"on_bad_loss" choice:"stop|skip"`
	LossLimit    float64 `yaml:"loss_limit" range:"[0,)"`

	GradientAccumulationSteps int    `yaml:"gradient_accumulation_steps" range:"[1,)"`
	Shards                    int    `yaml:"shards,omitempty" range:"[1,)" default:"(the number of processes)"`
	GradientDtype             string `yaml:"gradient_dtype" choice:"float32|bf16"`
	AllReduce                 string `yaml:"all_reduce" choice:"tree|native"`

	Rehearse float64 `yaml:"rehearse" range:"[0,1)"`

	Precision string `yaml:"precision" choice:"float32|bf16" doc:"of encoder products in training; sums are float32"`
	Recompute bool   `yaml:"recompute"`

	Optimizer plugin.Choice[struct{}, multitask.Optimizer]               `yaml:"-"`
	Scheduler plugin.Choice[multitask.ScheduleEnv, nn.Curve]             `yaml:"-"`
	Sampling  plugin.Choice[multitask.SamplerEnv, multitask.Sampler]     `yaml:"-"`
	Weighting plugin.Choice[multitask.WeightingEnv, multitask.Weighting] `yaml:"-"`

	EvalStrategy string `yaml:"eval_strategy" choice:"epoch|steps|no" doc:"when dev is evaluated and the model saved"`
	EvalSteps    int    `yaml:"eval_steps" range:"[1,)"`

	SaveStrategy   string  `yaml:"save_strategy" choice:"epoch|steps|minutes|no"`
	SaveSteps      int     `yaml:"save_steps" range:"[1,)"`
	SaveMinutes    float64 `yaml:"save_minutes" range:"(0,)"`
	SaveTotalLimit int     `yaml:"save_total_limit" range:"[0,)"`

	LoadBestModelAtEnd bool   `yaml:"load_best_model_at_end" listed:"no"`
	MetricForBestModel string `yaml:"-"`
	// MetricWeights are the weights of tasks whose mean the metric report.Weighted is; nil for any other.
	MetricWeights   map[string]float64 `yaml:"-"`
	GreaterIsBetter bool               `yaml:"greater_is_better" default:"(by the metric)"`
	Reversed        bool               `yaml:"-"` // GreaterIsBetter contradicts the metric

	EarlyStoppingPatience int `yaml:"early_stopping_patience" range:"[0,)"`

	OutputDir   string `yaml:"-"` // run folder; "": runs/PROJECT_NAME
	CacheMemory int    `yaml:"cache_memory" range:"[0,16777216]"`
	NoCacheFile bool   `yaml:"-"` // cache_file: false: states beyond CacheMemory are computed each time
	CacheFolder string `yaml:"-"` // of the file for states beyond CacheMemory; "": the run folder

	Device       string  `yaml:"device" listed:"no" takes:"a name"`
	Logging      Logging `yaml:"logging" listed:"no"`
	LoggingSteps int     `yaml:"logging_steps" range:"[1,)"`
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

// Read reads an experiment file. Each of sets, KEY=VALUE, overrules a value of the file: training.num_epochs=1,
// tasks.intent.heads.intent.type=linear. The error lists all mistakes in both; the experiment beside it, which may be
// nil, is only good for finding more mistakes, by its Readable tasks.
//
// Paths are relative to the file, those in sets to the working directory. Data files not found there are looked up
// below $JENGA_DATA, base models below $JENGA_MODELS and in the Hugging Face cache.
func Read(path string, sets []string) (*Experiment, error) { return read(path, sets, true) }

// Parse is Read of a file at path whose content is data.
func Parse(path string, data []byte, sets []string) (*Experiment, error) {
	return decode(path, data, sets, true)
}

// ReadTrained reads the experiment file of a trained run. The data it was trained on may be gone.
func ReadTrained(path string) (*Experiment, error) { return read(path, nil, false) }

func read(path string, sets []string, files bool) (*Experiment, error) {
	data, err := readStart(path)
	if err != nil {
		return nil, err
	}
	return decode(path, data, sets, files)
}

// decode returns the experiment in data, the content of a file at path. If files is true, the files that it names must
// exist.
func decode(path string, data []byte, sets []string, files bool) (*Experiment, error) {
	d := decoding{e: &Experiment{Path: path, ModelMistaken: true}, files: files}
	root := plugin.Parse(path, data, &d.mistakes)
	if root == nil {
		return nil, d.mistakes.Err()
	}
	for _, set := range sets {
		override(root, set, &d.mistakes)
	}
	d.e.root = root
	d.experiment(root)
	return d.e, d.mistakes.Err()
}

// readStart reads a file up to a limit above the one that Parse accepts: the file may be endless.
func readStart(path string) ([]byte, error) {
	const limit = 16 << 20 // bytes
	f, err := os.Open(path)
	switch {
	case path == "":
		return nil, errors.New("the name of the experiment file is empty; want a file such as experiment.yaml")
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", path)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	if runfolder.IsFolder(path) {
		return nil, fmt.Errorf("%s is a folder; want an experiment file, such as %s", path,
			filepath.Join(path, runfolder.ExperimentFile))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, pathless(err))
	}
	return data, nil
}

// pathless returns an error of package os without its path, for messages that already have it.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
