package report

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/plugin"
)

// State is how far a training run has come, by its metrics file.
type State struct {
	Step  int    `json:"step"`         // the last one that the file has
	Of    int    `json:"of,omitempty"` // the number of steps that the plan has, 0 if unknown
	Ended string `json:"-"`            // event that ends the file: done, interrupted, error; "" after a kill
	Error string `json:"-"`            // of an error
	Done  string `json:"-"`            // the line of the event done; "" where training has not come to its end
}

// String describes the state of a run that is not done, and that is not being trained.
func (s State) String() string {
	text := "training of this run was interrupted " + s.After()
	if s.Ended == "error" {
		first, _, _ := strings.Cut(s.Error, "\n")
		text = fmt.Sprintf("training of this run ended with an error %s: %s", s.After(), first)
	}
	return text
}

// After describes the last step: "after step 3 of 80".
func (s State) After() string {
	switch {
	case s.Step == 0:
		return "before the first step"
	case s.Of == 0:
		return fmt.Sprintf("after step %d", s.Step)
	}
	return fmt.Sprintf("after step %d of %d", s.Step, s.Of)
}

// maxMetricsLine bounds the bytes of a line of a metrics file, which may have a table of all pairs of labels.
const maxMetricsLine = 256 << 20

// LineError is the error of a line of a metrics file that cannot be read.
type LineError struct {
	Line  int    // from 1
	Event string // of the line, the last one of it
	Err   error
}

// Error implements error.
func (e *LineError) Error() string {
	return fmt.Sprintf("the last line of event %q: %v", e.Event, e.Err)
}

// Unwrap returns the cause.
func (e *LineError) Unwrap() error { return e.Err }

// ReadState reads a metrics file. After a kill, the last step that is logged or evaluated may be earlier than the last
// one of the training. With a *LineError the state is what the other lines say.
func ReadState(metrics io.Reader) (State, error) {
	// the last line of each event; its name is at the start of the line
	last, numbers, ended, done := map[string][]byte{}, map[string]int{}, "", ""
	lines := bufio.NewScanner(metrics)
	lines.Buffer(nil, maxMetricsLine)
	lines.Split(completeLines)
	for number := 1; lines.Scan(); number++ {
		rest, ok := bytes.CutPrefix(lines.Bytes(), []byte(`{"event":"`))
		name, _, closed := bytes.Cut(rest[:min(len(rest), 16)], []byte(`"`))
		switch event := string(name); {
		case !ok || !closed:
			continue
		case event == "step" || event == "skipped" || event == "eval" || event == "interrupted" || event == "error":
			last[event], numbers[event] = append(last[event][:0], lines.Bytes()...), number
			ended = event
		default:
			if ended = event; event == "done" {
				done = lines.Text()
			}
		}
	}
	if err := lines.Err(); err != nil {
		return State{}, err
	}

	var state State
	planned := 0 // line that state.Of is of
	var damaged *LineError
	for event, line := range last {
		var at struct {
			Step, Of int
			Error    string
		}
		if err := json.Unmarshal(line, &at); err != nil {
			if damaged == nil || numbers[event] < damaged.Line { // the first of several
				damaged = &LineError{numbers[event], event, err}
			}
			continue
		}
		state.Step = max(state.Step, at.Step)
		if at.Of > 0 && numbers[event] > planned { // the plan of a resumed training may be another
			state.Of, planned = at.Of, numbers[event]
		}
		if event == "error" {
			state.Error = at.Error
		}
	}
	if ended == "done" || ended == "interrupted" || ended == "error" {
		state.Ended = ended
	}
	if ended == "done" {
		state.Done = done
	}
	if damaged != nil {
		return state, damaged
	}
	return state, nil
}

// completeLines is a bufio.SplitFunc for lines without their ends. The last line is left out if it has no end: it was
// being written when its process was killed.
func completeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if end := bytes.IndexByte(data, '\n'); end >= 0 {
		return end + 1, data[:end], nil
	}
	if atEOF {
		return len(data), nil, nil
	}
	return 0, nil, nil
}

// ReadStateFile is ReadState of the file at path. Without one a run has not begun. Errors begin with the place.
func ReadStateFile(path string) (State, error) {
	file, err := files.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return State{}, nil
	}
	if err != nil {
		return State{}, err
	}
	defer file.Close()
	state, err := ReadState(file)
	var damaged *LineError
	switch {
	case errors.As(err, &damaged):
		err = fmt.Errorf("%s:%d: %w", path, damaged.Line, err)
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	}
	return state, err
}

// CheckFinished returns how far the training of the run in folder came, with a warning, if it did not come to its end,
// by its metrics file; else nil.
func CheckFinished(folder string) (*State, []plugin.Warning) {
	path := filepath.Join(folder, runfolder.MetricsFile)
	if !runfolder.Exists(path) { // copied without it
		return nil, nil
	}
	state, err := ReadStateFile(path)
	var damaged *LineError
	switch {
	case errors.As(err, &damaged):
		return nil, []plugin.Warning{plugin.Warn(plugin.Place{File: path, Line: damaged.Line}, "%v", damaged)}
	case err != nil:
		return nil, []plugin.Warning{plugin.Warn(plugin.Place{}, "%v", err)}
	}
	if state.Ended == "done" {
		return nil, nil
	}
	text, at := state.String(), strings.TrimPrefix(state.After(), "after ")
	switch err := runfolder.CheckUnlocked(folder); {
	case errors.Is(err, runfolder.ErrLocked):
		text = fmt.Sprintf("this run is still being trained (%s)", at)
	case err != nil && state.Ended == "":
		text = fmt.Sprintf("training of this run was interrupted, or still goes on (%s): %v", at, err)
	case runfolder.Exists(filepath.Join(folder, runfolder.LastDir, runfolder.SnapshotFile)):
		text += fmt.Sprintf("; %v %s finishes it", runfolder.ResumeArgument, folder)
	}
	return &state, []plugin.Warning{plugin.Warn(plugin.Place{File: folder}, "%s", text)}
}
