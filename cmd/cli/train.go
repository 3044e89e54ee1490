package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/spf13/cobra"
)

// defaultFile is the experiment that commands take where none is named.
const defaultFile = "experiment.yaml"

type trainFlags struct {
	set    []string
	device deviceFlag
	out    string
	force  bool
	json   bool

	resume  bool
	allowed []string // resume.Changes that may differ
	allows  bool     // allowed is given

	student *studentFlags // of a run, which is trained in place of a file's model; nil: of none
}

func (c *commands) trainCommand() *cobra.Command {
	var f trainFlags
	cmd := &cobra.Command{
		Use:   "train [FILE]",
		Short: "Train the model of an experiment file",
		Args:  between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.allows = cmd.Flags().Changed("allow-changes")
			if err := f.check(); err != nil {
				return err
			}
			if f.resume && len(args) == 0 {
				return c.train(cmd.Context(), f, "")
			}
			return c.train(cmd.Context(), f, fileOf(args))
		},
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil,
		"override `KEY=VALUE` of the file, such as training.num_epochs=1; may be repeated")
	f.device.flag(cmd, "", " (default: training.device of the file)")
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "run folder (default runs/PROJECT_NAME)")
	cmd.Flags().BoolVar(&f.force, "force", false,
		"replace the run that the folder holds: it is kept until the new one has its first checkpoint")
	cmd.Flags().BoolVar(&f.resume, "resume", false, "go on with a training that was interrupted")
	cmd.Flags().StringSliceVar(&f.allowed, "allow-changes", nil,
		"with --resume, `WHAT` may differ from when the checkpoint was saved: "+strings.Join(resume.Changes, ", "))
	cmd.Flags().BoolVar(&f.json, "json", false,
		"events as JSON lines on stdout, no bars; the last is done, interrupted or error")
	return cmd
}

func fileOf(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return defaultFile
}

// train trains in this process, together with others where a launcher has started several. The first of them writes the
// run folder and all output.
func (c *commands) train(ctx context.Context, f trainFlags, file string) error {
	together, err := launch(c.threads, c.log)
	if err != nil {
		return together.end(err)
	}
	own := *c
	own.ranks = together
	if !together.first() {
		own.out, own.log, f.json = io.Discard, io.Discard, false
	}
	lost := own.lastingOutputs(f.json)
	return together.end(cmp.Or(own.trainHere(ctx, f, file), lost()))
}

// trainHere prepares and trains in this process, and reports how that has ended.
func (c *commands) trainHere(ctx context.Context, f trainFlags, file string) error {
	prepare := c.prepareFile
	if f.resume {
		prepare = c.prepareResumed
	}
	var done events.Done
	ready, folder, err := prepare(ctx, f, file)
	if err == nil && ready != nil {
		var show func(train.Event) error
		if f.json {
			show = func(event train.Event) error { return writeLine(c.out, events.Line(event)) }
		}
		if done, err = c.trainShown(ctx, ready, folder, show); err == nil {
			err = c.writeDone(f, done, ready.Data.Experiment)
		}
	}
	err = withFlags(err)
	if err != nil && f.json {
		// if stdout is what has failed, err says so
		writeLine(c.out, events.Line(events.Ended{Done: done, Err: err}))
	}
	switch ended := (events.Ended{Done: done, Err: err}); {
	case errors.Is(err, context.Canceled):
		return interruption{ended}
	case err != nil && done.Folder != "":
		return fmt.Errorf("%w\ntraining ended %s", err, leftBy(done)+changing(err, done))
	}
	return err
}

// changing returns what the command of goOn needs besides after an error, without which it would end with the same one:
// a step with a bad loss is repeated, and data that has changed is refused.
func changing(err error, done events.Done) string {
	if done.Resume != "" && errors.Is(err, corpus.ErrChanged) {
		return ", with the file as it was, or with the changed one by --allow-changes data"
	}
	var bad *multitask.BadStep
	if goOn(done) == "" || !errors.As(err, &bad) {
		return ""
	}
	allowed := ""
	if done.Resume != "" { // else training starts from the beginning, and any option may change
		allowed = " --allow-changes experiment"
	}
	switch {
	case bad.Remedy == multitask.LowerRate:
		return " --set training.learning_rate=RATE" + allowed + ", with a lower RATE"
	case bad.Remedy == multitask.SkipSteps && done.Skipped == 0: // else skip is set already
		return " --set training.on_bad_loss=skip" + allowed
	}
	return ""
}

// goOn returns the command that goes on with a training, or starts it again, "" if there is none.
func goOn(done events.Done) string {
	switch {
	case done.Resume == filepath.Join(done.Folder, runfolder.LastDir):
		return "go on by jenga train --resume " + done.Folder
	case done.Resume != "":
		return "go on by jenga train --resume " + done.Resume
	case done.Folder != "" && !runfolder.HasModel(done.Folder) && runfolder.IsRun(done.Folder):
		if teachersIn(done.Folder) != "" {
			return "go on by jenga train --resume " + done.Folder
		}
		return "start again by jenga train --resume " + done.Folder
	}
	return ""
}

// teachersIn returns the folder of teachers of a run, which one without a checkpoint goes on with; "" if there is none.
func teachersIn(folder string) string {
	if teachers := filepath.Join(folder, runfolder.TeachersDir); runfolder.IsFolder(teachers) {
		return teachers
	}
	return ""
}

// experiment returns the experiment to be trained: that of a file, or of a run's student.
func (c *commands) experiment(ctx context.Context, f trainFlags, file string) (*config.Experiment, error) {
	if f.student != nil {
		return c.studentOf(ctx, f)
	}
	return config.Read(ctx, file, f.device.over(f.set))
}

// prepareFile prepares the training of an experiment file, or of a run's student, and returns it with its run folder.
func (c *commands) prepareFile(ctx context.Context, f trainFlags, file string) (ready *run.Run, folder string,
	err error) {
	if f.student == nil {
		if err := c.ranks.inTurn(func() error { return c.unpack(file) }); err != nil {
			return nil, "", err
		}
	}
	err = c.ranks.agree(func() error {
		e, err := c.experiment(ctx, f, file)
		if err != nil {
			return err
		}
		folder = run.Folder(e, f.out)
		if err := run.CheckFolder(e, folder, f.force); err != nil {
			return err
		}
		if c.ranks.first() { // the one that writes
			if err := runfolder.CheckNew(folder); err != nil {
				return err
			}
		}
		ready, err = c.ready(ctx, e, config.Train, config.Dev)
		return err
	}())
	if err != nil {
		return nil, "", err
	}
	ready.Keep = !f.force // another training may have written a run to the folder meanwhile
	return ready, folder, nil
}

// trainShown trains a run in a folder, and shows its events by show, or on the log where that is nil. It returns how
// far training came, even with an error.
func (c *commands) trainShown(ctx context.Context, ready *run.Run, folder string, show func(train.Event) error) (
	events.Done, error) {
	log := newWatcher(c.log, onTerminal(c.log))
	if show == nil {
		show = log.event
	}
	done, err := ready.Train(ctx, folder, show)
	log.end(err)
	return done, err
}

func (c *commands) writeDone(f trainFlags, done events.Done, e *config.Experiment) error {
	if f.json {
		return writeLine(c.out, events.Line(done))
	}
	since := ""
	if done.Since > 0 {
		since = fmt.Sprintf(" of the evaluations since step %d,", done.Since)
	}
	if len(done.Best.Groups) > 0 {
		fmt.Fprintf(c.out, "best on dev%s after epoch %.4g, by %s:\n", since, done.Best.Epoch, done.Metric)
		if err := writeMetrics(c.out, done.Best.Groups); err != nil {
			return err
		}
	}
	if len(done.Best.Groups) == 0 && done.Since > 0 {
		fmt.Fprintf(c.out, "no evaluation after step %d: %s is the last model\n", done.Since,
			filepath.Join(done.Folder, runfolder.BestDir))
	}
	if done.Skipped > 0 {
		fmt.Fprintf(c.out, "%s no update, because of a bad loss\n", plugin.Count(done.Skipped, "step")+
			plugin.Agree(done.Skipped, " has", " have"))
	}
	if err := writeOld(c.out, done.Old); err != nil {
		return err
	}
	_, err := fmt.Fprintf(c.out, "trained in %s; the model is in %s\n%s",
		time.Duration(done.Seconds*float64(time.Second)).Round(time.Second/10), done.Folder,
		moreEpochs(done, e.Training))
	return err
}

// moreEpochs returns advice to train on a run whose best epoch is its last of several, "" for another one, and for one
// that has no state to train on from. Who sets max_steps has chosen where training ends.
func moreEpochs(done events.Done, t config.Training) string {
	end := filepath.Join(done.Folder, runfolder.LastDir, runfolder.EndFile)
	if t.Epochs < 2 || t.MaxSteps > 0 || done.Step < done.Of || done.Best.Step < done.Step || !runfolder.Exists(end) {
		return ""
	}
	return fmt.Sprintf("the best epoch was the last: more of them may be better, by jenga train --resume %s --set "+
		"training.num_epochs=%d\n", shellWord(done.Folder), 2*t.Epochs)
}

// interruption is the error of a training that a signal ended: it names the last step, the checkpoint that is left, and
// what has failed besides.
type interruption struct{ ended events.Ended }

func (i interruption) Error() string {
	text := "interrupted " + leftBy(i.ended.Done)
	if failure := i.ended.Failure(); failure != nil {
		text += "\n" + failure.Error()
	}
	return text
}

// leftBy describes how far a training came that did not come to its end, the best checkpoint that is left, and how to
// go on.
func leftBy(done events.Done) string {
	text := report.State{Step: done.Step, Of: done.Of}.After()
	switch {
	case done.Checkpoint() != "":
		text += fmt.Sprintf("; best so far: epoch %.4g in %s", done.Best.Epoch, done.Checkpoint())
	case done.Resume != "" && runfolder.Exists(filepath.Join(done.Folder, runfolder.ReplacedDir)):
		text += fmt.Sprintf("; the run from before is in %s until this one has been evaluated",
			filepath.Join(done.Folder, runfolder.ReplacedDir))
	case done.Resume != "" || done.Folder == "":
	case runfolder.HasModel(done.Folder):
		text += fmt.Sprintf("; no checkpoint yet; %s holds the run from before", done.Folder)
	case runfolder.IsRun(done.Folder):
		text += "; no checkpoint yet"
		if teachers := teachersIn(done.Folder); teachers != "" {
			text += ", but teachers in " + teachers
		}
	}
	if command := goOn(done); command != "" {
		text += "; " + command
	}
	return text
}

// read reads an experiment file, with its mistakes and those of its data, and makes it ready for training.
func (c *commands) read(ctx context.Context, file string, set []string, splits ...string) (*run.Run, error) {
	if err := c.unpack(file); err != nil {
		return nil, err
	}
	e, err := config.Read(ctx, file, set)
	if err != nil {
		return nil, run.Mistakes(ctx, e, err, splits...)
	}
	return c.ready(ctx, e, splits...)
}

// ready prepares an experiment for training and writes the warnings.
func (c *commands) ready(ctx context.Context, e *config.Experiment, splits ...string) (*run.Run, error) {
	e.Several = c.ranks != nil
	ready, err := run.Prepare(ctx, e, c.showPass, splits...)
	if err != nil {
		return nil, err
	}
	if err := c.ranks.use(ready); err != nil {
		return nil, err
	}
	c.warn(ready.Warnings)
	c.tellDevice(ready)
	if ready.Growth != nil {
		fmt.Fprintln(c.log, strings.Join(ready.Growth.Lines(), "\n"))
	}
	return ready, nil
}

// unpack writes file and its data if it does not exist and is one of the experiments that ship with jenga.
func (c *commands) unpack(file string) error {
	wrote, err := experiments.Unpack(file)
	for _, path := range wrote {
		fmt.Fprintf(c.log, "wrote %s, which ships with jenga\n", path)
	}
	return err
}

func (f trainFlags) check() error {
	if f.allows && (len(f.allowed) == 0 || slices.Contains(f.allowed, "")) {
		return usageErrorf("--allow-changes %q: an empty name; want some of %s, joined by commas",
			strings.Join(f.allowed, ","), strings.Join(resume.Changes, ", "))
	}
	for _, what := range f.allowed {
		if !slices.Contains(resume.Changes, what) {
			return usageErrorf("--allow-changes %s: want %s", what, strings.Join(resume.Changes, ", "))
		}
	}
	switch err := f.device.check(); {
	case err != nil:
		return err
	case f.resume && f.force:
		return usageErrorf("--resume goes on with a run, --force replaces it; want one of them")
	case len(f.allowed) > 0 && !f.resume:
		return usageErrorf("--allow-changes has no effect without --resume")
	}
	return nil
}

// prepareResumed prepares a training for going on: of the experiment file or the run folder called name; without a name
// of the run in --out, in the working directory, or of the default experiment file. It returns no run where the
// training has come to its end, which it writes.
func (c *commands) prepareResumed(ctx context.Context, f trainFlags, name string) (ready *run.Run, folder string,
	err error) {
	folder, file, err := c.resumed(ctx, f, name)
	if err != nil {
		return nil, "", err
	}
	var found resume.Unfinished
	err = c.ranks.inTurn(func() error {
		found, err = resume.Find(ctx, folder)
		return err
	})
	if err == nil {
		err = c.ranks.same(found)
	}
	switch {
	case err != nil:
		return nil, "", err
	case found.Done() && file == "" && len(f.set) == 0 && f.device == "":
		return nil, "", c.writeFinished(f, found)
	case file == "" && found.File == "":
		return nil, "", noRun(folder)
	case file == "":
		file = found.File
	}
	err = c.ranks.agree(func() (err error) {
		ready, err = c.readyToResume(ctx, f, found, file)
		return err
	}())
	return ready, found.Folder, err
}

// readyToResume prepares a training that was found for going on, with the experiment of a file.
func (c *commands) readyToResume(ctx context.Context, f trainFlags, found resume.Unfinished, file string,
) (*run.Run, error) {
	e, err := config.Read(ctx, file, f.device.over(f.set))
	if err != nil {
		return nil, err
	}
	if c.ranks.first() {
		if err := runfolder.CheckWritable(found.Folder); err != nil {
			return nil, err
		}
	}
	e.Several = c.ranks != nil
	if found.Done() {
		if changed, err := found.Changed(e); err != nil || !changed {
			return nil, cmp.Or(err, c.writeFinished(f, found))
		}
	}
	if found.Checkpoint == "" {
		if err := run.CheckFolder(e, found.Folder, true); err != nil {
			return nil, err
		}
		with := ""
		if teachers := teachersIn(found.Folder); teachers != "" {
			with = ", with what " + teachers + " has by the same options"
		}
		fmt.Fprintf(c.log, "%s: no checkpoint to resume from: training starts from the beginning%s\n", found.Folder,
			with)
		return c.ready(ctx, e, config.Train, config.Dev)
	}
	ready, err := run.Resume(ctx, e, found.Point, c.showPass, f.allowed)
	if err != nil {
		return nil, err
	}
	ready.Restored = func(after report.State, anew string) {
		fmt.Fprintf(c.log, "training goes on %s, from %s\n", after.After(), found.Checkpoint)
		if anew != "" {
			fmt.Fprintln(c.log, anew)
		}
	}
	c.tellDevice(ready)
	return ready, c.ranks.use(ready)
}

// tellDevice writes what the encoder is trained on, in a program that has the choice.
func (c *commands) tellDevice(ready *run.Run) {
	if encoders.CUDA != nil {
		fmt.Fprintf(c.log, "the encoder computes on %s\n", onDevice(ready.Model.Encoder.Describe().Device))
	}
}

// noRun returns the error of a folder that is to be resumed and holds no run. A training may have been killed while it
// read its data, before it had a run folder.
func noRun(folder string) error {
	const want = "; want that of a run, or an experiment file"
	text := folder + ": no such folder" + want
	if runfolder.Exists(folder) {
		text = fmt.Sprintf("%s: no run to resume: the folder has no %s%s", folder, runfolder.ExperimentFile,
			cmp.Or(runfolder.RunsIn(folder), want))
	} else if near := config.Near(folder); near != "" { // the name is a mistake, which no run is to have
		return fmt.Errorf("%s: no such folder%s", folder, near)
	}
	if runfolder.CheckFree(folder, false) != nil { // it holds something else
		return errors.New(text)
	}
	return fmt.Errorf("%s; a training that was killed before this was a run begins again by jenga train --resume FILE "+
		"--out %s", text, shellWord(folder))
}

// resumed returns the run folder, or the checkpoint, to resume, and the experiment file that was named, "" if none was.
// What the first process finds counts for all, since they may see files at other times.
func (c *commands) resumed(ctx context.Context, f trainFlags, name string) (folder, file string, err error) {
	folder, err = c.ranks.ofFirst(func() (string, error) { return f.resumedFolder(name) })
	if err != nil || folder != "" {
		return folder, "", err
	}
	if name == "" {
		name = defaultFile
	}
	if err := c.ranks.inTurn(func() error { return c.unpack(name) }); err != nil {
		return "", "", err
	}
	e, err := config.Read(ctx, name, f.device.over(f.set))
	if err := c.ranks.agree(err); err != nil {
		return "", "", err
	}
	return run.Folder(e, f.out), name, nil
}

// resumedFolder returns the run folder, or the checkpoint, that name or the flags name, "" where name is an experiment
// file.
func (f trainFlags) resumedFolder(name string) (string, error) {
	switch {
	case name == "" && f.out != "":
		return f.out, nil
	case name == "" && runfolder.IsRun("."):
		return ".", nil
	case name != "" && f.out == "" && !runfolder.Exists(name) && !config.IsFile(name):
		return "", noRun(name)
	case name == "" || !runfolder.IsFolder(name):
		return "", nil
	case f.out != "" && filepath.Clean(f.out) != filepath.Clean(name):
		return "", usageErrorf("--resume of the run %s cannot write to --out %s", name, f.out)
	}
	return name, nil
}

func (c *commands) writeFinished(f trainFlags, found resume.Unfinished) error {
	fmt.Fprintf(c.log, "%s: its training is finished, %s\n", found.Folder, found.State.After())
	if !f.json {
		return nil
	}
	_, err := fmt.Fprintln(c.out, found.State.Done)
	return err
}

// writeTrained writes eval_overall of the tasks that were trained, as training has it, where metrics has kept ones too.
func writeTrained(w io.Writer, kept []string, metrics []multitask.GroupMetrics) error {
	var left []string
	metrics = slices.Clone(metrics)
	for i, g := range metrics {
		metrics[i].Tasks = slices.DeleteFunc(slices.Clone(g.Tasks), func(task multitask.TaskMetrics) bool {
			is := slices.Contains(kept, task.Task)
			if is {
				left = append(left, task.Task)
			}
			return is
		})
	}
	overall, ok := report.Metrics(metrics)[report.Overall]
	if len(left) == 0 || !ok {
		return nil
	}
	_, err := fmt.Fprintf(w, "%s %.2f without the tasks that were kept and not trained, %s, as in training\n",
		report.Overall, 100*overall, strings.Join(left, ", "))
	return err
}

// writeOld writes a table of what heads of tasks of the base run have lost or gained; nothing for none.
func writeOld(w io.Writer, old []report.Change) error {
	rows := [][]string{{"task", "head", "metric", "before", "after", "change"}}
	for _, h := range old {
		if h.After != nil {
			rows = append(rows, changeRow(h))
		}
	}
	if len(rows) == 1 {
		return nil
	}
	_, err := fmt.Fprintf(w, "tasks of the base run on dev, before training and in the best checkpoint, in %%:\n%s",
		aligned(rows))
	return err
}
