package merge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// Rename gives a task another name in the merged run.
type Rename struct {
	Run        int // from 0
	Task, Name string
}

// Merge is trained runs that are open to be merged.
type Merge struct {
	Options  Options // with all defaults filled in
	Warnings []plugin.Warning

	sources []*source
	base    checkpoint.Encoder
}

// Open opens runs that have a base model in common. base is its folder, "" where it is where the runs were trained
// from. The caller closes the Merge.
func Open(ctx context.Context, folders []string, o Options, renames []Rename, base string) (m *Merge, err error) {
	if len(folders) < 2 {
		return nil, fmt.Errorf("%s to merge; want at least two", plugin.Count(len(folders), "run"))
	}
	m = &Merge{}
	if m.Options, err = o.filled(len(folders)); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()

	// runs
	var wrong []error
	for _, folder := range folders {
		s, err := openSource(ctx, folder)
		if err != nil && ctx.Err() != nil {
			return m, ctx.Err()
		}
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		m.sources = append(m.sources, s)
		m.Warnings = append(m.Warnings, s.opened.Warnings...)
	}
	if wrong != nil {
		return m, errors.Join(wrong...)
	}

	// what they have in common; without a base model it cannot be mended, as names can
	for _, s := range m.sources {
		_, err := s.base()
		wrong = append(wrong, err)
	}
	if err := errors.Join(wrong...); err != nil {
		return m, err
	}
	for _, r := range renames {
		if r.Run < 0 || r.Run >= len(m.sources) {
			return m, fmt.Errorf("%w: run %d of %d", plugin.Argument("rename"), r.Run+1, len(m.sources))
		}
		wrong = append(wrong, m.sources[r.Run].rename(r.Task, r.Name))
	}
	if err := errors.Join(append(wrong, checkNames(m.sources), checkParts(m.sources),
		checkAdapters(m.sources))...); err != nil {
		return m, err
	}
	m.base, err = commonBase(ctx, m.sources, base)
	return m, err
}

// Close closes the runs.
func (m *Merge) Close() {
	for _, s := range m.sources {
		s.opened.Close()
	}
}

// Check returns an error if the merged run cannot be written to folder.
func (m *Merge) Check(folder string, force bool) error {
	return checkpoint.CheckMade(folder, force, m.inputs())
}

// CheckRefit returns the mistakes of the merged run's experiment for folder with the values of sets, KEY=VALUE, by
// which its heads are trained again. Paths in them are from the working directory: those of the merged run's file would
// be from a folder that may not exist yet.
func (m *Merge) CheckRefit(ctx context.Context, folder string, sets []string) error {
	if firstAdapted(m.sources) != nil { // a merge does nothing to them that training would mend
		return fmt.Errorf("%w: the tasks have changes of the encoder of their own (lora: {per_task: true}), and "+
			"predict as in their own runs; leave it out", plugin.Argument("refit"))
	}
	e, _, err := joinedExperiment(m.sources, folder)
	if err != nil {
		return err
	}
	e.Model.SetBase(m.base.Folder) // the merged encoder is of its type
	var text bytes.Buffer
	if err := e.Write(&text, "."); err != nil {
		return err
	}
	const file = runfolder.ExperimentFile
	joined, err := config.Parse(ctx, file, text.Bytes(), sets)
	return m.atRuns(err, joined, file)
}

func (m *Merge) inputs() []string {
	var all []string
	for _, s := range m.sources {
		all = append(all, s.opened.Folder, s.opened.About.Encoder.Folder)
	}
	return append(all, m.base.Folder)
}

// Write writes the merged run to folder, in place of an earlier run if force is true, which stays where check, if any,
// returns an error of the new one. It changes the weights of the runs that are open, so that they must not be
// evaluated afterwards.
func (m *Merge) Write(ctx context.Context, folder string, force bool, check func() error) error {
	first := m.sources[0]
	made := checkpoint.Made{Inputs: m.inputs(), Check: check}
	var err error
	var warnings []plugin.Warning
	if made.Experiment, warnings, err = joinedExperiment(m.sources, folder); err != nil {
		return err
	}
	m.Warnings = append(m.Warnings, warnings...)
	made.Model.Adapters, made.Model.About.Tasks = joinedAdapters(m.sources), joinedTasks(m.sources)
	if made.Model.Params, err = joinedParams(m.sources); err != nil {
		return err
	}

	// encoder, where not all runs have the base model's
	if slices.ContainsFunc(m.sources, func(s *source) bool { return s.opened.About.Encoder.Copied() }) {
		made.Model.Tokenizer = first.opened.Data.Tokenizer
		if made.Origin, err = m.about(); err != nil {
			return err
		}
		if made.Model.Encoder, err = m.encoder(); err != nil {
			return err
		}
	} else {
		made.Model.About.Encoder = first.opened.About.Encoder
	}
	return made.Write(ctx, folder, force)
}

// encoder merges the weights in the encoder of the first run, and returns what saves it.
func (m *Merge) encoder() (save func(folder string) error, err error) {
	first := m.sources[0]
	encoder := first.opened.Model.Encoder.Describe()
	if encoder.Save == nil {
		return nil, fmt.Errorf("%s: its encoder cannot be saved", first.folder)
	}

	// the parameters, in the order of the first run
	named, closeBase, err := openBase(first, m.base)
	if err != nil {
		return nil, err
	}
	defer closeBase()
	params := multitask.EncoderParams(first.opened.Model.Params).All()
	if len(params) == 0 {
		return nil, fmt.Errorf("%s: its encoder has its weights in a memory of its own", first.folder)
	}
	base, err := valuesOf(named, params, "base model "+m.base.Folder)
	if err != nil {
		return nil, err
	}
	runs := make([][][]float32, len(m.sources))
	for r, s := range m.sources {
		own := byName(multitask.EncoderParams(s.opened.Model.Params).All())
		if runs[r], err = valuesOf(own, params, s.folder); err != nil {
			return nil, err
		}
	}

	// their combination
	c := newCombination(m.Options, base, runs)
	merged := make([][]float32, len(params))
	for i, w := range params {
		var values [][]float32
		for _, run := range runs {
			values = append(values, run[i])
		}
		merged[i] = c.of(w.Name, base[i], values)
		if at := floats.NotFinite(merged[i]); at >= 0 {
			return nil, fmt.Errorf("parameter %q is %v at index %d after merging; want a smaller %w", w.Name,
				merged[i][at], at, plugin.Argument("scale"))
		}
	}
	for i, w := range params {
		w.Data = merged[i]
		w.Changed()
	}
	return encoder.Save(nil), nil
}

// valuesOf returns the values of the parameters of a model that have the names and shapes of params, in their order.
func valuesOf(named map[string]*nn.Param, params []*nn.Param, of string) (all [][]float32, err error) {
	for _, w := range params {
		own := named[w.Name]
		if own == nil || !slices.Equal(own.Shape, w.Shape) {
			return nil, fmt.Errorf("%s: no parameter %q of shape %v", of, w.Name, w.Shape)
		}
		all = append(all, own.Data)
	}
	return all, nil
}

func (m *Merge) about() ([]byte, error) {
	type origin struct {
		Folder string            `json:"folder"`
		Weight float64           `json:"weight"`
		Tasks  map[string]string `json:"tasks"` // names in the merged run
	}
	about := struct {
		Jenga   string             `json:"jenga"`
		Method  string             `json:"method"`
		Scale   float64            `json:"scale"`
		Density float64            `json:"density,omitempty"`
		Seed    *uint64            `json:"seed,omitempty"`
		Base    checkpoint.Encoder `json:"base"`
		Runs    []origin           `json:"runs"`
	}{
		Jenga: checkpoint.Version, Method: m.Options.Method, Scale: m.Options.Scale, Density: m.Options.Density,
		Base: m.base,
	}
	if m.Options.Method == DARE {
		about.Seed = &m.Options.Seed
	}
	for r, s := range m.sources {
		about.Runs = append(about.Runs, origin{s.folder, m.Options.Weights[r], s.names})
	}
	text, err := json.MarshalIndent(about, "", "  ")
	return append(text, '\n'), err
}

// Figure is the main metric of a head on dev: in its own run, in the merged run, and there after heads are trained
// again; nil where it is unknown.
type Figure struct {
	Run      string   `json:"run"` // its own
	Task     string   `json:"task"`
	Head     string   `json:"head"`
	Metric   string   `json:"metric,omitempty"`
	Before   *float64 `json:"before"`
	Merged   *float64 `json:"merged"`
	Refitted *float64 `json:"refitted,omitempty"`
}

// Before evaluates the runs on dev and returns the figures of all heads, by their tasks' names in the merged run.
func (m *Merge) Before(ctx context.Context) ([]Figure, error) {
	var all []Figure
	for _, s := range m.sources {
		heads, warnings, err := s.opened.EvaluateDev(ctx, nil)
		if err != nil {
			return nil, err
		}
		m.Warnings = append(m.Warnings, warnings...)
		for _, h := range heads {
			all = append(all, Figure{Run: s.folder, Task: s.names[h.Task], Head: h.Head, Metric: h.Metric,
				Before: h.Before})
		}
	}
	return all, nil
}

// After sets the figures of the merged run in folder.
func After(ctx context.Context, figures []Figure, folder string) error {
	opened, err := predict.OpenRun(ctx, folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	heads, _, err := opened.EvaluateDev(ctx, nil)
	for i, h := range heads { // those of the runs, in their order
		figures[i].Merged = h.Before
	}
	return err
}

// Refitted sets the figures of the merged run after its heads are trained again, by the evaluation of its best model.
func Refitted(figures []Figure, best train.Evaluation) {
	for i := range figures {
		_, figures[i].Refitted = report.MainMetric(best.Groups, figures[i].Task, figures[i].Head)
	}
}
