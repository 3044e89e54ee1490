package corpus

import (
	"slices"
	"testing"
)

func TestSplitNMovesElementsBySeed(t *testing.T) {
	all := make([]int, 1000)
	for i := range all {
		all[i] = i
	}
	train, dev := SplitN(all, 200, 42)
	if len(train) != 800 || len(dev) != 200 || !slices.IsSorted(train) || !slices.IsSorted(dev) {
		t.Fatalf("got %d and %d in order %v, %v, want 800 and 200 in order", len(train), len(dev),
			slices.IsSorted(train), slices.IsSorted(dev))
	}
	if both := slices.Sorted(slices.Values(append(slices.Clone(train), dev...))); !slices.Equal(both, all) {
		t.Error("train and dev are not all elements")
	}
	// about half of dev is expected to be from the first half
	if n, _ := slices.BinarySearch(dev, 500); n < 70 || n > 130 {
		t.Errorf("%d of 200 are of the first half, want about 100", n)
	}
	if _, again := SplitN(all, 200, 42); !slices.Equal(dev, again) {
		t.Error("the same seed gives another dev")
	}
	if _, other := SplitN(all, 200, 43); slices.Equal(dev, other) {
		t.Error("another seed gives the same dev")
	}
}

func TestSplitGroupsKeepsGroupsTogether(t *testing.T) {
	var all []*Example
	for i, size := range []int{3, 1, 40, 5, 2, 9, 4, 6, 8, 7, 15} {
		for range size {
			all = append(all, &Example{Group: string(rune('a' + i))})
		}
	}
	for seed := range uint64(20) {
		for _, n := range []int{0, 10, 50} {
			train, dev := SplitGroups(all, n, seed)
			if len(train)+len(dev) != len(all) || len(dev) < n-8 || len(dev) > n+20 {
				t.Errorf("seed %d: %d and %d of %d, want about %d in dev", seed, len(train), len(dev), len(all), n)
			}
			for _, e := range dev {
				if slices.ContainsFunc(train, func(other *Example) bool { return other.Group == e.Group }) {
					t.Fatalf("seed %d: group %s is in both", seed, e.Group)
				}
			}
			if _, again := SplitGroups(all, n, seed); !slices.Equal(again, dev) {
				t.Error("the same seed gives another dev")
			}
		}
	}
}

func TestSmallestGroupIsMovedIfNoneFits(t *testing.T) {
	var all []*Example
	for _, g := range []struct {
		name string
		size int
	}{{"a", 100}, {"b", 90}, {"c", 100}} {
		for range g.size {
			all = append(all, &Example{Group: g.name})
		}
	}
	for seed := range uint64(5) {
		if train, dev := SplitGroups(all, 10, seed); len(train) != 200 || len(dev) != 90 {
			t.Errorf("%d and %d, want the smallest group in dev", len(train), len(dev))
		}
		if train, dev := SplitGroups(all[:100], 10, seed); len(train) != 100 || len(dev) != 0 {
			t.Errorf("%d and %d of a single group, want it in train", len(train), len(dev))
		}
	}
}

func TestSplitNOfMoreThanAll(t *testing.T) {
	for n, want := range map[int]int{0: 0, 3: 3, 7: 5} {
		if train, dev := SplitN(make([]int, 5), n, 1); len(dev) != want || len(train) != 5-want {
			t.Errorf("SplitN of 5 by %d gives %d and %d, want %d in dev", n, len(train), len(dev), want)
		}
	}
}
