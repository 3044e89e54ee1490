package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/spf13/cobra"
)

type checkFlags struct {
	set  []string
	json bool
}

func (c *commands) checkCommand() *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report all errors of an experiment file and its data, at once",
		Args:  between(0, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.check(cmd.Context(), f, fileOf(args)) },
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "override `KEY=VALUE` of the file; may be repeated")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON object on stdout")
	return cmd
}

type checked struct {
	Tasks       []checkedTask  `json:"tasks"`
	Parameters  int            `json:"trainable_parameters"`
	Encoder     *checkedLayers `json:"encoder,omitempty"` // made of layers of a trained one; nil: it is not
	Steps       int            `json:"steps"`
	Evaluations int            `json:"evaluations"`
	// Memory is in bytes.
	Memory struct {
		Total int64            `json:"total"`
		Parts map[string]int64 `json:"parts"`
	} `json:"memory"`
	// Disk is what the run folder takes at most, in bytes; of a checkpoint, its model and its state.
	Disk struct {
		Training int64  `json:"training"`
		Done     int64  `json:"done"`
		Model    int64  `json:"model"`
		State    int64  `json:"state"`
		Free     *int64 `json:"free"` // nil where the system does not say
	} `json:"disk"`
	// Teachers is what teachers take before training; nil without any.
	Teachers *teachersCost `json:"teachers,omitempty"`
	Seconds  *float64      `json:"seconds"` // expected; nil where training does not fit into the memory
	Measured int           `json:"measured_steps"`
	Warnings []string      `json:"warnings"`
	Base     any           `json:"base,omitempty"`  // what is taken over from a run, as in the event of train
	Error    string        `json:"error,omitempty"` // why training does not fit into the memory
}

type teachersCost struct {
	Count   int     `json:"count"`
	Trained int     `json:"trained"`         // of them, before the training
	Texts   int     `json:"unlabelled"`      // texts without labels
	Seconds float64 `json:"answers_seconds"` // expected, of all their answers
	Disk    int64   `json:"answers_bytes"`
	Memory  int64   `json:"memory"` // of the largest one's weights, in bytes
}

// checkedLayers is an encoder that is made of layers of a trained one.
type checkedLayers struct {
	From       string `json:"from"`   // folder of that encoder
	Layers     []int  `json:"layers"` // numbered from 0
	Parameters int    `json:"parameters"`
}

type checkedTask struct {
	Task  string        `json:"task"`
	Heads []checkedHead `json:"heads"`
}

type checkedHead struct {
	Head   string                    `json:"head"`
	Output string                    `json:"output"`
	Labels int                       `json:"labels"` // that it learns; 0 where the output has none
	Splits map[string]dataset.Counts `json:"splits"`
}

func (c *commands) check(ctx context.Context, f checkFlags, file string) error {
	// data and model
	ready, err := c.read(ctx, file, f.set, config.Train, config.Dev, config.Test)
	if err != nil {
		return err
	}
	result := checked{Tasks: checkedTasks(ready.Data), Warnings: []string{}}
	for _, w := range ready.Warnings {
		result.Warnings = append(result.Warnings, warningWithFlags(w.String()))
	}
	if ready.Growth != nil {
		result.Base = events.Line(*ready.Growth)
	}
	for _, w := range ready.Model.AllParams() {
		if !w.Frozen {
			result.Parameters += w.Size()
		}
	}
	if of := ready.Data.Experiment.Model; of.Layers != nil {
		result.Encoder = &checkedLayers{From: of.BaseModel.Name, Layers: of.Layers}
		about := ready.Model.Encoder.Describe()
		params := slices.Concat(about.Levels...)
		if about.Resident != nil {
			params = about.Resident.Params
		}
		for _, w := range params {
			result.Encoder.Parameters += w.Size()
		}
	}

	// memory and time
	expected, tooLarge, err := ready.Expect(ctx)
	if err != nil {
		return err
	}
	for _, w := range expected.Warnings {
		text := warning("%s", w.Text)
		c.warn([]plugin.Warning{text})
		result.Warnings = append(result.Warnings, text.String())
	}
	return writeChecked(c.out, f.json, result, expected, tooLarge)
}

// writeChecked writes what a check has found. It returns tooLarge, for which train refuses too.
func writeChecked(w io.Writer, asJSON bool, result checked, expected run.Expectation, tooLarge error) error {
	if !asJSON {
		return cmp.Or(writeCheck(w, result, expected, tooLarge == nil), tooLarge)
	}
	result.add(expected)
	if tooLarge != nil {
		result.Error = tooLarge.Error()
	}
	return cmp.Or(writeLine(w, result), tooLarge)
}

func checkedTasks(data *dataset.Dataset) []checkedTask {
	all := make([]checkedTask, len(data.Tasks))
	for i, task := range data.Experiment.Tasks {
		all[i].Task = task.Name
	}
	for g := range data.Groups {
		group := &data.Groups[g]
		for h, of := range data.Heads(group) {
			head := checkedHead{
				Head: of.Head.Name, Output: data.Tasks[of.Number].Output().String(),
				Labels: len(data.Labels[multitask.HeadName{Task: of.Task.Name, Head: of.Head.Name}].Names()),
				Splits: map[string]dataset.Counts{},
			}
			for _, split := range []string{config.Train, config.Dev, config.Test} {
				head.Splits[split] = data.Count(group, h, split)
			}
			all[of.Number].Heads = append(all[of.Number].Heads, head)
		}
	}
	return all
}

func (c *checked) add(e run.Expectation) {
	if of := e.Teachers; of.Count > 0 {
		c.Teachers = &teachersCost{of.Count, of.Alone, of.Texts, of.Time.Seconds(), of.Disk, of.Memory}
	}
	c.Steps, c.Evaluations, c.Measured = e.Steps, e.Evaluations, e.Measured
	c.Memory.Total, c.Memory.Parts = e.Memory.Total(), map[string]int64{}
	for _, part := range e.Memory.Parts() {
		c.Memory.Parts[strings.ReplaceAll(part.Name, " ", "_")] = part.Bytes
	}
	c.Disk.Training, c.Disk.Done, c.Disk.Model, c.Disk.State = e.Disk.Training, e.Disk.Done, e.Disk.Model, e.Disk.State
	if e.Disk.Known {
		c.Disk.Free = &e.Disk.Free
	}
	if e.Measured > 0 {
		seconds := e.Time.Seconds()
		c.Seconds = &seconds
	}
}

// writeCheck writes a table of the examples, what training is expected to take, and whether it can be started.
func writeCheck(w io.Writer, c checked, e run.Expectation, fits bool) error {
	var text strings.Builder
	rows := [][]string{{"task", "head", "output", "split", "examples", "labelled", "labels"}}
	for _, task := range c.Tasks {
		for _, head := range task.Heads {
			for _, split := range []string{config.Train, config.Dev, config.Test} {
				n, labels := head.Splits[split], "-"
				if head.Labels > 0 {
					labels = strconv.Itoa(n.Labels)
				}
				if n.Examples > 0 {
					rows = append(rows, []string{task.Task, head.Head, head.Output, split, strconv.Itoa(n.Examples),
						strconv.Itoa(n.Labelled), labels})
				}
			}
		}
	}
	text.WriteString(aligned(rows))

	if of := c.Encoder; of != nil {
		fmt.Fprintf(&text, "encoder: %s, %v of %s, %s\n", plugin.Count(len(of.Layers), "layer"), of.Layers, of.From,
			plugin.Count(of.Parameters, "parameter"))
	}
	fmt.Fprintf(&text, "%s\n", plugin.Count(c.Parameters, "trainable parameter"))
	fmt.Fprintf(&text, "%s, %s\n", plugin.Count(e.Steps, "step"), plugin.Count(e.Evaluations, "evaluation"))
	fmt.Fprintf(&text, "memory: about %s (%s)\n", memory.Size(e.Memory.Total()), e.Memory)
	fmt.Fprintf(&text, "disk: %s\n", e.Disk)
	if of := e.Teachers; of.Count > 0 {
		texts := ""
		if of.Texts > 0 {
			texts = plugin.Count(of.Texts, "text") + " without labels; "
		}
		fmt.Fprintf(&text, "teachers: %s, %d of them trained first; %sanswers: about %s, %s of disk, %s of memory "+
			"for the largest one\n", plugin.Count(of.Count, "task"), of.Alone, texts, roughly(of.Time),
			memory.Size(of.Disk), memory.Size(of.Memory))
	}
	if e.Measured > 0 {
		disk := ""
		if e.Disk.Training > 0 {
			disk = ", beside what its disk takes to sync checkpoints"
		}
		fmt.Fprintf(&text, "time: about %s on this machine (by %s)%s\n", roughly(e.Time),
			plugin.Count(e.Measured, "measured step"), disk)
	}
	if fits {
		fmt.Fprintln(&text, "no errors")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// roughly returns a time with the digits that an estimate has.
func roughly(d time.Duration) time.Duration {
	switch {
	case d < time.Second:
		return max(d.Round(10*time.Millisecond), 10*time.Millisecond)
	case d < time.Minute:
		return d.Round(time.Second)
	case d < time.Hour:
		return d.Round(10 * time.Second)
	}
	return d.Round(10 * time.Minute)
}
