// Package memory compares the memory that tokens, a training, an evaluation or a text takes with that of the machine.
package memory

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

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Machine measures the free memory of a machine.
type Machine struct {
	Files fs.FS // the machine's root, of Linux; without /proc the memory is unknown
	Local int   // how many processes of a training share the machine; 0: one
}

// This returns the machine that the program runs on.
func This() Machine { return Machine{Files: os.DirFS("/")} }

// free returns how many bytes this process can allocate beside others of its training, but for a sixteenth that is
// reserved for what no estimate counts; ok is false where that is not known.
func (m Machine) free() (bytes int64, ok bool) {
	bytes, ok = freeMemory(m.Files)
	bytes /= int64(max(1, m.Local))
	return bytes - bytes/16, ok
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

// Estimate is the memory of a run in bytes. The activations of heads, which are small beside the encoder's, and other
// memory of the program are not counted.
type Estimate struct {
	Batch                         multitask.Size // the largest, or of its shards
	Shards                        int            // of each batch
	Weights, Gradients, Optimizer int64
	Average                       int64 // running means of the weights
	Activations                   int64 // of Batch
	Recomputed                    int64 // the same with training.recompute
	// of the largest batch of dev, beside the memory of training
	Evaluation int64
	States     int64 // of a frozen encoder, cached in memory
	StatesFile int64 // those beyond that, in a file of the run folder: no memory
	Checkpoint int64 // copies of what is saved, which are written while training goes on
	Messages   int64 // of other processes
	// of parameters and gradients that are moved for messages, before the other memory is used: what exceeds that
	Moving  int64
	Outside int64 // of Go's heap, counted above
}

func (n Estimate) model() int64 { return n.Weights + n.Gradients + n.Optimizer + n.Average }

// Total is the sum of all parts.
func (n Estimate) Total() int64 {
	return n.model() + n.Activations + n.Evaluation + n.States + n.Checkpoint + n.Messages + n.Moving
}

// Weights returns the memory of a model's parameters, also of those that an encoder with a memory of its own has beside
// that.
func Weights(m *multitask.Model) (bytes int64) {
	for _, w := range m.AllParams() {
		bytes += 4 * int64(len(w.Data))
	}
	return bytes
}

// Fits returns an error, at the place of the batch size, where a run needs more memory than the machine has. The
// weights, which are there already, count on both sides.
func (m Machine) Fits(n Estimate, at plugin.Place) error {
	free, lacks := m.lacks(n.Total() - n.Weights)
	if !lacks {
		return nil
	}
	remedy := "lower training.batch_size or tokenizer.max_length"
	switch learns := n.Gradients > 0; {
	case n.model()-n.Weights > free:
		remedy = "model.freeze leaves layers as they are, without gradients; or take a smaller model"
	case n.States > 0 && n.Total()-n.Weights-n.States <= free:
		remedy = "lower training.cache_memory"
	case learns:
		remedy = "lower training.batch_size, for which training.gradient_accumulation_steps can make up, or " +
			"tokenizer.max_length"
		if n.Total()-n.Weights-n.Activations+n.Recomputed <= free {
			remedy += fmt.Sprintf(", or set training.recompute: true, which takes %s",
				Size(n.Total()-n.Activations+n.Recomputed))
		}
	}
	what := fmt.Sprintf("a batch of %d texts with %d tokens", n.Batch.Texts, n.Batch.Tokens)
	if n.Shards > 1 {
		what = fmt.Sprintf("a shard of a batch, of %d texts with %d tokens,", n.Batch.Texts, n.Batch.Tokens)
	}
	if n.Batch.Texts == 0 { // the encoder has no estimate for batches
		what = "the model"
	}
	return &plugin.Mistake{
		Place: at,
		Err: fmt.Errorf("%s needs %s (%s), the machine has %s; %s", what, Size(n.Total()), n,
			Size(free+n.Weights), remedy),
	}
}

// FitsEvaluation returns an error where the evaluation of a model on batches of some sizes takes more memory than the
// machine has.
func (m Machine) FitsEvaluation(of *multitask.Model, sizes []multitask.Size, at plugin.Place) error {
	n := Estimate{Weights: Weights(of)}
	n.Batch, n.Activations = of.Largest(sizes, encoders.Workload{})
	n.Activations = multitask.Reserve(n.Activations)
	return m.Fits(n, at)
}

// FitsText returns an error where a prediction for a text, which is alone in its batch, takes more memory than the
// machine has. Heads may keep as much as the encoder.
func (m Machine) FitsText(of *multitask.Model, size multitask.Size) error {
	_, bytes := of.Largest([]multitask.Size{size}, encoders.Workload{})
	free, lacks := m.lacks(2 * bytes)
	if !lacks {
		return nil
	}
	return fmt.Errorf("a text of %d tokens needs %s for a prediction, the machine has %s; divide it", size.Tokens,
		Size(2*bytes), Size(free))
}

// FitsExplanation returns an error where passes of some tokens, and so many bytes for their results, take more memory
// than the machine has. Heads may keep as much as the encoder.
func (m Machine) FitsExplanation(of *multitask.Model, size multitask.Size, how encoders.Workload, results int64) error {
	_, bytes := of.Largest([]multitask.Size{size}, how)
	free, lacks := m.lacks(2*bytes + results)
	if !lacks {
		return nil
	}
	return fmt.Errorf("the explanation of a text of %d tokens needs %s, the machine has %s", size.Longest,
		Size(2*bytes+results), Size(free))
}

// Left returns how many bytes this process can allocate; math.MaxInt64 where that is not known.
func (m Machine) Left() int64 {
	if free, ok := m.free(); ok {
		return free
	}
	return math.MaxInt64
}

// lacks reports whether bytes are more than the machine has free, without what is reserved for uncounted allocations.
func (m Machine) lacks(bytes int64) (free int64, lacks bool) {
	free, ok := m.free()
	return free, ok && bytes > free
}

// LimitHeap sets the memory limit of the garbage collector to the memory of the machine. A limit that the user has
// set by GOMEMLIMIT stays. So many bytes will be outside of its heap. restore undoes it.
func (m Machine) LimitHeap(outside int64) (restore func()) {
	free, ok := m.free()
	if !ok || debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return func() {}
	}
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	debug.SetMemoryLimit(int64(now.Sys-now.HeapReleased) + max(0, free-outside))
	return func() { debug.SetMemoryLimit(math.MaxInt64) }
}

// Part is the estimated memory of a part of a run: its weights, gradients, activations.
type Part struct {
	Name  string
	Bytes int64
}

// Parts lists the addends of the total that are not 0.
func (n Estimate) Parts() []Part {
	var list []Part
	for _, part := range []Part{
		{"weights", n.Weights}, {"gradients", n.Gradients}, {"optimizer", n.Optimizer},
		{"averaged weights", n.Average},
		{"activations", n.Activations}, {"evaluation", n.Evaluation}, {"cached states", n.States},
		{"checkpoint", n.Checkpoint}, {"messages", n.Messages}, {"moved parameters", n.Moving},
	} {
		if part.Bytes > 0 {
			list = append(list, part)
		}
	}
	return list
}

// String lists the parts with their sizes: weights 13.2 GiB, gradients 1.20 GiB.
func (n Estimate) String() string {
	var parts []string
	for _, part := range n.Parts() {
		parts = append(parts, part.Name+" "+Size(part.Bytes))
	}
	return strings.Join(parts, ", ")
}

// Size writes bytes with three digits: 13.2 GiB.
func Size(bytes int64) string {
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
