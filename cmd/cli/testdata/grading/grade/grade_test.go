package grade

import (
	"fmt"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
)

func init() { parttest.AddSample(Kind, sample) }

func TestKind(t *testing.T) { parttest.Output(t, Kind) }

func TestHead(t *testing.T) { parttest.Head(t, "thresholds", "dropout: 0.2") }

func TestTask(t *testing.T) { parttest.Task(t, "grading", "") }

var sample = parttest.Sample{
	Text: func(i, words int, labels *corpus.Labels) (corpus.Target, parttest.SampleText) {
		rank := i % len(labels.Names())
		signal := []int{rank}
		return &Target{labels.Name(rank), rank}, parttest.SampleWords(words, signal, func(int) []int { return signal })
	},
	Right: func(t corpus.Target, labels *corpus.Labels) corpus.Prediction {
		target := outputs.As[Target](t)
		p := &Prediction{Rank: target.Rank, Above: make([]float32, len(labels.Names())-1), Grade: target.Grade}
		for k := range p.Rank {
			p.Above[k] = 1
		}
		return p
	},
	Check: func(prediction corpus.Prediction, _ nn.Rows, _, labels int) error {
		p := outputs.As[Prediction](prediction)
		if p.Rank < 0 || p.Rank >= labels || len(p.Above) != labels-1 {
			return fmt.Errorf("rank %d with %d thresholds, of %d grades", p.Rank, len(p.Above), labels)
		}
		return nil
	},
}
