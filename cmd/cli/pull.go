package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/internal/hub"
	"github.com/jenga-nlp/jenga/internal/hubcache"
	"github.com/spf13/cobra"
)

func (c *commands) pullCommand() *cobra.Command {
	var onnx bool
	cmd := &cobra.Command{
		Use:   "pull NAME[@REVISION]",
		Short: "Download a model from the Hugging Face hub into the local cache",
		Args:  between(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.pull(cmd.Context(), args[0], onnx) },
	}
	cmd.Flags().BoolVar(&onnx, "onnx", false, "download model.onnx or onnx/model.onnx instead of the safetensors")
	return cmd
}

func (c *commands) pull(ctx context.Context, name string, onnx bool) error {
	m, err := hubcache.Parse(name)
	if err != nil {
		return usageError{err}
	}
	show := downloads{log: c.log, bars: onTerminal(c.log)}
	client, err := hub.New(show.event)
	if err != nil {
		return err
	}
	done, err := client.Pull(ctx, m, onnx)
	show.end()
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.log, "what is there is kept: the same command goes on from it")
	}
	switch {
	case errors.Is(err, hub.ErrHasGraph):
		return fmt.Errorf("%w, which --onnx downloads", err)
	case errors.Is(err, hub.ErrHasSafetensors):
		return fmt.Errorf("%w, which are downloaded without --onnx", err)
	case err != nil:
		return err
	}
	fmt.Fprintf(c.log, "%s, commit %.8s: %d files, %s; use it as base_model: %s\n", m.Name, done.Commit, done.Files,
		memory.Size(done.Bytes), m)
	_, err = fmt.Fprintln(raw(c.out), done.Folder) // which scripts read
	return err
}

// downloads shows how far downloads are: a bar for each file on a terminal, else a line now and then.
type downloads struct {
	log  io.Writer
	bars bool
	bar  *bar      // of the current file, in KiB
	file string    // the current one
	last time.Time // of the last line
}

func (d *downloads) event(e hub.Event) {
	const every = 10 * time.Second
	if e.Note != "" {
		d.end()
		fmt.Fprintln(d.log, e.Note)
		return
	}
	if e.File != d.file {
		d.file, d.last = e.File, time.Now()
	}
	switch {
	case e.Done == e.Size:
		d.end()
		fmt.Fprintf(d.log, "%s  %s\n", e.File, memory.Size(e.Size))
	case d.bars:
		if d.bar == nil {
			d.bar = barOn(d.log, e.File+", KiB")
		}
		d.bar.reach(int(e.Done>>10), max(1, int(e.Size>>10)))
	case time.Since(d.last) >= every:
		d.last = time.Now()
		fmt.Fprintf(d.log, "%s  %s of %s\n", e.File, memory.Size(e.Done), memory.Size(e.Size))
	}
}

func (d *downloads) end() {
	d.bar.clear()
	d.bar = nil
}
