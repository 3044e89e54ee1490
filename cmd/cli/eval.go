package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/othertexts"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/internal/printable"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

type evalFlags struct {
	splitFlags
	against      string
	json, labels bool
	otherTexts   bool
}

func (c *commands) evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval RUN",
		Short: "Evaluate a trained run on its dev, test or train split",
		Args:  between(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.eval(cmd.Context(), f, args[0]) },
	}
	f.flag(cmd, "split to evaluate", "evaluate this task alone")
	cmd.Flags().StringVar(&f.against, "against", "",
		"evaluate this `RUN` on the same texts too, and show by how much each metric differs from it")
	cmd.Flags().BoolVar(&f.labels, "labels", false,
		"a table of each head's labels, with the labels most often predicted in their place")
	cmd.Flags().BoolVar(&f.otherTexts, "other-texts", false,
		"what heads that tag spans, give any number of labels or answer questions find in texts of other tasks, which "+
			"takes up to twice the time")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON line on stdout")
	return cmd
}

func (c *commands) eval(ctx context.Context, f evalFlags, folder string) error {
	if f.otherTexts && f.task != "" {
		return usageErrorf("--other-texts compares the texts of all tasks, --task reads those of one; want one of them")
	}
	opened, name, files, err := f.open(ctx, folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	c.warn(namingEncoding(opened.Warnings))

	bar := c.newBar(name, !f.json)
	metrics, err := opened.Evaluate(ctx, f.split, bar.reach)
	bar.clear()
	if err != nil {
		return err
	}
	metrics = report.Only(metrics, f.task)
	var against *report.Against
	if f.against != "" {
		if against, err = c.evalAgainst(ctx, f, files, opened, metrics); err != nil {
			return fmt.Errorf("--against: %w", err)
		}
	}
	var others []report.HeadRates
	if f.otherTexts {
		if others, err = c.otherTexts(ctx, f, opened); err != nil {
			return err
		}
	}
	return c.writeEvaluation(f, name, opened, metrics, against, others)
}

// otherTexts returns what the heads of a run find in texts of other tasks, and warns of those that find far too much.
func (c *commands) otherTexts(ctx context.Context, f evalFlags, opened *predict.Opened) ([]report.HeadRates, error) {
	heads, warnings, err := opened.OtherTexts(ctx, f.split)
	if err != nil {
		return nil, err
	}
	if len(heads) == 0 {
		why := "no head that tags spans, gives any number of labels or answers questions can read texts of other tasks"
		if len(opened.Data.Groups) == 1 {
			why = "all tasks read the same texts"
		}
		warnings = []plugin.Warning{warning("--other-texts: %s", why)}
	}
	c.warn(warnings)
	return heads, nil
}

// writeOtherTexts writes a table of what heads find in texts of their own and of other tasks.
func writeOtherTexts(w io.Writer, opened *predict.Opened, heads []report.HeadRates) error {
	rows := [][]string{{"task", "head", "texts of", "texts", "predicts"}}
	for _, h := range heads {
		row := func(of string, texts int, rate float64, more string) {
			rows = append(rows, []string{h.Task, h.Head, of, strconv.Itoa(texts),
				othertexts.RateText(opened.Data, h.Task, rate) + more})
		}
		row("its own", h.Own.Texts, h.Own.Rate, "")
		for _, other := range h.Others {
			more := ""
			if other.High {
				more = ", far more"
			}
			row(strings.Join(other.Tasks, ", "), other.Texts, other.Rate, more)
		}
	}
	_, err := fmt.Fprintf(w, "\npredictions on texts of other tasks, at most %d of each group:\n%s", othertexts.Most,
		aligned(rows))
	return err
}

func (c *commands) writeEvaluation(f evalFlags, name string, opened *predict.Opened, metrics []multitask.GroupMetrics,
	against *report.Against, others []report.HeadRates) error {
	device, precision := opened.Model.Encoder.Describe().Device, lower(opened.Model.Precision)
	if f.json {
		line := report.EvalLineOf(name, metrics)
		line.Precision, line.Device, line.Unfinished, line.Against = precision, device, opened.Unfinished, against
		line.OtherTexts = others
		return writeLine(c.out, line)
	}
	if precision != "" {
		name += ", in " + precision
	}
	if device != "" {
		name += ", on " + onDevice(device)
	}
	fmt.Fprintf(c.out, "%s:\n", name)
	if err := writeMetrics(c.out, metrics); err != nil {
		return err
	}
	if err := writeTrained(c.out, opened.Data.Experiment.Untrained(), metrics); err != nil {
		return err
	}
	if against != nil {
		if err := writeAgainst(c.out, *against); err != nil {
			return err
		}
	}
	if others != nil {
		if err := writeOtherTexts(c.out, opened, others); err != nil {
			return err
		}
	}
	if !f.labels {
		return nil
	}
	return writeLabels(c.out, metrics)
}

// metricsShown is how many metrics of a head a table has besides its errors, the main one first; --json has all.
const metricsShown = 4

// writeMetrics writes a line for each head, for each group with metrics of its own, and one with eval_overall.
func writeMetrics(w io.Writer, groups []multitask.GroupMetrics) error {
	_, err := io.WriteString(w, metricsText(groups, terminalWidth(w)))
	return err
}

// metricsText returns a table, or metrics below their heads where it does not fit into width characters; 0: any fit.
func metricsText(groups []multitask.GroupMetrics, width int) string {
	const metricsHeader, errorsHeader = "metrics in %", "errors, not in %"
	rows := [][]string{{"task", "head", "examples", "loss", metricsHeader, errorsHeader}}
	var stacked, below []string
	indent := func(metrics []string) {
		for _, line := range fill(metrics, gap, max(1, width-len(gap))) {
			stacked = append(stacked, gap+line)
		}
	}
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				loss := "-"
				if head.Loss.Units > 0 {
					loss = lossText(head.Loss.Mean())
				}
				metrics, errors := metricsOf(head)
				rows = append(rows, []string{task.Task, head.Head, strconv.Itoa(head.Examples), loss,
					strings.Join(metrics, gap), strings.Join(errors, gap)})
				stacked = append(stacked, fill(strings.Fields(fmt.Sprintf("%s, %s: examples %d, loss %s, %s", task.Task,
					head.Head, head.Examples, loss, metricsHeader)), " ", width)...)
				indent(metrics)
				if len(errors) > 0 {
					stacked = append(stacked, " "+errorsHeader)
				}
				indent(errors)
			}
		}
		if g.AllRight != nil {
			below = append(below, fmt.Sprintf("%s: all_right %.2f", strings.Join(g.DiscreteTasks(), " + "),
				100**g.AllRight))
		}
	}
	if overall, ok := report.Metrics(groups)[report.Overall]; ok {
		below = append(below, fmt.Sprintf("%s %.2f: the mean of each head's first metric", report.Overall, 100*overall))
	}

	if !slices.ContainsFunc(rows[1:], func(row []string) bool { return row[5] != "" }) {
		rows[0][5] = ""
	}
	text := aligned(rows)
	if width > 0 && widestOf(strings.Split(text, "\n")) > width {
		text = strings.Join(stacked, "\n") + "\n"
	}
	for _, line := range below {
		text += strings.Join(fill(strings.Fields(line), " ", width), "\n") + "\n"
	}
	return text
}

// lossText formats a loss: with four decimals, and from 100 on with six digits, as one that diverges has many.
func lossText(loss float64) string {
	if math.Abs(loss) < 100 {
		return fmt.Sprintf("%.4f", loss)
	}
	return fmt.Sprintf("%.6g", loss)
}

// metricsOf formats a head's first metrics, fractions in per cent, and its errors in the unit of the targets.
func metricsOf(head multitask.HeadMetrics) (metrics, errors []string) {
	if len(head.Metrics) == 0 {
		return []string{"no labels"}, nil
	}
	for _, m := range head.Metrics {
		text := fmt.Sprintf("%s %.2f", m.Name, 100*m.Value)
		if m.Lower {
			text = fmt.Sprintf("%s %.4g", m.Name, m.Value)
		}
		if m.Undefined {
			text = m.Name + " -"
		}
		switch {
		case m.Lower:
			errors = append(errors, text)
		case len(metrics) < metricsShown:
			metrics = append(metrics, text)
		}
	}
	return metrics, errors
}

const gap = "  "

// fill joins items to lines of at most room characters, at least one in each; a room of 0 has no limit.
func fill(items []string, between string, room int) []string {
	var lines []string
	for _, item := range items {
		last := len(lines) - 1
		if last >= 0 && (room == 0 || utf8.RuneCountInString(lines[last]+between+item) <= room) {
			lines[last] += between + item
			continue
		}
		lines = append(lines, item)
	}
	return lines
}

// aligned returns a line for each row, with the cells of a column at one place.
func aligned(rows [][]string) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, len(gap), ' ', 0)
	for _, row := range rows {
		var cells []string
		for _, cell := range row {
			cells = append(cells, shown(cell))
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	table.Flush()
	var trimmed strings.Builder
	for line := range strings.Lines(text.String()) {
		fmt.Fprintln(&trimmed, strings.TrimRight(line, " \n"))
	}
	return trimmed.String()
}

// shown returns a text as it is, or quoted where it has characters that a terminal would obey or not show, as those of
// a label of someone else's data.
func shown(text string) string {
	if !printable.Is(text) {
		return strconv.Quote(text)
	}
	return text
}

func widestOf(texts []string) int {
	width := 0
	for _, text := range texts {
		width = max(width, utf8.RuneCountInString(text))
	}
	return width
}

const mostConfused = 3

// writeLabels writes a table of each head's labels: their metrics, and the labels most often predicted in their place.
func writeLabels(w io.Writer, groups []multitask.GroupMetrics) error {
	var text strings.Builder
	for _, g := range groups {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				if head.Tables == nil {
					continue
				}
				fmt.Fprintf(&text, "\n%s, %s\n", task.Task, head.Head)
				rows := [][]string{{"label", "precision", "recall", "f1", "support", "confused with"}}
				for _, label := range slices.Sorted(maps.Keys(head.Tables.Labels)) {
					s := head.Tables.Labels[label]
					precision, recall := hundredths(s.Precision), hundredths(s.Recall)
					if s.Predicted == 0 {
						precision = "-"
					}
					if s.Support == 0 {
						recall = "-"
					}
					rows = append(rows, []string{label, precision, recall, hundredths(s.F1), strconv.Itoa(s.Support),
						confusedWith(label, head.Tables.Confusion[label])})
				}
				text.WriteString(aligned(rows))
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// confusedWith lists the other labels most often predicted in place of label, with their counts.
func confusedWith(label string, counts map[string]int) string {
	others := slices.Sorted(maps.Keys(counts))
	others = slices.DeleteFunc(others, func(other string) bool { return other == label })
	slices.SortStableFunc(others, func(a, b string) int { return counts[b] - counts[a] })
	var shown []string
	for _, other := range others[:min(mostConfused, len(others))] {
		shown = append(shown, fmt.Sprintf("%s %d", other, counts[other]))
	}
	return strings.Join(shown, ", ")
}

// manyFiles is what the flag --data says of several files.
const manyFiles = "FILE may be a pattern, in quotation marks, as 'TASK=parts/*.jsonl'; may be repeated, for a task " +
	"too, whose files are read one after the other"

func dataFlags(pairs []string) (map[string][]string, error) {
	files := map[string][]string{}
	for _, pair := range pairs {
		task, file, ok := strings.Cut(pair, "=")
		if !ok || task == "" || file == "" {
			return nil, usageErrorf("--data %q: want TASK=FILE", pair)
		}
		if slices.Contains(files[task], file) {
			return nil, usageErrorf("--data %q: it is named twice; want it once", pair)
		}
		files[task] = append(files[task], file)
	}
	return files, nil
}

// splitFlags say which examples a command reads, and where it computes.
type splitFlags struct {
	split, task string
	data        []string // TASK=FILE
	set         dataFlag
	machine     machineFlags
}

// flag adds the flags; split and task describe two of them.
func (f *splitFlags) flag(cmd *cobra.Command, split, task string) {
	oneOfVar(cmd, &f.split, "split", config.Dev, split+": dev, test or train", config.Train, config.Dev, config.Test)
	cmd.Flags().StringVar(&f.task, "task", "", task)
	cmd.Flags().StringArrayVar(&f.data, "data", nil,
		"read `TASK=FILE` in place of the task's own data; "+manyFiles)
	f.set.flag(cmd, ofTask)
	f.machine.flag(cmd)
}

// open opens a run, and reads the examples, of which it returns the name (see dataName) and the files of --data. The
// caller closes the run.
func (f *splitFlags) open(ctx context.Context, folder string) (opened *predict.Opened, name string,
	files map[string][]string, err error) {
	if files, err = dataFlags(f.data); err != nil {
		return nil, "", nil, err
	}
	if opened, err = openIn(ctx, f.machine, predict.OpenRunOn, folder); err != nil {
		return nil, "", nil, err
	}
	if name, err = f.read(ctx, opened, files); err != nil {
		opened.Close()
		return nil, "", nil, err
	}
	return opened, name, files, nil
}

func (f *splitFlags) read(ctx context.Context, opened *predict.Opened, files map[string][]string) (name string,
	err error) {
	if err := opened.CheckEncoder(ctx); err != nil {
		return "", err
	}
	if f.task != "" {
		if _, _, err := opened.Model.Group(f.task); err != nil {
			return "", fmt.Errorf("--task: %w", err)
		}
	}
	if err := opened.Data.Experiment.SetData(f.set); err != nil {
		return "", err
	}
	name, err = readData(ctx, opened, f.split, f.task, files)
	return name, namingSetData(err)
}

// readData reads the examples of a split, or of the files of --data in its place, for all tasks, or for one task's
// group if task is not "". It returns their name: see dataName.
func readData(ctx context.Context, opened *predict.Opened, split, task string, files map[string][]string) (
	name string, err error) {
	for name := range files {
		if _, _, err := opened.Model.Group(name); err != nil {
			return "", fmt.Errorf("--data: %w", err)
		}
	}
	opened.Data.Missing = func(task config.Task, _ config.File) string {
		if files[task.Name] != nil {
			return "--data is TASK=FILE, once for each file"
		}
		return fmt.Sprintf("pass the data with --data %s=FILE", task.Name)
	}
	if err := opened.Read(ctx, split, task, files); err != nil {
		return "", err
	}
	return dataName(opened, split, files), nil
}

// dataName names what is evaluated: the split, or the file that is read in its place. Where that differs between tasks,
// it names the tasks of each file.
func dataName(opened *predict.Opened, split string, files map[string][]string) string {
	var names []string             // of files, in order; "": the split
	tasks := map[string][]string{} // by file
	for _, group := range opened.Data.Groups {
		if group.Examples[split] == nil {
			continue
		}
		var file string
		var members []string
		for _, number := range group.Tasks {
			task := opened.Data.Experiment.Tasks[number].Name
			members = append(members, task)
			file = cmp.Or(strings.Join(files[task], ", "), file)
		}
		if tasks[file] == nil {
			names = append(names, file)
		}
		tasks[file] = append(tasks[file], members...)
	}

	if len(names) <= 1 {
		return cmp.Or(strings.Join(names, ""), split)
	}
	var parts []string
	for _, file := range names {
		if file != "" {
			parts = append(parts, strings.Join(tasks[file], ", ")+": "+file)
		}
	}
	if tasks[""] != nil {
		parts = append(parts, "others: "+split)
	}
	return strings.Join(parts, "; ")
}

// knownData warns of files of --data that nothing can be fitted to: those that the run was trained on, and if test is
// true those that its test split is read from.
func knownData(opened *predict.Opened, files map[string][]string, test bool) (warnings []plugin.Warning) {
	for _, task := range opened.Data.Experiment.Tasks {
		named, err := config.FilesNamed(files[task.Name])
		if err != nil {
			continue // readData returns it
		}
		training := dataset.TrainingFile(task.Data)
		for _, path := range named.Paths() {
			is := func(other string) bool { return sameFile(path, other) }
			switch {
			case slices.ContainsFunc(training.Paths(), is):
				warnings = append(warnings, warning("--data %s=%s: the run was trained on this file; "+
					"probabilities of its texts say nothing about other texts", task.Name, path))
			case test && slices.ContainsFunc(task.Data.Test.Paths(), is):
				warnings = append(warnings, warning("--data %s=%s: test is read from this file too; the "+
					"report is of texts that were fitted to", task.Name, path))
			}
		}
	}
	return warnings
}

func sameFile(a, b string) bool {
	first, firstErr := os.Stat(a)
	second, secondErr := os.Stat(b)
	return firstErr == nil && secondErr == nil && os.SameFile(first, second)
}
