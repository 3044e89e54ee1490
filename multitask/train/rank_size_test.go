package train

import (
	"sync/atomic"
	"testing"

	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/multitask"
)

// measuring counts the bytes that a transport has allocated.
type measuring struct {
	collective.Transport
	bytes atomic.Int64
}

func (m *measuring) Allocate(bytes int) ([]byte, error) {
	m.bytes.Add(int64(bytes))
	return m.Transport.Allocate(bytes)
}

// What ranks allocate outside of Go's heap is about what is estimated.
func TestTheMemoryOfRanks(t *testing.T) {
	for _, c := range append(wide(t),
		sharded{"running means", [2]int{0, 1}, func(m *multitask.Model, p *Plan) {
			wide(t)[0].change(m, p)
			p.Average = 0.9
		}},
	) {
		const ranks, shards = 2, 4
		all := c.start(t, ranks, shards, 1, 0.1)
		var transports []*measuring
		for rank, transport := range collectivetest.Local(ranks) {
			measured := &measuring{Transport: transport}
			group, err := collective.New(measured)
			if err != nil {
				t.Fatal(err)
			}
			plan := all[rank].plan
			plan.Ranks = group
			all[rank], transports = stepping(t, all[rank].model.Model, plan, 1), append(transports, measured)
		}
		c.run(t, all, 0, 1)

		need := all[0].plan.Memory(all[0].model.Model, 60) // a shard has at most a batch's tokens
		got, want := transports[0].bytes.Load(), need.Messages+need.Moved
		if float64(got) > 1.1*float64(want) || float64(got) < 0.5*float64(want) {
			t.Errorf("%s: %d bytes are allocated, %d were estimated", c.name, got, want)
		}
		alone := all[0].plan
		alone.Ranks = nil
		whole := alone.Memory(all[0].model.Model, 60).Optimizer
		if divided := c.name != "running means"; divided != (2*need.Optimizer < whole*11/10) {
			t.Errorf("%s: the optimizer keeps %d bytes of %d in a rank", c.name, need.Optimizer, whole)
		}
	}
}
