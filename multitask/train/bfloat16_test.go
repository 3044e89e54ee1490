package train

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// precisions records the precision of each of an encoder's passes.
type precisions struct {
	encoders.Encoder
	training, judging []bool // whether it is bfloat16
}

func (a *precisions) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if p.Training {
		a.training = append(a.training, mode.Precision == nn.BFloat16)
	} else {
		a.judging = append(a.judging, mode.Precision == nn.BFloat16)
	}
	return a.Encoder.Encode(p, tokens, mode)
}

func TestBFloat16IsForTrainingWhatLearns(t *testing.T) {
	for freeze, want := range map[string]bool{"none": true, "1": true, "all": false} {
		m, plan := smallModel(t, freeze, 0), smallPlan()
		encoder := &precisions{Encoder: m.Encoder}
		m.Encoder, plan.BFloat16 = encoder, true
		train(t, m, smallData(m, 8), plan)
		if len(encoder.training) == 0 || slices.Contains(encoder.training, !want) {
			t.Errorf("freeze: %s: trained with bfloat16 %v, want %v", freeze, encoder.training, want)
		}
		if len(encoder.judging) == 0 || slices.Contains(encoder.judging, true) {
			t.Errorf("freeze: %s: judged with bfloat16 %v, want never", freeze, encoder.judging)
		}
	}
}

func TestTrainingInBFloat16LearnsAsWell(t *testing.T) {
	trained := func(bfloat16 bool) (first, last float64) {
		m, plan := smallModel(t, "none", 0), smallPlan()
		plan.Epochs, plan.BFloat16 = 20, bfloat16
		steps, _ := train(t, m, smallData(m, 30), plan)
		const tail = 15 // steps
		for _, s := range steps[len(steps)-tail:] {
			last += s.Loss / tail
		}
		return steps[0].Loss, last
	}
	wantFirst, want := trained(false)
	first, last := trained(true)
	if d := math.Abs(first/wantFirst - 1); d == 0 || !(d <= 0.01) {
		t.Errorf("the first step's loss is %v, %v in float32; want it to differ, by rounding alone", first, wantFirst)
	}
	if !(last < first/4) || !(math.Abs(last-want) <= 0.05*wantFirst) {
		t.Errorf("the loss goes from %v to %v, in float32 from %v to %v", first, last, wantFirst, want)
	}
}
