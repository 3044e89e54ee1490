package kernel

import (
	"math"
	"slices"
	"testing"
)

func TestDropoutHasItsRateAndKeepsTheMean(t *testing.T) {
	inEachSet(t, testDropoutHasItsRateAndKeepsTheMean)
}

func testDropoutHasItsRateAndKeepsTheMean(t *testing.T) {
	const n = 200000
	ones := slices.Repeat([]float32{1}, n)
	for _, rate := range []float64{0, 0.1, 0.5, 0.99} {
		out := make([]float32, n)
		Dropout(out, ones, 7, rate)
		dropped := 0
		for _, v := range out {
			if v == 0 {
				dropped++
			} else if v != float32(1/(1-rate)) {
				t.Fatalf("rate %v keeps 1 as %v", rate, v)
			}
		}
		// Five standard deviations of a binomial distribution.
		if d := math.Abs(float64(dropped)/n - rate); d > 5*math.Sqrt(rate*(1-rate)/n) {
			t.Errorf("rate %v drops %v", rate, float64(dropped)/n)
		}
	}
}

func TestDropoutsOfTwoKeysAreIndependent(t *testing.T) {
	inEachSet(t, testDropoutsOfTwoKeysAreIndependent)
}

func testDropoutsOfTwoKeysAreIndependent(t *testing.T) {
	const n, rate = 200000, 0.5
	ones := slices.Repeat([]float32{1}, n)
	a, b := make([]float32, n), make([]float32, n)
	Dropout(a, ones, 7, rate)
	for name, other := range map[string]func(){
		"the next key":     func() { Dropout(b, ones, 8, rate) },
		"the next text":    func() { newMask(7, rate).of(1).apply(b, ones, 0) },
		"the next element": func() { newMask(7, rate).apply(b, ones, 1) },
	} {
		other()
		both := 0
		for i := range a {
			if a[i] != 0 && b[i] != 0 {
				both++
			}
		}
		if fraction := float64(both) / n; !(math.Abs(fraction-0.25) <= 5*math.Sqrt(0.25*0.75/n)) {
			t.Errorf("%s keeps a fraction of %v in both, want a quarter", name, fraction)
		}
	}
}

func TestDropoutBackwardHasTheMaskOfForward(t *testing.T) {
	inEachSet(t, testDropoutBackwardHasTheMaskOfForward)
}

func testDropoutBackwardHasTheMaskOfForward(t *testing.T) {
	const n = 20001
	x, dOut, dx := normal(1, n), normal(2, n), normal(3, n)
	out, want := make([]float32, n), slices.Clone(dx)
	Dropout(out, x, 7, 0.3)
	for i, v := range out {
		if v != 0 {
			want[i] += dOut[i] * float32(1/0.7)
		}
	}
	DropoutBackward(dx, dOut, 7, 0.3)
	near(t, "DropoutBackward", dx, float64s(want), 1e-6)
	same(t, "Dropout", func() []float32 { Dropout(out, x, 7, 0.3); return out })
	Dropout(x, x, 7, 0.3)
	if !slices.Equal(x, out) {
		t.Errorf("Dropout in place differs")
	}
}

func TestAddDropped(t *testing.T) { inEachSet(t, testAddDropped) }

func testAddDropped(t *testing.T) {
	const n = 20001
	x, to, out := normal(1, n), normal(2, n), make([]float32, n)
	want := make([]float32, n)
	Dropout(want, x, 7, 0.3)
	for i, v := range to {
		want[i] += v
	}
	addDropped(out, to, x, 7, 0.3)
	if !slices.Equal(out, want) {
		t.Errorf("addDropped differs from the sum with Dropout's result")
	}
	for name, in := range map[string][]float32{"what is added to": to, "what is dropped from": x} {
		held := slices.Clone(in)
		addDropped(in, to, x, 7, 0.3)
		if !slices.Equal(in, want) {
			t.Errorf("addDropped differs where its result overwrites %s", name)
		}
		copy(in, held)
	}
}

// Random123's test vectors of Philox4x32-10.
func TestPhilox(t *testing.T) {
	for _, c := range []struct {
		key, counter, block uint64
		want                [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{1<<64 - 1, 1<<64 - 1, 1<<64 - 1, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, 0x0370734413198a2e, 0x85a308d3243f6a88,
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := philox(c.key, c.counter, c.block); got != c.want {
			t.Errorf("philox(%x, %x, %x) = %x, want %x", c.key, c.counter, c.block, got, c.want)
		}
	}
}

// A rate 2⁻³² higher drops one more value of the random words: each set's words equal those of the plain version.
func TestSetsDropTheSameElements(t *testing.T) {
	for _, s := range available() {
		ones, out := slices.Repeat([]float32{1}, 64), make([]float32, 64)
		for _, first := range []int{0, 3, math.MaxInt - 200} {
			for i := range ones {
				word := philox(9, 2, uint64(first+i)/4)[(first+i)%4]
				s.drop(out, ones, 9, 2, word, 1, first)
				if out[i] != 1 {
					t.Fatalf("%s: element %d is dropped at its own word", s.name, first+i)
				}
				s.drop(out, ones, 9, 2, word+1, 1, first)
				if out[i] != 0 {
					t.Fatalf("%s: element %d is kept below its word", s.name, first+i)
				}
			}
		}
	}
}

func (m mask) keeps(i int) bool { return philox(m.key, m.counter, uint64(i)/4)[i%4] >= m.bound }
