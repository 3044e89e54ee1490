package cli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// dataFlag is the flag --set-data of a command that reads files: keys of data, as KEY=VALUE.
type dataFlag []string

func (f *dataFlag) flag(cmd *cobra.Command, tasks string) {
	cmd.Flags().StringArrayVar((*[]string)(f), "set-data", nil, "how the files are written that are read: `KEY=VALUE` "+
		"of a key of data, such as encoding=cp1252, delimiter=';' or text=COLUMN"+tasks+"; may be repeated")
}

// ofTask is what --set-data takes besides where a run has tasks.
const ofTask = "; TASK.KEY=VALUE is for one task"

// isFormat reports whether the flag has a key that says how a file is written, rather than which columns it has.
func (f dataFlag) isFormat() (set string, ok bool) {
	at := slices.IndexFunc(f, func(set string) bool {
		key, _, _ := strings.Cut(set, "=")
		key = key[strings.LastIndexByte(key, '.')+1:]
		return slices.Contains([]string{"format", "delimiter", "quote", "encoding", "header", "columns"}, key)
	})
	if at < 0 {
		return "", false
	}
	return f[at], true
}

// check returns an error for keys that stdin has no use for.
func (f dataFlag) check(from textInput) error {
	if set, ok := f.isFormat(); ok && from.file == "" {
		return usageErrorf("--set-data %s: stdin has a text in each line, in UTF-8; want a FILE", set)
	}
	return nil
}

// dataKey matches a key of data with a value as errors advise it, and a quoted text, which is none.
var dataKey = regexp.MustCompile(`(?:data: \{)?\b(` + strings.Join(config.DataKeys(), "|") +
	`): (\[[^\]]*\]|"(?:[^"\\]|\\.)*"|[^\s,;}]+)\}?|"(?:[^"\\]|\\.)*"`)

// missingColumn matches the error of a column that a file does not have.
var missingColumn = regexp.MustCompile(`no field "(?:[^"\\]|\\.)*" for (\w+);|no field for the (text);`)

// namingSetData returns an error that names --set-data where the text of err advises a key of data.
func namingSetData(err error) error {
	if err == nil {
		return nil
	}
	text := namingKeys(err.Error(), func(key, value string) string {
		if strings.ContainsAny(value, " ;[") {
			value = strings.Trim(value, `"`)
			return fmt.Sprintf("--set-data '%s=%s'", key, value)
		}
		return fmt.Sprintf("--set-data %s=%s", key, value)
	})
	lines := strings.Split(text, "\n") // a mistake each
	for i, line := range lines {
		if found := missingColumn.FindStringSubmatch(line); found != nil && !strings.Contains(line, "--set-data") {
			lines[i] += fmt.Sprintf("; --set-data %s=COLUMN names it", found[1]+found[2])
		}
	}
	text = strings.Join(lines, "\n")
	if text == err.Error() {
		return err
	}
	return flagged{err, text}
}

// namingKeys returns a text with what advice returns in place of each key of data and its value.
func namingKeys(text string, advice func(key, value string) string) string {
	return dataKey.ReplaceAllStringFunc(text, func(found string) string {
		if parts := dataKey.FindStringSubmatch(found); parts[1] != "" {
			return advice(parts[1], parts[2])
		}
		return found
	})
}

// namingEncoding returns warnings that name --set-data where they advise another encoding of a file.
func namingEncoding(warnings []plugin.Warning) []plugin.Warning {
	named := slices.Clone(warnings)
	for i := range named {
		named[i].Text = strings.ReplaceAll(named[i].Text, "data: {encoding: utf-8}", "--set-data encoding=utf-8")
	}
	return named
}

// namingFlags returns an error that names flags of these keys of data where the text of err advises them.
func namingFlags(err error, keys ...string) error {
	text := namingKeys(err.Error(), func(key, value string) string {
		if slices.Contains(keys, key) {
			return fmt.Sprintf("--%s %s", key, value)
		}
		return key + ": " + value
	})
	return flagged{err, text}
}
