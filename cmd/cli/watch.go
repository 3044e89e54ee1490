package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// watcher shows the events of a training run. end receives the error that the run ended with.
type watcher struct {
	event func(any) error
	end   func(error)
}

func (c *commands) watcher(json bool) watcher {
	switch {
	case json:
		return watcher{func(event any) error { return writeLine(c.out, report.Line(event)) }, func(error) {}}
	case onTerminal(c.log):
		return barWatcher(c.log)
	}
	return lineWatcher(c.log)
}

// barWatcher shows a progress bar with loss, speed and time left, and writes a table after each evaluation.
func barWatcher(w io.Writer) watcher {
	var bar *progress
	var loss, tokens, seconds float64 // running
	return watcher{
		event: func(event any) error {
			switch v := event.(type) {
			case multitask.Step:
				if bar == nil {
					bar = newBar(w, v.Of)
					bar.skip(v.Number - 1) // of a training that is resumed
					bar.what = "training"
				}
				if v.Bad != nil {
					bar.Clear()
					if err := writeWarning(w, report.SkippedWarning(v)); err != nil {
						return err
					}
					return bar.Add(1)
				}
				if tokens == 0 {
					loss = v.Loss
				}
				loss = smoothed*loss + (1-smoothed)*v.Loss
				tokens, seconds = smoothed*tokens+float64(v.Tokens), smoothed*seconds+v.Time.Seconds()
				bar.notes = []string{"loss " + lossText(loss),
					fmt.Sprintf("%.0f tokens/s", tokens/max(seconds, 1e-9)), fmt.Sprintf("epoch %.1f", v.Epoch)}
				return bar.Add(1)
			case multitask.Evaluation:
				if bar != nil { // nil: of a training that is resumed
					bar.Clear()
				}
				if err := writeEvaluation(w, v); err != nil || bar == nil || bar.IsFinished() {
					return err
				}
				return bar.RenderBlank()
			case multitask.Warning:
				if bar == nil {
					return writeWarning(w, v)
				}
				bar.Clear()
				if err := writeWarning(w, v); err != nil {
					return err
				}
				return bar.RenderBlank()
			}
			return nil
		},
		end: func(err error) {
			switch {
			case bar == nil:
			case err == nil:
				bar.Clear()
			default:
				fmt.Fprintln(w) // leave the bar in place: it shows how far training came
			}
		},
	}
}

// writeEvaluation writes the table of an evaluation in training, and the weighted mean that selects the best.
func writeEvaluation(w io.Writer, e multitask.Evaluation) error {
	fmt.Fprintf(w, "dev after epoch %.4g:\n", e.Epoch)
	if err := writeMetrics(w, e.Groups); err != nil || e.Weighted == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s %.2f: the mean by the weights of metric_for_best_model\n", report.Weighted,
		100**e.Weighted)
	return err
}

func writeWarning(w io.Writer, warning multitask.Warning) error {
	_, err := fmt.Fprintln(w, plugin.Warning(plugin.Place{}, "%s", warning.Text))
	return err
}

// smoothed is the weight of a running mean's old value at each step.
const smoothed = 0.95

// lineWatcher writes a line every few seconds, for a log file.
func lineWatcher(w io.Writer) watcher {
	const every = 10 * time.Second
	var last time.Time
	return watcher{
		event: func(event any) error {
			switch v := event.(type) {
			case multitask.Step:
				if v.Bad != nil {
					return writeWarning(w, report.SkippedWarning(v))
				}
				if time.Since(last) >= every || v.Number == v.Of {
					last = time.Now()
					fmt.Fprintf(w, "step %d of %d  epoch %.2f  loss %s  rate %.3g  %.0f tokens/s\n", v.Number, v.Of,
						v.Epoch, lossText(v.Loss), v.Rate, v.TokensPerSecond())
				}
			case multitask.Evaluation:
				return writeEvaluation(w, v)
			case multitask.Warning:
				return writeWarning(w, v)
			}
			return nil
		},
		end: func(error) {},
	}
}
