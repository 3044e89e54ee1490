package grade

import (
	"fmt"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/parttest"
)

func init() { parttest.AddSample(Kind, sample) }

func TestKind(t *testing.T) { parttest.Output(t, Kind) }

func TestHead(t *testing.T) { parttest.Head(t, "thresholds", "dropout: 0.2") }

func TestTask(t *testing.T) { parttest.Task(t, "grading", "") }

var sample = parttest.Sample[Target, Prediction]{
	Text: func(i, words int, labels *corpus.Labels) (*Target, parttest.SampleText) {
		rank := i % len(labels.Names())
		signal := []int{rank}
		return &Target{labels.Name(rank), rank}, parttest.SampleWords(words, signal, func(int) []int { return signal })
	},
	Check: func(p *Prediction, _ nn.Rows, _, labels int) error {
		if p.Rank < 0 || p.Rank >= labels || len(p.Above) != labels-1 {
			return fmt.Errorf("rank %d with %d thresholds, of %d grades", p.Rank, len(p.Above), labels)
		}
		return nil
	},
	Record: func(_ int, label string, _ []string) map[string]any {
		return map[string]any{"text": "a red kite", "grade": label}
	},
	Right: func(t *Target, labels *corpus.Labels) *Prediction { return certain(t.Rank, labels) },
	Wrong: func(p *Prediction, labels *corpus.Labels) *Prediction {
		return certain((p.Rank+1)%len(labels.Names()), labels)
	},
	Unseen: func(*Target) *Target { return &Target{"unseen", corpus.Unknown} },
}

// certain returns the prediction of a rank with probability 1.
func certain(rank int, labels *corpus.Labels) *Prediction {
	p := &Prediction{Rank: rank, Above: make([]float32, len(labels.Names())-1), Grade: labels.Name(rank)}
	for k := range rank {
		p.Above[k] = 1
	}
	return p
}
