package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// explanationText writes explanations as text.
type explanationText struct {
	colour      bool
	layer, head int                    // of the attention that is written; below 0: none, the mean of the heads
	maps        encoders.AttentionMaps // that may be asked for
}

// newExplanationText makes the text of flags for a model with attention maps. It is coloured if out is a terminal.
func newExplanationText(out io.Writer, f explainFlags, attention encoders.AttentionMaps) *explanationText {
	colour := isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if f.noAttention {
		attention = encoders.AttentionMaps{}
	}
	return &explanationText{colour, f.layer, f.head, attention}
}

const barCells = 20 // of the longest bar

// write writes all that the explanation has to w.
func (t *explanationText) write(w io.Writer, x predict.Explanation) error {
	var out strings.Builder
	for _, task := range slices.Sorted(maps.Keys(x.Prediction.Tasks)) {
		for _, head := range slices.Sorted(maps.Keys(x.Prediction.Tasks[task])) {
			answer, err := json.Marshal(x.Prediction.Tasks[task][head])
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s: %s\n", nameOf(task, head), answer)
		}
	}
	if n := x.Prediction.Truncated; n > 0 {
		fmt.Fprintf(&out, "%d tokens were not read\n", n)
	}
	for _, r := range x.Readings {
		for b, w := range r.Windows {
			where := ""
			if len(r.Windows) > 1 {
				where = fmt.Sprintf(", window %d of %d", b+1, len(r.Windows))
			}
			t.answers(&out, x, w, where)
			t.weights(&out, w, where)
			t.lenses(&out, w, where)
			t.attention(&out, r, w, where)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(x.FusionFigures)) {
		fmt.Fprintf(&out, "\n%s: the fusion's figures: %.3f\n", task, x.FusionFigures[task])
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&out, "\nnote: %s\n", note)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// nameOf is the name of a head in the text: that of its task where both have one.
func nameOf(task, head string) string {
	if task == head {
		return task
	}
	return task + "/" + head
}

// answers writes a table of attributions for each answer.
func (t *explanationText) answers(out *strings.Builder, x predict.Explanation, w predict.Window, where string) {
	for _, task := range slices.Sorted(maps.Keys(w.Answers)) {
		for _, head := range slices.Sorted(maps.Keys(w.Answers[task])) {
			for _, a := range w.Answers[task][head] {
				fmt.Fprintf(out, "\n%s%s: %q", nameOf(task, head), where, a.Label)
				if words := x.Prediction.Words; a.Word != nil && *a.Word < len(words) {
					at := words[*a.Word]
					fmt.Fprintf(out, " of the word %q", x.Prediction.Text[at.Start:at.End])
				}
				fmt.Fprintf(out, ", logit %.3f", a.Logit)
				if a.Baseline != nil {
					fmt.Fprintf(out, ", of the baseline %.3f", *a.Baseline)
				}
				out.WriteByte('\n')
				t.attribution(out, w.Tokens, a)
			}
		}
	}
}

// attribution writes what each token adds to an answer, with a bar of integrated gradients, or of gradient × input.
func (t *explanationText) attribution(out *strings.Builder, tokens []predict.Token, a predict.Attribution) {
	if a.GradientInput == nil {
		return
	}
	names, width := namesOf(tokens)
	drawn, header := a.GradientInput, fmt.Sprintf("  %s  gradient×input", pad("token", width))
	if a.IntegratedGradients != nil {
		drawn, header = a.IntegratedGradients, header+"  integrated"
	}
	out.WriteString(header + "\n")
	largest := 0.0
	for _, v := range drawn {
		largest = math.Max(largest, math.Abs(v))
	}
	for i, name := range names {
		line := fmt.Sprintf("  %s  %14.4f", name, a.GradientInput[i])
		if a.IntegratedGradients != nil {
			line += fmt.Sprintf("  %10.4f", a.IntegratedGradients[i])
		}
		out.WriteString(strings.TrimRight(line+"  "+t.bar(drawn[i], largest), " ") + "\n")
	}
}

// bar returns a bar of + or - for a value.
func (t *explanationText) bar(v, largest float64) string {
	if largest == 0 {
		return ""
	}
	cells := int(math.Round(math.Abs(v) / largest * barCells))
	sign, colour := "+", "32"
	if v < 0 {
		sign, colour = "-", "31"
	}
	text := strings.Repeat(sign, cells)
	if t.colour && cells > 0 {
		return "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	return text
}

// weights writes the fusion's weight of each token, a column for each task.
func (t *explanationText) weights(out *strings.Builder, w predict.Window, where string) {
	tasks := slices.Sorted(maps.Keys(w.Fusion))
	if len(tasks) == 0 {
		return
	}
	names, width := namesOf(w.Tokens)
	fmt.Fprintf(out, "\nweights of the fusion%s\n  %s", where, pad("token", width))
	for _, task := range tasks {
		fmt.Fprintf(out, "  %8s", task)
	}
	out.WriteByte('\n')
	for i, name := range names {
		out.WriteString("  " + name)
		for _, task := range tasks {
			fmt.Fprintf(out, "  %*.4f", max(8, uniseg.StringWidth(task)), w.Fusion[task][i])
		}
		out.WriteByte('\n')
	}
}

// lenses writes a line for each token's lens, as wide as the text: the centre, and what is within one aperture of it.
func (t *explanationText) lenses(out *strings.Builder, w predict.Window, where string) {
	const columns = 40
	names, width := namesOf(w.Tokens)
	for _, task := range slices.Sorted(maps.Keys(w.Lenses)) {
		for _, head := range slices.Sorted(maps.Keys(w.Lenses[task])) {
			lens := w.Lenses[task][head]
			for l := range lens.Centre {
				fmt.Fprintf(out, "\nlens %d of %s%s, from the first token to the last\n  %s  centre  aperture\n", l+1,
					nameOf(task, head), where, pad("token", width))
				for i, name := range names {
					centre, aperture := float64(lens.Centre[l][i]), float64(lens.Aperture[l][i])
					curve := make([]byte, columns)
					for k := range curve {
						curve[k] = '.'
						if math.Abs(float64(k)/(columns-1)-centre) <= aperture {
							curve[k] = '-'
						}
					}
					curve[min(columns-1, max(0, int(math.Round(centre*(columns-1)))))] = 'o'
					fmt.Fprintf(out, "  %s  %6.3f  %8.3f  %s\n", name, centre, aperture, curve)
				}
			}
		}
	}
}

// namesOf returns the tokens, each with blanks up to the same width.
func namesOf(tokens []predict.Token) (names []string, width int) {
	width = len("token")
	for _, token := range tokens {
		width = max(width, uniseg.StringWidth(token.Token))
	}
	for _, token := range tokens {
		names = append(names, pad(token.Token, width))
	}
	return names, width
}

// pad returns a text with blanks up to a width of columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}
