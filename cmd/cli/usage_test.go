package cli

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/run"
)

func TestFlags(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		want   string // in out or log
	}{
		{"--version", 0, "jenga " + run.Version + " "},
		{"version --threads 1", 0, "jenga "},
		{"version --threads 0", exitUsage, "--threads 0: want a number from 1 on; without the flag all cores"},
		{"version --threads two", exitUsage, "--threads \"two\": want a whole number\n"},
		{"merge a b --scale x", exitUsage, "--scale \"x\": want a number\n"},
		{"merge a b --seed -1", exitUsage, "--seed \"-1\": want a whole number of at least 0\n"},
		{"merge a b --weight 1,x", exitUsage, "--weight \"1,x\": want numbers with commas between them, as 1,0.5\n"},
		{"eval x --json=yes", exitUsage, "--json \"yes\": want true or false\n"},
		{"eval x --splt test", exitUsage, `jenga eval: no flag "--splt"; did you mean "--split"? available: --data, `},
		{"train --sett x", exitUsage, `did you mean "--set"?`},
		{"train -x", exitUsage, "jenga train --help lists the flags\n"},
	} {
		status, out, log := call("", strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(out+log, test.want) {
			t.Errorf("%s: status %d, want %d and %q in\n%s%s", test.args, status, test.status, test.want, out, log)
		}
	}
}

func TestTheFlagAndTheCommandPrintTheSameVersion(t *testing.T) {
	_, flag, _ := call("", "--version")
	if _, command, _ := call("", "version"); flag != command {
		t.Errorf("--version prints %q, the command %q", flag, command)
	}
}

func TestCompletion(t *testing.T) {
	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"bash", 0, "__jenga_debug"},
		{"zsh", 0, "#compdef jenga"},
		{"fish", 0, "complete -c jenga"},
		{"powershell", 0, "Register-ArgumentCompleter"},
		{"--help", 0, "source <(jenga completion bash)"},
		{"sh", exitUsage, "available: bash, fish, powershell, zsh\n"},
		{"", exitUsage, "jenga completion: an argument is missing; usage: jenga completion SHELL\n"},
	} {
		status, out, log := call("", append([]string{"completion"}, strings.Fields(test.args)...)...)
		if status != test.status || !strings.Contains(out+log, test.want) {
			t.Errorf("%s: status %d, want %d and %q in\n%s%s", test.args, status, test.status, test.want, out, log)
		}
	}

	// what the scripts call
	if _, out, _ := call("", "__complete", "eval", "x", "--sp"); !strings.HasPrefix(out, "--split\t") {
		t.Errorf("--sp is completed to %q", out)
	}
}
