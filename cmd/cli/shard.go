package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// shardFlag is the part of an input that a command reads: number of of, from 1; the zero value is all of it.
type shardFlag struct{ number, of int }

func (s *shardFlag) flag(cmd *cobra.Command) {
	cmd.Flags().Var(s, "shard", "read part `K/N` of FILE's lines, such as 3/16; the outputs of 1/N to N/N, one after "+
		"the other, are the output of all")
}

// String implements pflag.Value.
func (s *shardFlag) String() string {
	if s.of == 0 {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.number, s.of)
}

// Type implements pflag.Value.
func (s *shardFlag) Type() string { return "K/N" }

// Set implements pflag.Value.
func (s *shardFlag) Set(value string) error {
	number, of, _ := strings.Cut(value, "/")
	var err error
	if s.number, err = strconv.Atoi(number); err == nil {
		s.of, err = strconv.Atoi(of)
	}
	if err != nil || s.number < 1 || s.number > s.of {
		return errors.New("not a part of the lines")
	}
	return nil
}

// check returns an error where the flag cannot be applied to an input, or to a format of the output.
func (s shardFlag) check(from textInput, format string) error {
	switch {
	case s.of == 0:
		return nil
	case from.file == "":
		return usageErrorf("--shard %s: want a FILE: the number of lines on stdin is not known before its end", &s)
	case format != "jsonl":
		return usageErrorf("--shard %s: want --format jsonl: %s has one header for all lines", &s, format)
	}
	info, err := os.Stat(from.file)
	if err == nil && from.isLines() && !info.IsDir() && !info.Mode().IsRegular() {
		return usageErrorf("--shard %s: %s is a pipe or a device, which is read once: its lines are not known before "+
			"its end; want a file of them", &s, from.file)
	}
	return nil
}

// lines returns the range of the shard among n lines, numbered from 0.
func (s shardFlag) lines(n int) (from, to int) {
	if s.of == 0 {
		return 0, n
	}
	return (s.number - 1) * n / s.of, s.number * n / s.of
}

// openShard opens a shard of a file of lines.
func (i textInput) openShard(ctx context.Context) (lines lineSource, done func() error, err error) {
	n, err := countLines(i.file)
	if err != nil {
		return nil, nil, err
	}
	from, to := i.shard.lines(n)
	if from == to {
		return &recordLines{}, func() error { return nil }, nil
	}
	in, done, err := openLines(i.file)
	if err != nil {
		return nil, nil, err
	}
	all := newTexts(ctx, in, i.columns)
	if err := all.limit(from, to); err != nil {
		done()
		return nil, nil, fmt.Errorf("%s: %w", i.file, err)
	}
	return all, done, nil
}

// limit makes next return lines number from+1 to to.
func (t *texts) limit(from, to int) error {
	t.skipped, t.end = from, to
	for ; t.number < from; t.number++ {
		_, err := readLine(t.reader)
		switch {
		case errors.Is(err, io.EOF):
			return t.ended()
		case err != nil && !errors.Is(err, errLong):
			return err
		}
	}
	return nil
}

// ended returns an error where a text ends before the last line to be read.
func (t *texts) ended() error {
	if t.number >= t.end {
		return nil
	}
	return fmt.Errorf("the file ends after line %d, and had line %d when its lines were counted", t.number, t.end)
}
