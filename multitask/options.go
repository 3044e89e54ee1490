package multitask

// Options are the options of a training that are plain values: keys of the section training, with which docs/parts.md
// describes them by the fields' comments.
type Options struct {
	// peak learning rate, a factor of the optimizer's updates; it rises linearly to it in the warmup, and changes by
	// lr_scheduler then
	Rate float64 `yaml:"learning_rate" range:"(0,)"`
	// peak learning rate of heads and fusion
	HeadRate float64 `yaml:"head_learning_rate,omitempty" range:"(0,)" default:"(learning_rate)"`
	// factor of the learning rate of each layer of the encoder to that of the layer above it; the last layer has
	// learning_rate, the embeddings the smallest rate; 1: all have the same
	LayerDecay float64 `yaml:"layer_decay" range:"(0,1]"`
	// for weight matrices only: with AdamW and Adafactor the fraction, times the learning rate, by which an update
	// shrinks them; with SGD the multiple of them that is added to their gradient
	WeightDecay float64 `yaml:"weight_decay" range:"[0,)"`
	// most examples (texts or pairs, each with all its windows) in a batch
	BatchSize int `yaml:"batch_size" range:"[1,)"`
	// most tokens in a batch, all texts together; 0: no limit
	BatchTokens int `yaml:"batch_tokens" range:"[0,)"`
	// number of passes over the training data
	Epochs int `yaml:"num_epochs" range:"[1,)"`
	// number of updates to make, overrules num_epochs; 0: num_epochs
	MaxSteps int `yaml:"max_steps" range:"[0,)"`
	// number of updates until the peak; overrules warmup_ratio
	WarmupSteps int `yaml:"warmup_steps" range:"[0,)"`
	// fraction of all updates until the peak
	WarmupRatio float64 `yaml:"warmup_ratio" range:"[0,1]"`
	// decay rate of running means of the weights, which follow them by 1 minus it at each update; evaluations judge the
	// means and checkpoints hold them; 0: none
	Average float64 `yaml:"ema" range:"[0,1)"`
	// Euclidean norm of all gradients together above which they are scaled down to it, by max_grad_norm/(norm + 1e-6)
	// as in PyTorch; 0: no clipping
	ClipNorm float64 `yaml:"max_grad_norm" range:"[0,)"`
	// what becomes of a step whose loss or gradient is not finite, or whose loss explodes: an error ends the training,
	// with the task and the texts; or its update is left out with a warning, and 10 such steps in a row end the
	// training
	SkipBadSteps bool `yaml:"on_bad_loss" choice:"stop|skip"`
	// multiple of a head's usual loss above which its loss in a step explodes: of the median of its first 20 steps, or
	// of its running mean (decay rate 0.98) where that is larger; above 1, or 0: none explodes
	LossLimit float64 `yaml:"loss_limit" range:"[0,)"`

	// number of batches whose gradients are summed for one update
	Accumulate int `yaml:"gradient_accumulation_steps" range:"[1,)"`
	// number of parts of each batch, a power of two: each is a forward and a backward pass of its own. The processes of
	// a training that mpirun starts divide them; the model does not depend on the number of processes, but on that of
	// shards
	Shards int `yaml:"shards,omitempty" range:"[1,)" default:"(the number of processes)"`
	// type of the gradients that shards sum: bf16 rounds each shard's and each sum of two, of which processes send half
	// the bytes; moments and parameters stay float32
	RoundGradients bool `yaml:"gradient_dtype" choice:"float32|bf16"`
	// how processes sum gradients: in a tree, whose bits do not depend on their number, or by the MPI library (native),
	// whose order of addition is its own: faster on some networks, but not exact
	NativeSums bool `yaml:"all_reduce" choice:"tree|native"`

	// fraction of batches that are of the tasks that model.keep_tasks names, where the encoder learns: the probability
	// of each batch; 0: these tasks are not trained, and may get worse
	Rehearse float64 `yaml:"rehearse" range:"[0,1)"`

	// factor of the loss against a teacher's answer for a text that has a gold label, beside 1 minus it for the loss
	// against that; of a text without one, the loss is that against the answer alone
	TeacherWeight float64 `yaml:"teacher_weight" range:"[0,1]" default:"0.5, or 1 with anneal"`
	// whether teacher_weight falls to 0 over the training, linearly: teacher annealing (Clark et al. 2019, "BAM!")
	Anneal bool `yaml:"anneal"`
	// temperature of teachers' answers, a factor by which the logits of teachers, and those of heads in the losses
	// against them, are divided (Hinton et al. 2015)
	Temperature float64 `yaml:"temperature" range:"[0.1,100]"`

	// of encoder products in training; sums are float32
	BFloat16 bool `yaml:"precision" choice:"float32|bf16"`
	// whether a GPU rounds the factors of float32 products of the encoder to TF32, 10 bits of precision, in training
	TF32 bool `yaml:"tf32"`
	// whether activations are recomputed in the backward pass: less memory, more time
	Recompute bool `yaml:"recompute"`
}

// RateKeys are the keys of Options that say the learning rate, which some optimizers compute.
var RateKeys = []string{"learning_rate", "head_learning_rate", "layer_decay", "warmup_steps", "warmup_ratio"}

// StepCounts returns the options that count updates; 0: not set.
func (o *Options) StepCounts() []*int { return []*int{&o.MaxSteps, &o.WarmupSteps} }

// DefaultOptions are those of a file that names none.
var DefaultOptions = Options{
	Rate: 2e-5, LayerDecay: 1, WeightDecay: 0.01, BatchSize: 16, Epochs: 3, ClipNorm: 1, LossLimit: 1000, Accumulate: 1,
	TeacherWeight: 0.5, Temperature: 1,
}
