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
	train, dev := SplitN(all, []string(nil), 200, 42)
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
	if _, again := SplitN(all, []string(nil), 200, 42); !slices.Equal(dev, again) {
		t.Error("the same seed gives another dev")
	}
	if _, other := SplitN(all, []string(nil), 200, 43); slices.Equal(dev, other) {
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
			train, dev := SplitGroups(all, groupsOf(all), n, seed)
			if len(train)+len(dev) != len(all) || len(dev) < n-8 || len(dev) > n+20 {
				t.Errorf("seed %d: %d and %d of %d, want about %d in dev", seed, len(train), len(dev), len(all), n)
			}
			for _, e := range dev {
				if slices.ContainsFunc(train, func(other *Example) bool { return other.Group == e.Group }) {
					t.Fatalf("seed %d: group %s is in both", seed, e.Group)
				}
			}
			if _, again := SplitGroups(all, groupsOf(all), n, seed); !slices.Equal(again, dev) {
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
		if train, dev := SplitGroups(all, groupsOf(all), 10, seed); len(train) != 200 || len(dev) != 90 {
			t.Errorf("%d and %d, want the smallest group in dev", len(train), len(dev))
		}
		if train, dev := SplitGroups(all[:100], groupsOf(all[:100]), 10, seed); len(train) != 100 || len(dev) != 0 {
			t.Errorf("%d and %d of a single group, want it in train", len(train), len(dev))
		}
	}
}

func TestSplitNOfMoreThanAll(t *testing.T) {
	for n, want := range map[int]int{0: 0, 3: 3, 7: 5} {
		if train, dev := SplitN(make([]int, 5), []string(nil), n, 1); len(dev) != want || len(train) != 5-want {
			t.Errorf("SplitN of 5 by %d gives %d and %d, want %d in dev", n, len(train), len(dev), want)
		}
	}
}

// strataOf returns elements 0 to n-1 and the stratum of each, sorted: sizes[name] of each name.
func strataOf(names []string, sizes []int) (all []int, strata []string) {
	for s, name := range names {
		for range sizes[s] {
			all, strata = append(all, len(all)), append(strata, name)
		}
	}
	return all, strata
}

// The counts are those of the largest remainder, computed by hand: 20 of 100 elements of sizes 60, 37 and 3 have
// quotas 12, 7.4 and 0.6; 4 of them 2.4, 1.48 and 0.12, of which the third is raised to 1 at the cost of the first.
func TestStrataKeepTheirShares(t *testing.T) {
	names := []string{"a", "b", "c"}
	for _, test := range []struct {
		n           int
		sizes, want []int
	}{
		{20, []int{60, 37, 3}, []int{12, 7, 1}},
		{4, []int{60, 37, 3}, []int{2, 1, 1}},
		{2, []int{60, 37, 3}, []int{1, 1, 0}}, // fewer than strata: the largest remainders of 1.2, 0.74 and 0.06
		{3, []int{98, 1, 1}, []int{1, 1, 1}},
		{200, []int{60, 37, 3}, []int{60, 37, 3}},
		{0, []int{60, 37, 3}, []int{0, 0, 0}},
	} {
		all, strata := strataOf(names, test.sizes)
		for seed := range uint64(10) {
			sample, rest := Sample(all, strata, test.n, seed)
			if !slices.IsSorted(sample) || len(sample)+len(rest) != len(all) {
				t.Fatalf("sample %v and %d others of %d, want the order of all", sample, len(rest), len(all))
			}
			got := make([]int, len(names))
			for _, i := range sample {
				got[slices.Index(names, strata[i])]++
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("seed %d: %d of strata of sizes %v: %v of each, want %v", seed, test.n, test.sizes, got,
					test.want)
			}
		}
	}
}

func TestASampleDependsOnTheSeed(t *testing.T) {
	all, strata := strataOf([]string{"a", "b"}, []int{500, 500})
	first, _ := Sample(all, strata, 100, 1)
	if again, _ := Sample(all, strata, 100, 1); !slices.Equal(first, again) {
		t.Error("the same seed gives another sample")
	}
	if other, _ := Sample(all, strata, 100, 2); slices.Equal(first, other) {
		t.Error("another seed gives the same sample")
	}
	if first[49] < 250 {
		t.Errorf("the 50 of the first stratum are %v, want them from all of it", first[:50])
	}
}

// No stratum is favoured for being first: with as many strata as elements, any of them may be drawn.
func TestTiesAreBrokenByChance(t *testing.T) {
	all, names := make([]int, 100), make([]string, 100)
	for i := range all {
		all[i], names[i] = i, string(rune('A'+i))
	}
	sample, _ := Sample(all, names, 20, 7)
	if len(sample) != 20 || sample[19] < 50 {
		t.Errorf("the sample is %v, want 20 elements of all", sample)
	}
}

func TestASplitLeavesOneOfEachStratumInTrain(t *testing.T) {
	all, strata := strataOf([]string{"a", "b", "c", ""}, []int{80, 1, 1, 18})
	for seed := range uint64(20) {
		train, dev := SplitN(all, strata, 50, seed)
		if len(train) != 50 || len(dev) != 50 || !slices.IsSorted(train) || !slices.IsSorted(dev) {
			t.Fatalf("seed %d: %d and %d, want 50 and 50 in order", seed, len(train), len(dev))
		}
		if !slices.Contains(train, 80) || !slices.Contains(train, 81) {
			t.Errorf("seed %d: the only elements of b and c are not in train", seed)
		}
		a, _ := slices.BinarySearch(dev, 80)
		if a < 40 || a > 41 {
			t.Errorf("seed %d: dev has %d of 80 elements of a, want half", seed, a)
		}
	}
}

// groupsOf lists the groups of examples.
func groupsOf(examples []*Example) []string {
	var names []string
	for _, e := range examples {
		names = append(names, e.Group)
	}
	return names
}
