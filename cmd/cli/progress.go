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
)

// progress is a bar in a line of a terminal: what is done, the time elapsed and remaining, and notes, as many as fit.
type progress struct {
	*progressbar.ProgressBar
	what  string
	notes []string

	w     io.Writer
	n     int // steps or examples, without those that were skipped
	done  int
	start time.Time
}

// newBar returns a bar of n steps or examples in a line of the terminal w.
func newBar(w io.Writer, n int) *progress {
	bar := progressbar.NewOptions(n,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(),
		progressbar.OptionSetPredictTime(false), // Add describes both times
		progressbar.OptionSetElapsedTime(false),
		progressbar.OptionFullWidth(),
		progressbar.OptionUseANSICodes(true),
		progressbar.OptionThrottle(100*time.Millisecond),
	)
	return &progress{ProgressBar: bar, w: w, n: n, start: time.Now()}
}

// skip begins the bar after n steps or examples that were done before.
func (p *progress) skip(n int) {
	if n > 0 {
		p.n -= n
		p.ProgressBar.Add(n)
	}
}

// Add adds n steps or examples that are done.
func (p *progress) Add(n int) error {
	p.done += n
	p.Describe(description(terminalWidth(p.w)-barWidth(p.GetMax()), p.what, time.Since(p.start), p.done, p.n, p.notes))
	return p.ProgressBar.Add(n)
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
