package cli

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// bar shows in a line of a terminal what is done, the time elapsed and remaining, and notes, as many as fit. It appears
// with the first that is done, and goes with the last; its time is from when it was made. A nil bar shows nothing.
type bar struct {
	w     io.Writer
	what  string // is counted
	notes []string
	start time.Time

	line   *progressbar.ProgressBar // nil before the first
	before int                      // steps that were done before the start
}

// newBar returns a bar in a line of the log, if that is a terminal and shown is true.
func (c *commands) newBar(what string, shown bool) *bar {
	if !shown || !onTerminal(c.log) {
		return nil
	}
	return barOn(c.log, what)
}

func barOn(w io.Writer, what string) *bar { return &bar{w: w, what: what, start: time.Now()} }

// reach shows how many of all steps, examples or lines are done.
func (b *bar) reach(done, of int) {
	if b == nil || of == 0 {
		return
	}
	if b.line == nil {
		b.line = progressbar.NewOptions(of,
			progressbar.OptionSetWriter(raw(b.w)),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(false), // the description has both times
			progressbar.OptionSetElapsedTime(false),
			progressbar.OptionFullWidth(),
			progressbar.OptionUseANSICodes(true),
			progressbar.OptionThrottle(100*time.Millisecond),
		)
	}
	room := terminalWidth(b.w) - barWidth(of)
	b.line.Describe(description(room, b.what, time.Since(b.start), done-b.before, of-b.before, b.notes))
	b.line.Set(min(done, of)) // an error is the terminal's, which is gone
	if done >= of {
		b.line.Clear()
	}
}

func (b *bar) clear() {
	if b.isShown() {
		b.line.Clear()
	}
}

func (b *bar) isShown() bool { return b != nil && b.line != nil && !b.line.IsFinished() }

func (b *bar) around(write func() error) error {
	b.clear()
	if err := write(); err != nil || !b.isShown() {
		return err
	}
	return b.line.RenderBlank()
}

// description returns what is beside a bar in room characters. Both times come first; what is done is left out where
// it does not fit beside them.
func description(room int, what string, elapsed time.Duration, done, of int, notes []string) string {
	times := []string{"elapsed " + elapsed.Round(time.Second).String()}
	if done > 0 {
		remaining := time.Duration(float64(elapsed) / float64(done) * float64(max(of-done, 0)))
		times = append(times, "remaining "+remaining.Round(time.Second).String())
	}
	if what != "" && utf8.RuneCountInString(what+gap+strings.Join(times, gap)) <= room {
		times = append([]string{what}, times...)
	}
	return fitting(room, append(times, notes...)...)
}

// fitting joins as many of the first parts as fit into room characters.
func fitting(room int, parts ...string) string {
	for n := len(parts); n > 0; n-- {
		if text := strings.Join(parts[:n], gap); utf8.RuneCountInString(text) <= room {
			return text
		}
	}
	return ""
}

func isTerminal(w any) bool {
	f, ok := stream(w).(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// terminalWidth returns how many characters a line of w has, 0 if w is not a terminal.
func terminalWidth(w io.Writer) int {
	f, ok := stream(w).(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// onTerminal reports whether w is a terminal that can show progress bars.
func onTerminal(w io.Writer) bool { return showsBars(terminalWidth(w), os.Getenv("TERM")) }

// showsBars reports whether a bar and its times fit into a line of a terminal with a number of columns, and can be
// redrawn there. A bar that is wrapped leaves its parts behind.
func showsBars(columns int, term string) bool {
	const steps = 9999 // a usual training has fewer
	return columns >= barWidth(steps)+len("elapsed 9h59m59s  remaining 9h59m59s") && term != "dumb"
}

// barWidth returns how many characters a bar of n steps or examples needs at least besides its description: a
// percentage and the count.
func barWidth(n int) int {
	return len(fmt.Sprintf(" 100%% || (%s/%[1]s) ", strconv.Itoa(n)))
}

// watcher shows the events of a training run, on a terminal by a bar with loss, speed and time left.
type watcher struct {
	w       io.Writer
	bar     *bar // that of steps; nil before the first one, or where none is shown
	onBar   bool
	written time.Time // of the last line of a step

	loss, tokens, seconds float64 // running means, for the bar
}

func newWatcher(w io.Writer, onBar bool) *watcher { return &watcher{w: w, onBar: onBar} }

func (t *watcher) event(event train.Event) error {
	switch v := event.(type) {
	case train.Step:
		if t.onBar && t.bar == nil {
			t.bar = barOn(t.w, "training")
			t.bar.before = v.Number - 1 // of a training that is resumed
		}
		switch {
		case v.Bad != nil:
			t.bar.clear()
			defer t.bar.reach(v.Number, v.Of)
			return writeWarning(t.w, events.SkippedWarning(v))
		case t.onBar:
			t.step(v)
		default:
			t.line(v)
		}
	case train.Evaluation:
		return t.bar.around(func() error { return writeEvaluation(t.w, v) })
	case events.Teacher:
		t.bar.clear()
		t.bar = nil
		how := "trained alone first"
		if v.Before {
			how = "trained alone before"
		}
		_, err := fmt.Fprintf(t.w, "teacher of %s, %s: %s\n", v.Task, how, v.Run)
		return err
	case train.Warning:
		return t.bar.around(func() error { return writeWarning(t.w, v) })
	}
	return nil
}

func (t *watcher) step(s train.Step) {
	const smoothed = 0.95 // weight of a running mean's old value
	if t.tokens == 0 {
		t.loss = s.Loss
	}
	t.loss = smoothed*t.loss + (1-smoothed)*s.Loss
	t.tokens, t.seconds = smoothed*t.tokens+float64(s.Tokens), smoothed*t.seconds+s.Time.Seconds()
	t.bar.notes = []string{"loss " + lossText(t.loss), fmt.Sprintf("%.0f tokens/s", t.tokens/max(t.seconds, 1e-9)),
		fmt.Sprintf("epoch %.1f", s.Epoch)}
	t.bar.reach(s.Number, s.Of)
}

// line writes a line for a step every few seconds, for a log file.
func (t *watcher) line(s train.Step) {
	const every = 10 * time.Second
	if time.Since(t.written) < every && s.Number < s.Of {
		return
	}
	t.written = time.Now()
	fmt.Fprintf(t.w, "step %d of %d  epoch %.2f  loss %s  rate %.3g  %.0f tokens/s\n", s.Number, s.Of, s.Epoch,
		lossText(s.Loss), s.Rate, s.TokensPerSecond())
}

// end removes the bar of a training that ended with err.
func (t *watcher) end(err error) {
	if err != nil && t.bar.isShown() {
		fmt.Fprintln(t.w) // leave the bar in place: it shows how far training came
		return
	}
	t.bar.clear()
}

// writeEvaluation writes the table of an evaluation in training, and the weighted mean that selects the best.
func writeEvaluation(w io.Writer, e train.Evaluation) error {
	fmt.Fprintf(w, "dev after epoch %.4g:\n", e.Epoch)
	if err := writeMetrics(w, e.Groups); err != nil || e.Weighted == nil {
		return err
	}
	_, err := fmt.Fprintf(w, "%s %.2f: the mean by the weights of metric_for_best_model\n", report.Weighted,
		100**e.Weighted)
	return err
}

func writeWarning(w io.Writer, of train.Warning) error {
	_, err := fmt.Fprintln(w, warning("%s", of.Text))
	return err
}

// showPass shows a pass over streamed training data: a bar on a terminal, else a line when it begins.
func (c *commands) showPass(name string) (progress func(done, of int)) {
	if bar := c.newBar(name, true); bar != nil {
		return bar.reach
	}
	begun := false
	return func(_, of int) {
		if !begun {
			fmt.Fprintf(c.log, "%s: %d\n", name, of)
		}
		begun = true
	}
}
