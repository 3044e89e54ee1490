package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/subset"
	"github.com/jenga-nlp/jenga/predict"
	"github.com/spf13/cobra"
)

type tasksFlags struct {
	drop, extract, rename []string
	out                   string
	force, json           bool
}

func (c *commands) tasksCommand() *cobra.Command {
	var f tasksFlags
	cmd := &cobra.Command{
		Use:   "tasks RUN",
		Short: "List a run's tasks, or write a run with some of them, without training",
		Args:  between(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.tasks(cmd.Context(), f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.drop, "drop", nil, "leave out `TASK`, or TASK,TASK; may be repeated")
	flags.StringArrayVar(&f.extract, "extract", nil, "keep `TASK` alone, or TASK,TASK; may be repeated")
	flags.StringArrayVar(&f.rename, "rename", nil, "another name for a task, `TASK=NAME`; may be repeated")
	flags.StringVarP(&f.out, "out", "o", "", "run folder of the new run")
	flags.BoolVar(&f.force, "force", false, "replace the run that the folder holds")
	flags.BoolVar(&f.json, "json", false, "one JSON line on stdout")
	return cmd
}

// options returns what the flags say of the tasks.
func (f tasksFlags) options() (o subset.Options, err error) {
	o = subset.Options{Drop: splitCommas(f.drop), Extract: splitCommas(f.extract), Rename: map[string]string{}}
	for _, flag := range splitCommas(f.rename) {
		task, name, named := strings.Cut(flag, "=")
		_, twice := o.Rename[task]
		switch {
		case !named || task == "" || name == "":
			return o, usageErrorf("--rename %q: want TASK=NAME", flag)
		case twice:
			return o, usageErrorf("--rename %q: there is a name for it before; want one", flag)
		}
		o.Rename[task] = name
	}
	return o, nil
}

func (c *commands) tasks(ctx context.Context, f tasksFlags, folder string) error {
	o, err := f.options()
	if err != nil {
		return err
	}
	changes := len(o.Drop)+len(o.Extract)+len(o.Rename) > 0
	switch {
	case !changes && f.out == "" && !f.force:
		return c.listTasks(ctx, f, folder)
	case !changes:
		return usageErrorf("--out %s: the new run would be the same; want --drop, --extract or --rename", f.out)
	case f.out == "":
		return usageErrorf("--out: no run folder; want --out DIR")
	}
	if err := checkpoint.CheckMade(f.out, f.force, []string{folder}); err != nil {
		return err
	}
	s, err := subset.Open(ctx, folder, o)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Check(f.out, f.force); err != nil {
		return err
	}
	c.warn(s.Warnings)
	if err := s.Write(ctx, f.out, f.force); err != nil {
		return err
	}
	if f.json {
		return writeLine(c.out, map[string]any{"folder": f.out, "tasks": s.Names()})
	}
	_, err = fmt.Fprintf(c.out, "tasks: %s; the model is in %s\n", strings.Join(s.Names(), ", "), f.out)
	return err
}

type listedTask struct {
	Task  string       `json:"task"`
	Type  string       `json:"type"`
	Heads []listedHead `json:"heads"`
}

type listedHead struct {
	Head   string   `json:"head"`
	Type   string   `json:"type"`
	Labels []string `json:"labels"`
}

// listTasks writes the tasks of a run, with their heads and labels.
func (c *commands) listTasks(ctx context.Context, f tasksFlags, folder string) error {
	opened, err := predict.OpenUncalibrated(ctx, folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	c.warn(opened.Warnings)
	var all []listedTask
	rows := [][]string{{"task", "type", "head", "type", "labels"}}
	for _, task := range opened.About.Tasks {
		listed := listedTask{Task: task.Name, Type: task.Type}
		for _, head := range task.Heads {
			listed.Heads = append(listed.Heads, listedHead{head.Name, head.Type, head.Labels})
			labels := "-"
			if len(head.Labels) > 0 {
				labels = strconv.Itoa(len(head.Labels))
			}
			rows = append(rows, []string{task.Name, task.Type, head.Name, head.Type, labels})
		}
		all = append(all, listed)
	}
	if f.json {
		return writeLine(c.out, map[string]any{"folder": folder, "tasks": all})
	}
	_, err = fmt.Fprint(c.out, aligned(rows))
	return err
}
