package cli

import (
	"errors"
	"fmt"
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
	return nil
}

// lines returns the range of the shard among n lines, numbered from 0.
func (s shardFlag) lines(n int) (from, to int) {
	if s.of == 0 {
		return 0, n
	}
	return (s.number - 1) * n / s.of, s.number * n / s.of
}
