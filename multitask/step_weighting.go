package multitask

import "github.com/jenga-nlp/jenga/nn"

// weigh sets the factors of the losses. Factors that depend on the losses are computed after the forward pass if the
// step has one batch; for several batches, another forward pass of each comes first, with the same dropout.
func (s *step) weigh() error {
	w, ok := s.plan.Weighting.(LossWeighting)
	switch {
	case !ok:
		s.factors = s.plan.Weighting.Weigh(s.state, s.losses.all)
		return nil
	case len(s.batches) == 1 && s.plan.Reducer == nil && s.losses.labelled(s.batches[0].group):
		return nil
	}
	losses, err := s.measure()
	if err != nil {
		return err
	}
	s.factors = w.WeighLosses(s.state, losses)
	return nil
}

// measure returns the losses of the step's batches by the current model, over all processes.
func (s *step) measure() ([]Loss, error) {
	measured := s.losses.empty()
	for _, b := range s.batches {
		if !measured.labelled(b.group) {
			continue
		}
		_, nodes, err := s.forward(b)
		if err != nil {
			return nil, err
		}
		if err := s.pass.Forward(); err != nil {
			return nil, err
		}
		measured.add(b.group, nodes)
	}
	return measured.all, measured.reduceSums()
}

// combine combines the tasks' gradients into one, for a weighting that is a GradientWeighting.
func (s *step) combine() {
	w, byTask := s.plan.Weighting.(GradientWeighting)
	if !byTask {
		return
	}

	// the tasks that have labelled units
	labelled := map[string]bool{}
	for _, l := range s.losses.all {
		labelled[l.Task] = labelled[l.Task] || l.Units > 0
	}
	all := s.model.tasks()
	var tasks []string
	var places []int // in all
	for t, name := range all {
		if labelled[name] {
			tasks, places = append(tasks, name), append(places, t)
		}
	}

	// their dot products
	dots := make([][]float64, len(tasks))
	for i := range dots {
		dots[i] = make([]float64, len(tasks))
	}
	for _, store := range s.stores {
		part := store.(nn.TaskStore).Dots()
		for i, t := range places {
			for j, u := range places {
				dots[i][j] += part[t][u]
			}
		}
	}

	// their sum
	factors := make([]float64, len(all))
	for i, factor := range w.Combine(s.state, tasks, dots) {
		factors[places[i]] = factor
	}
	for _, store := range s.stores {
		store.(nn.TaskStore).Combine(factors)
	}
}

// observe passes the step's losses to the sampler and the weighting, and the losses after the update to a LossReviewer.
func (s *step) observe() error {
	for _, part := range []any{s.plan.Sampler, s.plan.Weighting} {
		if o, ok := part.(LossObserver); ok {
			o.Observe(s.state, s.losses.all)
		}
	}
	r, ok := s.plan.Weighting.(LossReviewer)
	if !ok {
		return nil
	}
	after, err := s.measure()
	if err != nil {
		return err
	}
	r.Review(s.state, s.losses.all, after)
	return nil
}
