package report

import (
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// Growth is the event at the start of a training that continues a run: what it takes over.
type Growth struct {
	Run     string // folder of the run, or of a checkpoint
	Fusion  string // type of the fusion, whose parameters are taken over
	Tasks   []GrownTask
	Dropped []string // tasks of the run that the model does not have
	Learns  bool     // the encoder that tasks share changes
}

// What becomes of a task of a Growth.
const (
	TrainedOn = "trained on"
	Rehearsed = "rehearsed"
	Kept      = "kept"
	New       = "new"
)

// GrownTask is a task of a Growth.
type GrownTask struct {
	Task, From string // From is its name in the run; "": it is new
	State      string // TrainedOn, Rehearsed, Kept or New
	Heads      []GrownHead
	Dropped    []string // heads of the run's task that the model does not have
}

// GrownHead is a head of a GrownTask.
type GrownHead struct {
	Head, From string   // From is its name in the run; "": it is new
	Labels     int      // their number
	NewLabels  []string // that the run's head lacks; none of a new head
}

// Lines describes the growth, a line for the run and one for each task.
func (g Growth) Lines() []string {
	lines := []string{fmt.Sprintf("continues the run %s, with its encoder and its fusion (%s):", g.Run, g.Fusion)}
	for _, task := range g.Tasks {
		what := []string{task.State}
		if task.State == Kept && g.Learns {
			what[0] += " and not rehearsed beside an encoder that learns"
		}
		if task.From != "" && task.From != task.Task {
			what[0] += ", its " + task.From
		}
		for _, head := range task.Heads {
			switch n := len(head.NewLabels); {
			case task.From != "" && head.From == "":
				what = append(what, fmt.Sprintf("head %s new", head.Head))
			case n > 0:
				shown := head.NewLabels[:min(n, 5)]
				more := ""
				if n > len(shown) {
					more = ", …"
				}
				what = append(what, fmt.Sprintf("head %s with %s: %s%s", head.Head, plugin.Count(n, "new label"),
					strings.Join(shown, ", "), more))
			}
		}
		for _, name := range task.Dropped {
			what = append(what, fmt.Sprintf("head %s dropped", name))
		}
		lines = append(lines, fmt.Sprintf("  task %s: %s", task.Task, strings.Join(what, "; ")))
	}
	for _, name := range g.Dropped {
		lines = append(lines, fmt.Sprintf("  task %s: dropped", name))
	}
	return lines
}

// growthLine is the JSON of a Growth.
type growthLine struct {
	Event   string                   `json:"event"`
	Run     string                   `json:"run"`
	Fusion  string                   `json:"fusion"`
	Tasks   map[string]grownTaskLine `json:"tasks"`
	Dropped []string                 `json:"dropped,omitempty"`
}

type grownTaskLine struct {
	State   string                   `json:"state"`
	From    string                   `json:"from,omitempty"`
	Heads   map[string]grownHeadLine `json:"heads"`
	Dropped []string                 `json:"dropped,omitempty"`
}

type grownHeadLine struct {
	From      string   `json:"from,omitempty"`
	Labels    int      `json:"labels"`
	NewLabels []string `json:"new_labels,omitempty"`
}

func (g Growth) line() growthLine {
	line := growthLine{
		Event: "base", Run: g.Run, Fusion: g.Fusion, Tasks: map[string]grownTaskLine{}, Dropped: g.Dropped,
	}
	for _, task := range g.Tasks {
		t := grownTaskLine{
			State: task.State, From: task.From, Heads: map[string]grownHeadLine{}, Dropped: task.Dropped,
		}
		for _, head := range task.Heads {
			t.Heads[head.Head] = grownHeadLine{head.From, head.Labels, head.NewLabels}
		}
		line.Tasks[task.Task] = t
	}
	return line
}
