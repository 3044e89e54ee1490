package run

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/plugin"
)

// estimate is the memory of a run in bytes. The activations of heads, which are small beside the encoder's, and other
// memory of the program are not counted.
type estimate struct {
	batch                         multitask.Size // the largest, or of its shards
	shards                        int            // of each batch
	weights, gradients, optimizer int64
	average                       int64 // running means of the weights
	activations                   int64 // of batch
	recomputed                    int64 // the same with training.recompute
	// of the largest batch of dev, beside the memory of training
	evaluation int64
	states     int64 // of a frozen encoder, cached in memory
	checkpoint int64 // copies of what is saved, which are written while training goes on
	messages   int64 // of other processes
	// of parameters and gradients that are moved for messages, before the other memory is used: what exceeds that
	moving  int64
	outside int64 // of Go's heap, counted above
}

func (n estimate) model() int64 { return n.weights + n.gradients + n.optimizer + n.average }

func (n estimate) total() int64 {
	return n.model() + n.activations + n.evaluation + n.states + n.checkpoint + n.messages + n.moving
}

// trainingNeed estimates the memory of training.
func (r *Run) trainingNeed(data []multitask.Data) (estimate, error) {
	plan := r.plan
	sizes, err := plan.Sizes(r.Model, data)
	if err != nil {
		return estimate{}, err
	}
	n := modelNeed(r.Model)
	n.shards = plan.Shards
	n.optimizer, n.average = plan.OptimizerState(r.Model), plan.Averages(r.Model)
	n.batch, n.activations = r.Model.Largest(sizes, encoders.Workload{Training: true, Recompute: plan.Recompute})
	_, n.recomputed = r.Model.Largest(sizes, encoders.Workload{Training: true, Recompute: true})
	n.gradients += plan.TaskGradients(r.Model)
	n.gradients *= int64(1 + plan.ShardGradients())
	n.activations, n.recomputed = multitask.Reserve(n.activations), multitask.Reserve(n.recomputed)
	tokens := int64(0)
	for _, s := range sizes {
		tokens += int64(s.Tokens)
	}
	if !plan.NeverEvaluate {
		var dev []multitask.Size
		for _, d := range data {
			dev = append(dev, multitask.EvaluationSizes(d.Dev, plan.BatchSize, plan.BatchTokens)...)
		}
		_, n.evaluation = r.Model.Largest(dev, encoders.Workload{})
		n.evaluation = multitask.Reserve(n.evaluation)
		for _, s := range dev {
			tokens += int64(s.Tokens)
		}
	}
	n.checkpoint = r.copiesNeed(n)
	if r.Model.Frozen() {
		if plan.Ranks != nil {
			_, ranks := plan.Ranks.Rank()
			tokens /= int64(ranks) // each keeps those of its texts
		}
		// of one layer: fusions that read all keep more
		n.states = min(plan.CacheMemory, 4*tokens*int64(r.Model.Encoder.Describe().Width))
	}
	return r.ofRank(n), nil
}

// ofRank returns the memory of this process of several.
func (r *Run) ofRank(n estimate) estimate {
	if r.plan.Ranks == nil {
		return n
	}
	need := r.plan.RankMemory(r.Model, n.batch.Tokens)
	switch {
	case !r.writes():
		n.checkpoint = 0
	case r.experiment().Training.SaveStrategy != config.SaveNever && need.Optimizer < n.optimizer:
		n.checkpoint += n.optimizer // which is collected before it is copied
	}
	n.optimizer, n.messages, n.outside = need.Optimizer, need.Messages, need.Messages+need.Moved
	n.moving = max(0, need.Moved-n.optimizer-n.activations-n.evaluation-n.states-n.checkpoint)
	return n
}

// copiesNeed estimates the copies that a checkpoint makes: of the model, as far as it is saved, and of what a snapshot
// has. n has the memory of the parameters and of the optimizer.
func (r *Run) copiesNeed(n estimate) int64 {
	copies := int64(0)
	for _, w := range ownParams(r.Model) {
		copies += 4 * int64(len(w.Data))
	}
	if r.copiesEncoder() {
		copies = n.weights
		for _, w := range multitask.EncoderParams(r.Model.Params).All() {
			if w.Frozen && w.Table { // see encoders.Description.Copy
				copies -= 4 * int64(len(w.Data))
			}
		}
	}
	if r.experiment().Training.SaveStrategy != config.SaveNever {
		for _, w := range r.Model.Params.All() {
			if !w.Frozen {
				copies += 4 * int64(len(w.Data))
			}
		}
		copies += n.optimizer + n.average
		if l, ok := r.plan.Weighting.(weightings.LearnedWeighting); ok {
			const each = 3 // the parameter, and the moments of its AdamW
			for _, w := range l.Params() {
				copies += each * 4 * int64(len(w.Data))
			}
		}
	}
	return copies
}

// modelNeed estimates the memory of the parameters, and of gradients for those that are trained.
func modelNeed(m *multitask.Model) estimate {
	var n estimate
	for _, w := range m.Params.All() {
		bytes := 4 * int64(len(w.Data))
		n.weights += bytes
		if !w.Frozen {
			n.gradients += bytes
		}
	}
	return n
}

// fits returns an error, at the place of the batch size, where a run needs more memory than the machine has. The
// weights, which are there already, count on both sides.
func (m Machine) fits(n estimate, at plugin.Place) error {
	free, ok := m.freeMemory()
	if free -= margin(free); !ok || n.total()-n.weights <= free {
		return nil
	}
	remedy := "lower training.batch_size or tokenizer.max_length"
	switch learns := n.gradients > 0; {
	case n.model()-n.weights > free:
		remedy = "model.freeze leaves layers as they are, without gradients; or take a smaller model"
	case n.states > 0 && n.total()-n.weights-n.states <= free:
		remedy = "lower training.cache_memory"
	case learns:
		remedy = "lower training.batch_size, for which training.gradient_accumulation_steps can make up, or " +
			"tokenizer.max_length"
		if n.total()-n.weights-n.activations+n.recomputed <= free {
			remedy += fmt.Sprintf(", or set training.recompute: true, which takes %s",
				SizeOf(n.total()-n.activations+n.recomputed))
		}
	}
	what := fmt.Sprintf("a batch of %d texts with %d tokens", n.batch.Texts, n.batch.Tokens)
	if n.shards > 1 {
		what = fmt.Sprintf("a shard of a batch, of %d texts with %d tokens,", n.batch.Texts, n.batch.Tokens)
	}
	if n.batch.Texts == 0 { // the encoder has no estimate for batches
		what = "the model"
	}
	return &plugin.Mistake{
		Place: at,
		Err: fmt.Errorf("%s needs %s (%s), the machine has %s; %s", what, SizeOf(n.total()), n.parts(),
			SizeOf(free+n.weights), remedy),
	}
}

// FitsEvaluation returns an error where the evaluation of a model on batches of some sizes takes more memory than the
// machine has.
func (m Machine) FitsEvaluation(of *multitask.Model, sizes []multitask.Size, at plugin.Place) error {
	n := estimate{weights: modelNeed(of).weights}
	n.batch, n.activations = of.Largest(sizes, encoders.Workload{})
	n.activations = multitask.Reserve(n.activations)
	return m.fits(n, at)
}

// FitsText returns an error where a prediction for a text, which is alone in its batch, takes more memory than the
// machine has. Heads may keep as much as the encoder.
func (m Machine) FitsText(of *multitask.Model, e *corpus.Example) error {
	size := multitask.SizeOf(e)
	_, bytes := of.Largest([]multitask.Size{size}, encoders.Workload{})
	free, ok := m.freeMemory()
	if free -= margin(free); !ok || 2*bytes <= free {
		return nil
	}
	return fmt.Errorf("%s: a text of %d tokens needs %s for a prediction, the machine has %s; divide it", e.Place,
		size.Tokens, SizeOf(2*bytes), SizeOf(free))
}

// FitsExplanation returns an error where passes of some tokens, and so many bytes for their results, take more memory
// than the machine has. Heads may keep as much as the encoder.
func (m Machine) FitsExplanation(of *multitask.Model, size multitask.Size, how encoders.Workload, results int64) error {
	_, bytes := of.Largest([]multitask.Size{size}, how)
	free, ok := m.freeMemory()
	if free -= margin(free); !ok || 2*bytes+results <= free {
		return nil
	}
	return fmt.Errorf("the explanation of a text of %d tokens needs %s, the machine has %s", size.Longest,
		SizeOf(2*bytes+results), SizeOf(free))
}

// margin returns the part of free memory that is reserved for uncounted allocations.
func margin(free int64) int64 { return free / 16 }

// limitMemory sets the memory limit of the garbage collector to the memory of the machine. A limit that the user has
// set by GOMEMLIMIT stays. So many bytes will be outside of its heap. restore undoes it.
func (m Machine) limitMemory(outside int64) (restore func()) {
	free, ok := m.freeMemory()
	if !ok || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	debug.SetMemoryLimit(int64(now.Sys-now.HeapReleased) + max(0, free-margin(free)-outside))
	return func() { debug.SetMemoryLimit(math.MaxInt64) }
}

// list lists the addends of n.total that are not 0.
func (n estimate) list() []MemoryPart {
	var list []MemoryPart
	for _, part := range []MemoryPart{
		{"weights", n.weights}, {"gradients", n.gradients}, {"optimizer", n.optimizer},
		{"averaged weights", n.average},
		{"activations", n.activations}, {"evaluation", n.evaluation}, {"cached states", n.states},
		{"checkpoint", n.checkpoint}, {"messages", n.messages}, {"moved parameters", n.moving},
	} {
		if part.Bytes > 0 {
			list = append(list, part)
		}
	}
	return list
}

// parts writes the addends of n.total.
func (n estimate) parts() string { return Parts(n.list()) }

// Parts writes the memory of parts: weights 13.2 GiB, gradients 1.20 GiB.
func Parts(list []MemoryPart) string {
	var parts []string
	for _, part := range list {
		parts = append(parts, part.Name+" "+SizeOf(part.Bytes))
	}
	return strings.Join(parts, ", ")
}

// SizeOf writes bytes with three digits: 13.2 GiB.
func SizeOf(bytes int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	v, unit := float64(bytes), 0
	for v >= 999.5 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	digits := 2
	switch {
	case unit == 0 || v >= 99.95:
		digits = 0
	case v >= 9.995:
		digits = 1
	}
	return fmt.Sprintf("%.*f %s", digits, v, units[unit])
}

// Machine measures the free memory of a machine.
type Machine struct {
	Files fs.FS // the machine's root, of Linux; without /proc the memory is unknown
	Local int   // how many processes of a training share the machine; 0: one
}

// ThisMachine returns the machine that the program runs on.
func ThisMachine() Machine { return Machine{Files: os.DirFS("/")} }

// freeMemory returns how many bytes this process can allocate beside others of its training; ok is false where that is
// not known.
func (m Machine) freeMemory() (free int64, ok bool) {
	free, ok = freeMemory(m.Files)
	return free / int64(max(1, m.Local)), ok
}

// freeMemory returns how many bytes this process can allocate without swapping, within the limits of its control
// groups. root is the root of a Linux file system; ok is false for other systems.
func freeMemory(root fs.FS) (free int64, ok bool) {
	if free, ok = figure(root, "proc/meminfo", "MemAvailable:"); !ok {
		return 0, false
	}
	free *= 1 << 10 // "kB" there
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return free, true
	}
	for line := range strings.Lines(string(groups)) { // number:controllers:path
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) < 3 {
			continue
		}
		limits := secondLimits
		if parts[1] != "" {
			limits = firstLimits
		}
		if parts[1] == "" || strings.Contains(","+parts[1]+",", ",memory,") {
			free = limits.free(root, parts[2], free)
		}
	}
	return free, true
}

// groupLimits are the files of a version of control groups with the memory limits of a group.
type groupLimits struct {
	root, limit, used string
	cached            []string // keys of memory.stat: pages of files, which the kernel takes back when it needs them
}

var (
	firstLimits = groupLimits{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
		[]string{"total_inactive_file", "total_active_file"}}
	secondLimits = groupLimits{"sys/fs/cgroup", "memory.max", "memory.current",
		[]string{"inactive_file", "active_file"}}
)

// free returns the least of free bytes and what the limits of the group at a path, and of those above it, leave.
func (l groupLimits) free(root fs.FS, at string, free int64) int64 {
	for at = path.Clean("/" + at); ; at = path.Dir(at) {
		folder := path.Join(l.root, at)
		limit, limited := figure(root, path.Join(folder, l.limit), "") // "max" is not a number
		used, known := figure(root, path.Join(folder, l.used), "")
		if limited && known {
			for _, key := range l.cached {
				cached, _ := figure(root, path.Join(folder, "memory.stat"), key)
				used = max(0, used-cached)
			}
			free = max(0, min(free, limit-used))
		}
		if at == "/" {
			return free
		}
	}
}

// figure reads the whole number after a key at the start of a line of a file.
func figure(root fs.FS, name, key string) (n int64, ok bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(data) {
		fields := strings.Fields(string(line))
		if key != "" && len(fields) > 0 && fields[0] == key {
			fields = fields[1:]
		} else if key != "" {
			continue
		}
		if len(fields) == 0 {
			return 0, false
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		return n, err == nil
	}
	return 0, false
}
