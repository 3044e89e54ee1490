package main

import (
	"fmt"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/reg"
)

// checkAVX2 returns an error for instructions or registers that AVX2 lacks in a function for it: avo allocates the
// registers 16 to 31 to a loop that requires more than 16, and the assembler then silently emits AVX-512 instructions.
func checkAVX2(f *ir.Function) error {
	if !strings.HasSuffix(f.Name, "AVX2") {
		return nil
	}
	for _, isa := range f.ISA {
		if strings.HasPrefix(isa, "AVX512") {
			return fmt.Errorf("%s needs %s", f.Name, isa)
		}
	}
	for _, i := range f.Instructions() {
		for _, r := range i.Registers() {
			if p, ok := r.(reg.Physical); ok && p.Kind() == reg.KindVector && p.PhysicalIndex() >= 16 {
				return fmt.Errorf("%s: %s uses %s, which AVX2 does not have", f.Name, i.Opcode, p.Asm())
			}
		}
	}
	return nil
}
