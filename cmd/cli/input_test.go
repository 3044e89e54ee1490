package cli

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/inputs"
)

func TestShardsOfAnInputAreItsOutputTogether(t *testing.T) {
	trainMails(t)
	var lines, records strings.Builder
	records.WriteString("text,tone\n")
	for i := range 150 {
		switch i % 7 {
		case 3:
			lines.WriteString("\n")
		case 5:
			fmt.Fprintf(&lines, "{\"text\": \"the bill %d\", \"id\": %d}\n", i, i)
		case 6:
			fmt.Fprintf(&lines, "{\"id\": %d}\n", i) // an error
		default:
			fmt.Fprintf(&lines, "the card %d\n", i)
		}
		fmt.Fprintf(&records, "\"the card\n%d\",good\n", i)
	}
	lines.WriteString("a last line without an end")
	writeFile(t, ".", "texts.jsonl", lines.String())
	writeFile(t, ".", "records.csv", records.String())
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	w.Write([]byte(lines.String()))
	w.Close()
	writeFile(t, ".", "texts.jsonl.gz", packed.String())

	for _, command := range [][]string{
		{"predict", "runs/mails", "texts.jsonl"}, {"predict", "runs/mails", "texts.jsonl.gz"},
		{"predict", "runs/mails", "records.csv"}, {"embed", "runs/mails", "texts.jsonl"},
	} {
		_, want, _ := call("", command...)
		if strings.Count(want, "\n") < 100 {
			t.Fatalf("%v: %s", command, want)
		}
		for _, n := range []int{1, 2, 16, 151, 200} {
			var all strings.Builder
			for k := 1; k <= n; k++ {
				if n > 16 && k%40 != 0 && k != 1 && k != n { // some are enough
					continue
				}
				_, out, _ := call("", append(command, "--shard", fmt.Sprintf("%d/%d", k, n))...)
				all.WriteString(out)
			}
			if n <= 16 && all.String() != want {
				t.Errorf("%v in %d shards differs from the whole", command, n)
			}
			for line := range strings.Lines(all.String()) {
				if !strings.Contains(want, line) {
					t.Errorf("%v in %d shards has the line %s", command, n, line)
				}
			}
		}
	}
}

func TestMistakesOfShards(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"predict runs/a --shard 1/2", "want a FILE: the number of lines on stdin is not known before its end"},
		{"embed m - --shard 1/2", "want a FILE"},
		{"predict runs/a f.csv --shard 1/2 --format csv", "want --format jsonl"},
		{"predict runs/a " + os.DevNull + " --shard 1/2", "is a pipe or a device"}, // as <(zcat f.gz) is
		{"predict runs/a f --shard 0/2", "want K/N with K from 1 to N, such as 3/16"},
		{"predict runs/a f --shard 3/2", "want K/N"},
		{"predict runs/a f --shard 2", "want K/N"},
		{"predict runs/a f --shard a/b", "want K/N"},
	} {
		status, _, log := call("", strings.Fields(test.args)...)
		if status != exitUsage || !strings.Contains(log, test.want) {
			t.Errorf("%s: %d %s, want %s", test.args, status, log, test.want)
		}
	}
}

// A file that has fewer lines than when they were counted is an error, and not a shorter output.
func TestTheLinesOfAShardAreThere(t *testing.T) {
	const want = "the file ends after line 2, and had line 4 when its lines were counted"
	shard := func(from, to int) *texts {
		t := newTexts(context.Background(), strings.NewReader("a\nb\n"), inputs.Columns{})
		t.skipped, t.end = from, to
		return t
	}
	for from := range 4 {
		shortened := shard(from, 4)
		var err error
		for err == nil {
			_, err = shortened.next()
		}
		if err.Error() != want {
			t.Errorf("from %d: %v, want %s", from, err, want)
		}
	}
	exact := shard(1, 2)
	lines, err := exact.next()
	for err == nil {
		var more []inputs.Line
		more, err = exact.next()
		lines = append(lines, more...)
	}
	if err != io.EOF || len(lines) != 1 {
		t.Errorf("%d lines, %v; want 1", len(lines), err)
	}
}
