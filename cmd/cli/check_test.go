package cli

import (
	"strings"
	"testing"
)

func TestCheckCountsLabelledExamples(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", "body,team,size\nso good,a,1\nso bad,,2\nso fair,b,\n")
	writeFile(t, ".", "experiment.yaml", `
project_name: mails
model: {encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}}
tokenizer: {train: {vocab_size: 200}}
tasks:
  - {name: team, type: classification, data: {train: mails.csv, dev: mails.csv, text: body, label: team}}
  - {name: size, type: regression, data: {same_as: team, value: size}}
`)
	want := `task team, head team: 2 labels; examples: 3 train (2 labelled), 3 dev (2 labelled), 0 test
task size, head size: a number; examples: 3 train (2 labelled), 3 dev (2 labelled), 0 test
`
	if status, out, log := call("", "check"); status != 0 || !strings.HasPrefix(out, want) {
		t.Errorf("check: %d\n%s%s\nwant\n%s", status, out, log, want)
	}
}
