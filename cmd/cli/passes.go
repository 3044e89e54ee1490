package cli

import (
	"context"
	"fmt"

	"github.com/jenga-nlp/jenga/experiments/dataset"
)

// watchPasses shows the passes over streamed training data: a bar on a terminal, else a line when one begins. A
// cancelled context ends the pass.
func (c *commands) watchPasses(ctx context.Context) dataset.Watch {
	var bar *progress
	pass := ""
	return func(p dataset.Progress) error {
		begins := p.Pass != pass
		pass = p.Pass
		switch {
		case !onTerminal(c.log):
			if begins {
				fmt.Fprintf(c.log, "%s: %d\n", p.Pass, p.Of)
			}
		case begins || bar == nil:
			bar = newBar(c.log, p.Of)
			bar.what = p.Pass
			fallthrough
		default:
			bar.Add(p.Done - bar.done)
			if p.Done == p.Of {
				bar.Clear()
				bar = nil
			}
		}
		return ctx.Err()
	}
}
