package kernel

import (
	"slices"
	"testing"
)

// inEachSet runs test with each version of the loops that this processor has.
func inEachSet(t *testing.T, test func(t *testing.T)) {
	chosen := use
	defer func() { use = chosen }()
	for _, s := range available() {
		use = s
		t.Run(s.name, test)
	}
}

func TestChooseByName(t *testing.T) {
	there := []*set{{loops: loops{name: "slow"}}, {loops: loops{name: "fast"}}}
	for name, want := range map[string]string{"": "fast", "slow": "slow", "fast": "fast"} {
		got, err := choose(name, there)
		if err != nil || got.name != want {
			t.Errorf("choose(%q) = %s, %v; want %s", name, got.name, err, want)
		}
	}
	_, err := choose("fsat", there)
	if want := `JENGA_KERNEL=fsat: this processor has no kernel of that name; it has slow, fast`; err == nil ||
		err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
}

func TestRequestedKernelIsInUse(t *testing.T) {
	if err := Check(); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains([]string{"plain", "avx2", "avx512", "neon"}, Name()) {
		t.Errorf("the kernel in use is called %q", Name())
	}
}
