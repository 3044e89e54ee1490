package nn

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestParams(t *testing.T) {
	t.Run("initial values are a function of seed and name alone", func(t *testing.T) {
		first, second := NewParams(1), NewParams(1)
		a := first.In("a").Normal("w", 0.02, 3, 4)
		second.Normal("before", 0.02, 5)
		if b := second.In("a").Normal("w", 0.02, 3, 4); !slices.Equal(a.Data, b.Data) {
			t.Error("a parameter made before changes the values")
		}
		if c := first.In("b").Normal("w", 0.02, 3, 4); slices.Equal(a.Data, c.Data) {
			t.Error("two names have the same values")
		}
		if c := NewParams(2).In("a").Normal("w", 0.02, 3, 4); slices.Equal(a.Data, c.Data) {
			t.Error("two seeds have the same values")
		}
	})
	t.Run("normal values have the deviation asked for", func(t *testing.T) {
		w := NewParams(1).Normal("w", 0.02, 100, 100)
		var sum, squares float64
		for _, v := range w.Data {
			sum += float64(v)
			squares += float64(v) * float64(v)
		}
		// Five standard errors of the mean and of the deviation of 10,000 draws.
		if mean, std := sum/1e4, math.Sqrt(squares/1e4); !(math.Abs(mean) <= 1e-3) || !(math.Abs(std-0.02) <= 7.1e-4) {
			t.Errorf("mean %v and deviation %v, want 0 and 0.02", mean, std)
		}
	})
	t.Run("where values come from a file none are made", func(t *testing.T) {
		root := NewParams(1)
		at := root.WithoutValues().In("a")
		for _, w := range []*Param{at.Normal("normal", 0.02, 3, 4), at.Zeros("zeros", 3), at.Ones("ones", 3)} {
			if w.Data != nil {
				t.Errorf("%s has values %v", w.Name, w.Data)
			}
		}
		if w := root.In("a").Ones("w", 1); len(root.All()) != 4 || len(w.Data) != 1 {
			t.Errorf("%d parameters, the last with values %v; want 4 in one tree, and values beside that corner",
				len(root.All()), w.Data)
		}
	})
	t.Run("a corner lists what is below it, in the order made", func(t *testing.T) {
		root := NewParams(1)
		head := root.In("heads").In("a")
		matrix, bias := head.Normal("weight", 1, 2, 2), head.Zeros("bias", 2)
		root.In("heads").In("ab").Ones("weight", 2)
		if got := head.All(); !slices.Equal(got, []*Param{matrix, bias}) {
			t.Errorf("%d parameters below heads.a, want 2", len(got))
		}
		if matrix.Name != "heads.a.weight" || head.Path() != "heads.a" {
			t.Errorf("name %q at %q, want heads.a.weight at heads.a", matrix.Name, head.Path())
		}
		if !matrix.Decay || bias.Decay {
			t.Error("matrices decay, vectors do not")
		}
	})
	t.Run("frozen parameters take no gradient", func(t *testing.T) {
		root := NewParams(1)
		w, frozen := root.Zeros("w", 2), root.Zeros("frozen", 2)
		frozen.Frozen = true
		g := NewGradients(root.All())
		if !g.Has(w) || g.Has(frozen) {
			t.Errorf("gradients %v", g)
		}
		g.Of(w)[1] = 3
		g.zeroAll()
		if g.Of(w)[1] != 0 {
			t.Error("Zero leaves a gradient")
		}
	})
	for name, wrong := range map[string]func(p Params){
		"two of one name":         func(p Params) { p.Zeros("w", 1); p.Zeros("w", 1) },
		"a shape of nothing":      func(p Params) { p.Zeros("w", 3, 0) },
		"a shape beyond counting": func(p Params) { p.Zeros("w", 1<<20, 1<<20) },
	} {
		t.Run(name+" panics", func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			wrong(NewParams(1))
		})
	}
}

func TestPassRandomness(t *testing.T) {
	at := func(seed, serial uint64, place string) uint64 {
		p := NewPass(seed)
		p.Reset(serial)
		key := p.Key(place)
		if p.Key(place) != key {
			t.Error("one place has two keys")
		}
		return key
	}
	keys := map[uint64]bool{at(1, 1, "a"): true, at(2, 1, "a"): true, at(1, 2, "a"): true, at(1, 1, "b"): true}
	if len(keys) != 4 {
		t.Errorf("%d keys for four seeds, serial numbers and places", len(keys))
	}
	if !keys[at(1, 1, "a")] {
		t.Error("a key changes")
	}
}

func TestFloats(t *testing.T) {
	p := NewPass(1)
	sizes := []int{1, 5000, 4000, 3 << 20, 7}
	var handed [][]float32
	for _, n := range sizes {
		s := p.Floats(n)
		if len(s) != n || cap(s) != n {
			t.Fatalf("Floats(%d) has length %d and capacity %d", n, len(s), cap(s))
		}
		for i := range s {
			s[i] = float32(n)
		}
		handed = append(handed, s)
	}
	for i, s := range handed {
		if s[0] != float32(sizes[i]) || s[len(s)-1] != float32(sizes[i]) {
			t.Errorf("the %d floats were overwritten", sizes[i])
		}
	}
	sum := int64(0)
	for _, n := range sizes {
		sum += 4 * int64(n)
	}
	if p.Bytes() != sum {
		t.Errorf("Bytes() = %d, want %d", p.Bytes(), sum)
	}
	p.Reset(1)
	again := func() {
		for _, n := range sizes {
			if s := p.Floats(n); s[0] != 0 || s[n-1] != 0 {
				t.Errorf("Floats(%d) after Reset is not zero", n)
			}
		}
		p.arena.reset()
	}
	again()
	skipShort(t)
	allocations := testing.AllocsPerRun(1, again)
	if allocations != 0 {
		t.Errorf("%v allocations where the memory is there", allocations)
	}
}

func TestBatchesOfAllSizesShareTheirMemory(t *testing.T) {
	var a arena
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a.reset()
		n := 1<<14 + r.IntN(1<<14)
		for range 20 {
			a.floats(n)
			mark := a.mark()
			a.floats(3 * n)
			a.release(mark)
		}
	}
	a.reset()
	if most := 23 << 15; a.size() > most+most/4 { // 20 slices and the 3 of the last mark, of up to 1<<15 each
		t.Errorf("the arena holds %d floats for batches that take at most %d", a.size(), most)
	}
}

// Values that an owner put reference the pass's memory: they are dropped with it, or both would be in memory at once.
func TestValuesThatReferenceFreedMemoryAreDropped(t *testing.T) {
	p, owner := NewPass(1), "owner"
	// the third has a block of its own, beside an idle one
	for i, n := range []int{1 << 20, 1 << 20, 2 << 20, 2 << 20} {
		p.Reset(0)
		if reused, want := p.Reuse(owner) != nil, i == 1 || i == 2; reused != want {
			t.Errorf("batch %d: what was put before is there: %v, want %v", i, reused, want)
		}
		p.Put(owner, p.Scratch(n))
	}
}

func TestReservedMemoryIsOneBlock(t *testing.T) {
	p := NewPass(1)
	p.Reserve(4 * 40_000_000)
	for _, n := range []int{3_000_000, 7_000_000, 30_000_000} {
		p.Reset(0)
		p.Floats(n)
		p.Floats(10_000_000)
	}
	if len(p.arena.blocks) != 1 || p.arena.size() != 40_000_000 {
		t.Errorf("%d blocks with %d floats, want 1 with what was reserved", len(p.arena.blocks), p.arena.size())
	}
}
