package train

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
)

func (s *step) findBad(report Step) (*multitask.BadStep, error) {
	// losses
	var bad *multitask.BadStep
	for _, l := range s.losses.all {
		usual, isBad := s.training.guard.Check(l)
		switch {
		case !isBad:
		case bad != nil:
			bad.Others++
		default:
			bad = &multitask.BadStep{What: "loss", Head: l.HeadName(), Loss: l.Mean(), Usual: usual}
		}
	}

	// their sum, and its gradient
	if bad == nil {
		switch {
		case !floats.IsFinite(report.Loss):
			bad = &multitask.BadStep{What: "loss"}
		case !floats.IsFinite(report.GradientNorm):
			bad = &multitask.BadStep{What: "gradient"}
		default:
			return nil, nil
		}
	}
	if err := s.findTexts(bad); err != nil {
		return nil, err
	}
	switch updates := report.Number - 1 - s.training.guard.Skipped(); {
	case bad.Alone && len(bad.Texts) < bad.Of:
		bad.Remedy = multitask.SkipSteps
	case updates > 0:
		bad.Remedy = multitask.LowerRate
	}
	return bad, nil
}

// findTexts sets the texts of a bad step: those on which the loss of its head is bad if they are alone in a batch,
// without dropout. A text has the same states alone and in any batch. Each rank tries those of its shards.
func (s *step) findTexts(bad *multitask.BadStep) error {
	if bad.Head == (multitask.HeadName{}) {
		for _, b := range slices.Concat(s.all...) { // each rank has all texts
			bad.Texts = append(bad.Texts, b.batch.Examples...)
		}
		bad.Of = len(bad.Texts)
		return nil
	}

	// which are bad alone, of all ranks in the order of the shards
	tried := s.textsOf(s.shards, bad.Head)
	alone := make([]byte, len(tried))
	for i, one := range tried {
		if s.isBadAlone(one, bad.Usual) {
			alone[i] = 1
		}
	}
	ofRanks, err := s.training.plan.Ranks.AllGather(alone)
	if err != nil {
		return err
	}
	alone = slices.Concat(ofRanks...)

	// their texts
	all := s.textsOf(s.all, bad.Head)
	if len(alone) != len(all) {
		return fmt.Errorf("ranks have tried %d texts of %d", len(alone), len(all))
	}
	bad.Of, bad.Alone = len(all), slices.Contains(alone, 1)
	for i, one := range all {
		if !bad.Alone || alone[i] == 1 {
			bad.Texts = append(bad.Texts, one.example)
		}
	}
	return nil
}

// labelledText is an example of a batch with a target for head number h of its group.
type labelledText struct {
	packed
	h       int
	example *corpus.Example
}

func (s *step) textsOf(shards [][]packed, head multitask.HeadName) (all []labelledText) {
	for _, b := range slices.Concat(shards...) {
		h := slices.IndexFunc(s.losses.group(b.group), func(l multitask.Loss) bool { return l.HeadName() == head })
		for _, e := range b.batch.Examples {
			if h >= 0 && e.Targets != nil && e.Targets[h] != nil {
				all = append(all, labelledText{b, h, e})
			}
		}
	}
	return all
}

func (s *step) isBadAlone(one labelledText, usual float64) bool {
	pass, group, h := s.training.pass, &s.training.model.Groups[one.group], one.h
	pass.Reset(one.serial)
	pass.Training = false
	batch := corpus.Pack([]*corpus.Example{one.example})
	a, err := s.training.model.Forward(pass, group, batch)
	if err != nil {
		return false // of a file of states; the next step reports it
	}
	nodes := group.LossNodes(pass, a, batch)
	if err := pass.Forward(); err != nil || nodes[h] == nil {
		return false
	}
	l := group.Losses(batch)[h]
	l.Sum = multitask.LossValue(nodes[h])
	if usual > 0 {
		return l.Mean() > s.training.plan.LossLimit*usual
	}
	return !floats.IsFinite(l.Mean())
}
