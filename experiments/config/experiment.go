// Package config reads and writes experiment files. Of data it finds the files, and reads none.
package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Experiment is what an experiment file says, every default filled in, every path found.
type Experiment struct {
	Path        string // of the file
	ProjectName string
	Seed        uint64
	Model       Model
	Tokenizer   Tokenizer
	Tasks       []Task
	Training    Training

	// Warnings say what has no effect, or another than its author may think, each with its place.
	Warnings []string
	// JengaNLP says that the file uses no key that Jenga-NLP has not: its num_labels are often wrong, and only
	// warned of.
	JengaNLP bool

	root *plugin.Section // of the file, with what --set gives; nil where it was not read
}

// Model is the model section.
type Model struct {
	BaseModel  File // folder or .onnx file of the weights; no name: from scratch
	Dropout    float64
	DropoutSet bool          // else the base model's own config holds
	Freeze     string        // none | embeddings | all | a number of layers
	LoRA       encoders.LoRA // of rank 0: none
	Encoder    plugin.Choice[encoders.Env, encoders.Encoder]
	Fusion     plugin.Choice[fusion.Env, fusion.Fusion]
}

// File is a path that an experiment file names. Name is "" where there is none.
type File struct {
	Name  string
	Place plugin.Place
}

// Tokenizer is the tokenizer section.
type Tokenizer struct {
	MaxLength int // tokens of a text or pair, special ones included
	// Of an encoder from scratch, zero where a base model has its own:
	Type    string // wordpiece | words
	Train   Vocabulary
	Vectors File // of whole words, that the embeddings begin with; no name: they are drawn at random
}

// Vocabulary says how a tokenizer is trained.
type Vocabulary struct {
	VocabSize int  `yaml:"vocab_size" range:"[100,1000000]" doc:"tokens, special ones included; of words 30000 where it is not given"`
	Lowercase bool `yaml:"lowercase" doc:"whether upper and lower case are one"`
}

// Task is one entry of tasks.
type Task struct {
	Name      string
	Place     plugin.Place
	Part      plugin.Choice[tasks.Env, tasks.Task]
	Data      Data
	Heads     []Head
	Labels    []string                  // of all its heads that name none; nil: the data's
	LabelMaps map[string]map[int]string // head → number in the data → label
	Windowing corpus.Windowing          // what becomes of long texts
	Hides     bool                      // it hides tokens of its texts
}

// HeadNames lists the names of the task's heads.
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

// learns is whether the head has a loss.
func (h Head) learns() bool { return !heads.TraitsOf(h.Part.Options).Fitted }

// Training is the training section. Its tags declare the keys; trainingOptions has those that choose parts or name
// paths.
type Training struct {
	LearningRate              float64 `yaml:"learning_rate" range:"(0,)" doc:"at its highest, after the warmup"`
	WeightDecay               float64 `yaml:"weight_decay" range:"[0,)" doc:"of AdamW, on weight matrices alone"`
	BatchSize                 int     `yaml:"batch_size" range:"[1,)" doc:"texts of a batch"`
	BatchTokens               int     `yaml:"batch_tokens" range:"[0,)" doc:"tokens that a batch may have; 0: any number"`
	NumEpochs                 int     `yaml:"num_epochs" range:"[1,)" doc:"times that the training data is gone through"`
	MaxSteps                  int     `yaml:"max_steps" range:"[0,)" doc:"updates to make, whatever num_epochs says; 0: as many as num_epochs gives"`
	WarmupSteps               int     `yaml:"warmup_steps" range:"[0,)" doc:"updates over which the learning rate rises; overrules warmup_ratio"`
	WarmupRatio               float64 `yaml:"warmup_ratio" range:"[0,1]" doc:"fraction of all updates over which the learning rate rises"`
	MaxGradNorm               float64 `yaml:"max_grad_norm" range:"[0,)" doc:"norm that gradients are clipped to; 0: they are not clipped"`
	GradientAccumulationSteps int     `yaml:"gradient_accumulation_steps" range:"[1,)" doc:"batches whose gradients make one update"`
	Precision                 string  `yaml:"precision" choice:"float32|bf16" doc:"of the encoder's products while it learns; sums and all else are float32"`
	Recompute                 bool    `yaml:"recompute" doc:"whether the encoder keeps little of a batch and computes the rest again: less memory, more time"`

	Sampling  plugin.Choice[multitask.SamplerEnv, multitask.Sampler]     `yaml:"-"`
	Weighting plugin.Choice[multitask.WeightingEnv, multitask.Weighting] `yaml:"-"`

	EvalStrategy          string  `yaml:"eval_strategy" choice:"epoch|steps|no" doc:"when the model is evaluated on dev, and saved: after each epoch, each eval_steps, or never"`
	EvalSteps             int     `yaml:"eval_steps" range:"[1,)" doc:"updates between evaluations, with eval_strategy: steps"`
	SaveStrategy          string  `yaml:"save_strategy" choice:"epoch|steps|no"`
	LoadBestModelAtEnd    bool    `yaml:"load_best_model_at_end"`
	MetricForBestModel    string  `yaml:"metric_for_best_model" doc:"metric of dev that the best checkpoint is chosen by: eval_loss, eval_overall, eval_TASK_loss, eval_TASK_HEAD_METRIC, …; eval_overall where it is not given"`
	GreaterIsBetter       bool    `yaml:"greater_is_better" doc:"whether a higher metric_for_best_model is better; as the metric has it where it is not given"`
	EarlyStoppingPatience int     `yaml:"early_stopping_patience" range:"[0,)" doc:"evaluations without a better one after which training ends; 0: it does not"`
	OutputDir             string  `yaml:"-"` // run folder; "": runs/PROJECT_NAME
	CacheMemory           int     `yaml:"cache_memory" range:"[0,16777216]" doc:"MiB of a frozen encoder's states that memory keeps, so that each text is encoded once"`
	NoCacheFile           bool    `yaml:"-"` // cache_file: false: what is beyond CacheMemory is encoded each time
	CacheFolder           string  `yaml:"-"` // of the file for what is beyond CacheMemory; "": the run folder
	Device                string  `yaml:"device"`
	Logging               Logging `yaml:"logging"`
	LoggingSteps          int     `yaml:"logging_steps" range:"[1,)" doc:"updates between lines of the run folder's metrics.jsonl"`
}

// Logging is where Jenga-NLP sends its figures.
type Logging struct {
	Service        string `yaml:"service"`
	ExperimentName string `yaml:"experiment_name"`
	TrackingURI    string `yaml:"tracking_uri"`
}

// Read reads an experiment file. Each of sets, KEY=VALUE, overrules it: training.num_epochs=1,
// tasks.intent.heads.intent.type=linear. The error lists all that is wrong with both.
//
// Paths are relative to the file, in sets to the working directory. Data that is not there is looked up below
// $JENGA_DATA, a base model below $JENGA_MODELS and in the hub's local cache.
func Read(path string, sets []string) (*Experiment, error) { return read(path, sets, true) }

// ReadTrained reads the experiment file of a trained run. The data it was trained on may be gone.
func ReadTrained(path string) (*Experiment, error) { return read(path, nil, false) }

func read(path string, sets []string, files bool) (*Experiment, error) {
	data, err := readStart(path)
	if err != nil {
		return nil, err
	}
	return decode(path, data, sets, files)
}

// decode makes an experiment of what a file at path holds. files says that the files it names must be there.
func decode(path string, data []byte, sets []string, files bool) (*Experiment, error) {
	d := decoding{e: &Experiment{Path: path}, files: files}
	root := plugin.Parse(path, data, &d.mistakes)
	if root == nil {
		return nil, d.mistakes.Err()
	}
	for _, set := range sets {
		override(root, set, &d.mistakes)
	}
	d.e.root = root
	d.experiment(root)
	if err := d.mistakes.Err(); err != nil {
		return nil, err
	}
	return d.e, nil
}

// readStart reads a file, of an endless one enough for Parse to refuse it.
func readStart(path string) ([]byte, error) {
	const enough = 16 << 20 // bytes
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: no such file", path)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, enough))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, pathless(err))
	}
	return data, nil
}

// pathless takes the path from an error of package os, for messages that name it themselves.
func pathless(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}
