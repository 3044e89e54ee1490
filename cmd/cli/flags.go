package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

type usageError struct{ error }

func (u usageError) Unwrap() error { return u.error }

// usageErrorf returns a usageError. It puts the user's words in quotation marks, and says what would work.
func usageErrorf(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// withFlags returns an error of a library with a text that has a flag in place of each plugin.Argument.
func withFlags(err error) error {
	names := map[plugin.Argument]bool{}
	arguments(err, names)
	if len(names) == 0 {
		return err
	}
	return flagged{err, replaceArguments(err.Error(), slices.Collect(maps.Keys(names))...)}
}

// replaceArguments returns a text with the flags of names in place of the arguments.
func replaceArguments(text string, names ...plugin.Argument) string {
	for _, name := range names {
		flag := "--" + string(name)
		if name == runfolder.ResumeArgument {
			flag = "jenga train " + flag
		}
		text = strings.ReplaceAll(text, name.Error(), flag)
	}
	return text
}

// warningWithFlags returns the text of a library's warning with flags in place of the arguments that warnings name.
func warningWithFlags(text string) string {
	return replaceArguments(text, runfolder.ResumeArgument, "max-length", "set")
}

type flagged struct {
	error
	text string
}

func (f flagged) Error() string { return f.text }
func (f flagged) Unwrap() error { return f.error }

// arguments adds the arguments that an error names to names.
func arguments(err error, names map[plugin.Argument]bool) {
	switch e := err.(type) {
	case flagged:
	case plugin.Argument:
		names[e] = true
	case *plugin.Mistake:
		if e.Place.Argument != "" {
			names[e.Place.Argument] = true
		}
		arguments(e.Err, names)
	case interface{ Unwrap() error }:
		arguments(e.Unwrap(), names)
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			arguments(one, names)
		}
	}
}

func between(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < low:
			return usageErrorf("%s: an argument is missing; usage: %s", cmd.CommandPath(), cmd.UseLine())
		case len(args) > high:
			return usageErrorf("%s: unexpected argument %q; usage: %s", cmd.CommandPath(), args[high], cmd.UseLine())
		}
		return nil
	}
}

// parsed is the value of a flag that parse reads.
type parsed struct {
	text   string
	wanted string // describes the valid values
	parse  func(text string) error
}

func (p *parsed) String() string { return p.text }
func (p *parsed) Type() string   { return "string" }

func (p *parsed) Set(text string) error {
	err := p.parse(text)
	if err == nil {
		p.text = text
	}
	return err
}

func oneOfVar(cmd *cobra.Command, value *string, flag, byDefault, usage string, names ...string) {
	*value = byDefault
	cmd.Flags().Var(&parsed{byDefault, "one of " + strings.Join(names, ", "), func(name string) error {
		if !slices.Contains(names, name) {
			return errors.New("unknown")
		}
		*value = name
		return nil
	}}, flag, usage)
}

func offsetsFlag(cmd *cobra.Command, unit *corpus.OffsetUnit) {
	cmd.Flags().Var(&parsed{unit.String(), "one of characters, bytes, utf16", func(name string) (err error) {
		*unit, err = corpus.ParseOffsetUnit(name)
		return err
	}}, "offsets",
		"`UNIT` of offsets: characters (Unicode code points, as in data files), bytes (of UTF-8) or utf16 (code units)")
}

// tasksFlag is the flag --task of a command that predicts: names of tasks, none for all.
type tasksFlag []string

// flag adds the flag to a command. does is what the command does to a task.
func (f *tasksFlag) flag(cmd *cobra.Command, does string) {
	cmd.Flags().StringArrayVar((*[]string)(f), "task", nil, does+" `TASK` alone, or TASK,TASK; may be repeated")
}

// of returns the names, which a run must have.
func (f tasksFlag) of(opened *predict.Opened) ([]string, error) {
	names := splitCommas(f)
	for _, name := range names {
		if _, _, err := opened.Model.Group(name); err != nil {
			return nil, fmt.Errorf("--task: %w", err)
		}
	}
	return names, nil
}

// splitCommas returns the values of a flag that may be repeated, and that takes several between commas.
func splitCommas(flags []string) (all []string) {
	for _, flag := range flags {
		for one := range strings.SplitSeq(flag, ",") {
			all = append(all, strings.TrimSpace(one))
		}
	}
	return all
}

// checkMaxLength returns an error unless n leaves room for a token between the special ones, or is 0.
func checkMaxLength(n int) error {
	if n != 0 && n < 3 {
		return usageErrorf("--max-length %d: want at least 3 tokens, special ones included, or 0", n)
	}
	return nil
}

// checkSets returns an error unless the values of a command's flag --set, if it has one, are KEY=VALUE.
func checkSets(cmd *cobra.Command) error {
	sets, _ := cmd.Flags().GetStringArray("set") // of a command without the flag none
	for _, set := range sets {
		if err := config.CheckSet(set); err != nil {
			return usageErrorf("--set %s: %w", set, err)
		}
	}
	return nil
}

func flagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		flag := "--" + unknown.GetSpecifiedName()
		if want := takesInstead(cmd, flag); want != "" {
			return usageErrorf("%s: no flag %q; want %s", cmd.CommandPath(), flag, want)
		}
		return usageErrorf("%s: %s", cmd.CommandPath(), plugin.Unknown("flag", flag, flagNames(cmd)))
	case errors.As(err, &invalid):
		return usageErrorf("--%s %q: want %s\n%s --help lists the flags", invalid.GetFlag().Name, invalid.GetValue(),
			flagValues(invalid.GetFlag().Value), cmd.CommandPath())
	}
	if errors.As(err, &unknown) { // letters after one dash, of which a name may be meant: -resume
		if near, ok := suggest.Nearest("--"+unknown.GetSpecifiedShortnames(), flagNames(cmd)); ok {
			return usageErrorf("%w; did you mean %q?\n%s --help lists the flags", err, near, cmd.CommandPath())
		}
	}
	return usageErrorf("%w\n%s --help lists the flags", err, cmd.CommandPath())
}

// flagsOfOtherPrograms are flags of other programs, which users expect, and the flag with its value that stands for
// them here, beside those that are keys of the experiment file.
var flagsOfOtherPrograms = map[string][2]string{
	"--model":      {"set", "model.base_model=MODEL"},
	"--output":     {"out", "DIR"},
	"--output-dir": {"out", "DIR"},
	"--port":       {"listen", "127.0.0.1:PORT"},
	"--host":       {"listen", "HOST:PORT"},
	"--address":    {"listen", "HOST:PORT"},
}

// takesInstead returns what a command takes in place of a flag that it does not have, "" where nothing is known.
func takesInstead(cmd *cobra.Command, flag string) string {
	want, known := flagsOfOtherPrograms[flag]
	if !known {
		key := config.SettingMeant(strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "-", "_"))
		if known = key != ""; known {
			want = [2]string{"set", key + "=VALUE"}
		}
	}
	if !known || cmd.Flags().Lookup(want[0]) == nil {
		return ""
	}
	return "--" + want[0] + " " + want[1]
}

func flagNames(cmd *cobra.Command) []string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return names
}

func flagValues(value pflag.Value) string {
	if own, ok := value.(*parsed); ok {
		return own.wanted
	}
	switch kind := value.Type(); kind {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "uint64":
		return "a whole number of at least 0"
	case "float64":
		return "a number"
	case "float64Slice":
		return "numbers with commas between them, as 1,0.5"
	default:
		return "a " + kind
	}
}

// precisionFlag is the flag --precision, a name of an nn.Precision; "" is that of the encoder: int8 of a quantized one,
// else float32.
type precisionFlag string

// precisions are the names, in the order of their values.
var precisions = []string{nn.Float32.String(), nn.BFloat16.String(), nn.Int8.String()}

// flag adds the flag to a command. note follows its description.
func (f *precisionFlag) flag(cmd *cobra.Command, note string) {
	oneOfVar(cmd, (*string)(f), "precision", "", "`PRECISION` of the encoder's products"+note+": "+
		strings.Join(precisions, ", ")+" (default float32, of a quantized run int8, which has no other)", precisions...)
}

// deviceFlag is the flag --device, a value of encoders.Env.Device; "": the flag is not given, and has no default.
type deviceFlag string

// flag adds the flag to a command, with a default or, where that is "", what the default is.
func (f *deviceFlag) flag(cmd *cobra.Command, byDefault, elseIs string) {
	*f = deviceFlag(byDefault)
	cmd.Flags().Var(&parsed{byDefault, "one of auto, cpu, cuda:N", func(word string) error {
		device, err := encoders.ParseDevice(word)
		*f = deviceFlag(device)
		return err
	}}, "device", "`DEVICE` of the encoder: cpu, cuda:N (docs/gpu.md), or auto, which is cuda:0 if that can be used, "+
		"else cpu"+elseIs)
}

// check returns an error if this program cannot use the device.
func (f deviceFlag) check() error {
	if err := encoders.CheckDevice(string(f)); err != nil {
		return fmt.Errorf("--device %s: %w, or leave --device out", f, err)
	}
	return nil
}

// over returns settings of an experiment file, among which is the device, if it is given.
func (f deviceFlag) over(set []string) []string {
	if f == "" {
		return set
	}
	return append(slices.Clone(set), "training.device="+string(f))
}

// machineFlags are the flags --precision and --device of a command that predicts.
type machineFlags struct {
	precision precisionFlag
	device    deviceFlag
}

func (f *machineFlags) flag(cmd *cobra.Command) {
	f.precision.flag(cmd, "")
	f.device.flag(cmd, encoders.AutoDevice, "")
}

// in returns the device beside the precision.
func (f machineFlags) in() (device string, err error) {
	if err := f.device.check(); err != nil {
		return "", err
	}
	device = string(f.device)
	err = f.precision.set(func(precision nn.Precision) error {
		device = predict.DeviceIn(device, &precision)
		return nil
	})
	return device, err
}

// checked is in where it is known before the encoder is opened that the processor multiplies in the precision.
func (f machineFlags) checked() (device string, err error) {
	if device, err = f.in(); err != nil || device != encoders.CPU && encoders.CUDA != nil {
		return device, err
	}
	return device, f.precision.set(nn.Precision.Check)
}

// openIn opens a run or an encoder by open on the device of the flags, which multiplies in their precision.
func openIn[T interface {
	SetPrecision(nn.Precision) error
	Close() error
}](ctx context.Context, f machineFlags, open func(ctx context.Context, name, device string) (T, error), name string) (
	opened T, err error,
) {
	device, err := f.in()
	if err != nil {
		return opened, err
	}
	if opened, err = open(ctx, name, device); err != nil {
		return opened, ofDevice(err)
	}
	if err = f.precision.set(opened.SetPrecision); err != nil {
		opened.Close()
	}
	return opened, err
}

// ofDevice returns an error of opening a run or an encoder: of the device as one of the flag.
func ofDevice(err error) error {
	var option *encoders.OptionError
	if errors.As(err, &option) && option.Key == "device" {
		return fmt.Errorf("--%w", option)
	}
	return err
}

// onDevice names the device of an encoder, such as cuda:0 (NVIDIA H100 80GB HBM3).
func onDevice(device string) string {
	if device == "" {
		return "the processor"
	}
	return fmt.Sprintf("%s (%s)", device, encoders.DeviceName(device))
}

// lower returns the name of a precision, "" for float32.
func lower(precision nn.Precision) string {
	if precision == nn.Float32 {
		return ""
	}
	return precision.String()
}

// set passes the precision, if one is named, to a function that returns an error if it is not available.
func (f precisionFlag) set(to func(nn.Precision) error) error {
	if f == "" {
		return nil
	}
	if err := to(nn.Precision(slices.Index(precisions, string(f)))); err != nil {
		return ofPrecision(fmt.Errorf("--precision %s: %w", f, err))
	}
	return nil
}

// ofPrecision returns an error where --precision may be given: as one of usage if the weights have another one alone.
func ofPrecision(err error) error {
	var one *predict.PrecisionError
	if errors.As(err, &one) {
		return usageError{err}
	}
	return err
}
