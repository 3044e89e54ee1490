package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// encoding has the bytes that distinguish instructions that neither avo nor Go's assembler supports. All have three
// full AVX-512 registers as operands.
type encoding struct {
	prefix byte // the field pp of EVEX: 2 is the prefix F3, 3 is F2
	opcode byte // in the map 0F38
	isa    string
}

// encodings are the instructions of Intel's Software Developer's Manual, volume 2, by name.
var encodings = map[string]encoding{
	"VDPBF16PS":      {2, 0x52, "AVX512_BF16"},
	"VCVTNE2PS2BF16": {3, 0x72, "AVX512_BF16"},
}

// encoded writes the instruction called name, which reads inputs and writes out, operands in Go's order. It keeps
// its name until registers are allocated; encode then replaces it by its bytes.
func (a *isa) encoded(name string, inputs []operand.Op, out reg.Register) {
	operands := append([]operand.Op(nil), inputs[:2]...)
	a.Instruction(&ir.Instruction{
		Opcode: name, Operands: append(operands, out),
		Inputs: inputs, Outputs: []operand.Op{out}, ISA: []string{encodings[name].isa},
	})
}

// encode replaces the instructions that Go's assembler does not support by their bytes.
func encode(file *ir.File) {
	for _, f := range file.Functions() {
		for _, i := range f.Instructions() {
			e, unknown := encodings[i.Opcode]
			if !unknown {
				continue
			}
			var r [3]reg.Register
			for n, operand := range i.Operands {
				r[n] = operand.(reg.Register)
			}
			b := e.bytes(number(r[0]), number(r[1]), number(r[2]))
			text := fmt.Sprintf("LONG $0x%02x%02x%02x%02x; WORD $0x%02x%02x // %s %s, %s, %s",
				b[3], b[2], b[1], b[0], b[5], b[4], i.Opcode, r[0].Asm(), r[1].Asm(), r[2].Asm())
			i.Opcode, i.Operands = text, nil
		}
	}
}

// number returns the number of a register, 0 to 31.
func number(r reg.Register) byte { return byte(reg.ToPhysical(r).PhysicalIndex()) }

// bytes returns the instruction on registers of these numbers, in Go's order: the second source, the first, the
// destination.
func (e encoding) bytes(second, first, out byte) [6]byte {
	not := func(x byte, bit int) byte { return ^x >> bit & 1 } // EVEX has most of the bits of register numbers inverted
	return [6]byte{
		0x62,
		not(out, 3)<<7 | not(second, 4)<<6 | not(second, 3)<<5 | not(out, 4)<<4 | 0b010, // R X B R', map 0F38
		^first&0xf<<3 | 1<<2 | e.prefix, // W = 0, vvvv, pp
		0b10<<5 | not(first, 4)<<3,      // 512 bits, no mask, V'
		e.opcode,
		0b11<<6 | out&7<<3 | second&7,
	}
}
