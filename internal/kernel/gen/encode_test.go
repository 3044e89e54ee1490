package main

import (
	"fmt"
	"testing"
)

// The bytes are those of the GNU assembler, Binutils 2.40, whose operands are in reverse order:
// vdpbf16ps zmm0, zmm1, zmm2 is VDPBF16PS Z2, Z1, Z0.
func TestInstructionsThatGoDoesNotKnow(t *testing.T) {
	for _, test := range []struct {
		name               string
		second, first, out byte
		want               string
	}{
		{"VDPBF16PS", 2, 1, 0, "62 f2 76 48 52 c2"},
		{"VDPBF16PS", 0, 0, 8, "62 72 7e 48 52 c0"},
		{"VDPBF16PS", 0, 0, 16, "62 e2 7e 48 52 c0"},
		{"VDPBF16PS", 0, 8, 0, "62 f2 3e 48 52 c0"},
		{"VDPBF16PS", 0, 16, 0, "62 f2 7e 40 52 c0"},
		{"VDPBF16PS", 8, 0, 0, "62 d2 7e 48 52 c0"},
		{"VDPBF16PS", 16, 0, 0, "62 b2 7e 48 52 c0"},
		{"VDPBF16PS", 31, 31, 31, "62 02 06 40 52 ff"},
		{"VDPBF16PS", 11, 18, 29, "62 42 6e 40 52 eb"},
		{"VCVTNE2PS2BF16", 2, 1, 0, "62 f2 77 48 72 c2"},
		{"VCVTNE2PS2BF16", 15, 30, 21, "62 c2 0f 40 72 ef"},
	} {
		b := encodings[test.name].bytes(test.second, test.first, test.out)
		if got := fmt.Sprintf("% x", b[:]); got != test.want {
			t.Errorf("%s Z%d, Z%d, Z%d is %s, want %s", test.name, test.second, test.first, test.out, got, test.want)
		}
	}
}
