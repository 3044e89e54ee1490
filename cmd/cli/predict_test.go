package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/predict"
)

// echo returns the texts of lines.
func echo(lines []predict.Line) ([]any, error) {
	var results []any
	for _, line := range lines {
		results = append(results, line.Example.Text)
	}
	return results, nil
}

func TestEachTextHasItsLineOfOutput(t *testing.T) {
	const tooLong = `{"error":"line 2: longer than 16777216 bytes","line":2}`
	longest := strings.Repeat("x", maxLine-1) // and the end of the line
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"blank lines", "\n \n\r\n", nil},
		{"ends of lines", "one\r\ntwo\nthree", []string{`"one"`, `"two"`, `"three"`}},
		{"a line as long as lines may be", "one\n" + longest + "\ntwo\n",
			[]string{`"one"`, `"` + longest + `"`, `"two"`}},
		{"a longer line", "one\n" + longest + "x\ntwo\n", []string{`"one"`, tooLong, `"two"`}},
		{"a longer last line", "one\n" + longest + "xx", []string{`"one"`, tooLong}},
		{"more lines than a batch", strings.Repeat("a\n", 3*batchTexts+1),
			slices.Repeat([]string{`"a"`}, 3*batchTexts+1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			c := &commands{in: strings.NewReader(test.in), out: &out}
			err := c.eachText(context.Background(), textInput{}, echo, jsonLines{})
			if failed := slices.Contains(test.want, tooLong); !failed && err != nil || failed &&
				!errors.Is(err, errReported) {
				t.Errorf("the error is %v", err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %.100q, want %.100q", got, test.want)
			}
		})
	}
}

func TestALineWithoutAPredictionIsAnError(t *testing.T) {
	var out strings.Builder
	c := &commands{in: strings.NewReader("one\ntwo\n"), out: &out}
	err := c.eachText(context.Background(), textInput{}, func([]predict.Line) ([]any, error) {
		return []any{predicted{Prediction: predict.Prediction{Text: "one"}},
			predicted{Prediction: predict.Prediction{Text: "two", Err: errors.New("line 2: too long")}}}, nil
	}, jsonLines{})
	const want = `{"text":"one","truncated":0,"tasks":null}` + "\n" + `{"error":"line 2: too long"}` + "\n"
	if !errors.Is(err, errReported) || out.String() != want {
		t.Errorf("eachText = %v with lines\n%swant %v with\n%s", err, out.String(), errReported, want)
	}
}

func TestWaitingForTextsCanBeInterrupted(t *testing.T) {
	waiting, _ := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := &commands{in: waiting, out: io.Discard}
	if err := c.eachText(ctx, textInput{}, echo, jsonLines{}); !errors.Is(err, context.Canceled) {
		t.Errorf("eachText = %v, want %v", err, context.Canceled)
	}
}

func TestASingleLineDoesNotWaitForOthers(t *testing.T) {
	in, lines := io.Pipe()
	results, out := io.Pipe()
	ended := make(chan error)
	go func() {
		ended <- (&commands{in: in, out: out}).eachText(context.Background(), textInput{}, echo, jsonLines{})
	}()
	got := bufio.NewReader(results)
	for _, text := range []string{"one", "two"} {
		fmt.Fprintln(lines, text)
		if line, err := got.ReadString('\n'); err != nil || line != `"`+text+`"`+"\n" {
			t.Fatalf("the output for %q is %q, %v", text, line, err)
		}
	}
	lines.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A bar counts the lines of a file, and the records of a data file.
func TestLinesOfAFileAreCounted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "a.txt", strings.Repeat("one\n\n", 50_000))
	writeFile(t, ".", "open.txt", "one\ntwo") // the last line has no end
	writeFile(t, ".", "empty.txt", "")
	writeFile(t, ".", "a.csv", "text\n\"one\ntwo\"\nthree\n")
	writeFile(t, ".", "a.txt.gz", "")
	for name, want := range map[string]int{
		"a.txt": 100_000, "open.txt": 2, "empty.txt": 0, "a.csv": 2, "a.txt.gz": 0, "": 0,
	} {
		from := textInput{file: name}
		var lines lineSource = newTexts(context.Background(), strings.NewReader(""), nil)
		if name == "a.csv" {
			var err error
			if lines, _, err = from.open(context.Background(), nil); err != nil {
				t.Fatal(err)
			}
		}
		if got := from.lineCount(lines); got != want {
			t.Errorf("%q has %d lines, want %d", name, got, want)
		}
		if _, err := lines.next(); !errors.Is(err, io.EOF) || name == "a.csv" && (lines.read() != 2 ||
			from.lineCount(lines) != 2) {
			t.Errorf("%q: read %d, %v", name, lines.read(), err)
		}
	}
}
