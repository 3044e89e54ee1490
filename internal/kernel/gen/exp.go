package main

import (
	"math"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Exponentials are computed as 2^n·2^r, n the whole number nearest to the exponent and |r| <= 1/2, several registers in
// step: each instruction depends on the one before, and those of other registers fill its latency.
// scripts/fixtures/exponentials.py fits the coefficients, here and in gelu.go.

// powerOf2 are the coefficients of 2^r, r^0 first: to within 2^-28.3 of the value.
var powerOf2 = []float32{1, 0.693147182, 0.240226477, 0.0555035993, 0.00961850584, 0.00133908063, 0.000153264686}

// lowestPower is the exponent below which a power of two is rounded to 0: its half, which halfPowers computes, is the
// smallest normal number. Denormals are slow on some processors.
const lowestPower = -125

// log2e is 1/ln(2) in two parts: the first is its float32.
var log2e = [2]float32{float32(math.Log2E), float32(math.Log2E - float64(float32(math.Log2E)))}

// exponentials overwrites each register of x by e^x, 0 where that is below 2^-125.
func (a *isa) exponentials(x []reg.VecVirtual) {
	highest := a.vector()
	a.VBROADCASTSS(a.inMemory(89), highest) // e^89 is infinite
	for _, x := range x {
		a.VMINPS(x, highest, x) // of a number and NaN, the latter
	}
	whole, rest, power := a.split(x, log2e[0])
	for i, x := range x {
		a.withConstant(a.VFMADD231PS, a.VFMADD231PS_BCST, log2e[1], x, rest[i])
	}
	for i, half := range a.halfPowers(whole, rest, power) {
		a.VADDPS(half, half, x[i])
	}
}

// split returns the whole number nearest to by·x, as an integer, the rest, and by·x itself.
func (a *isa) split(x []reg.VecVirtual, by float32) (whole, rest, product []reg.VecVirtual) {
	whole, rest, product = a.vectors(len(x)), a.vectors(len(x)), a.vectors(len(x))
	for i, x := range x {
		a.withConstant(a.VMULPS, a.VMULPS_BCST, by, x, product[i])
	}
	for i, x := range x {
		a.VCVTPS2DQ(product[i], whole[i])
		a.VCVTDQ2PS(whole[i], rest[i])
		a.withConstant(a.VFMSUB231PS, a.VFMSUB231PS_BCST, by, x, rest[i])
	}
	return whole, rest, product
}

// halfPowers returns 2^(power-1), given power as a whole number, which it overwrites, and the rest: 0 where power is
// below lowestPower, NaN where rest and power are NaN. It is half of 2^power, because 2^128, times a number below 1, is
// too large for an exponent's bits.
func (a *isa) halfPowers(whole, rest, power []reg.VecVirtual) []reg.VecVirtual {
	var halves []float32
	for _, c := range powerOf2 {
		halves = append(halves, c/2)
	}
	p := a.polynomials(rest, halves)
	for i := range p {
		a.VPSLLD(operand.U8(23), whole[i], whole[i]) // to the exponent's bits
		a.VPADDD(whole[i], p[i], p[i])
		a.unlessBelow(power[i], lowestPower, p[i])
	}
	return p
}

// unlessBelow sets the lanes of v to 0 where x is less than bound, and keeps them where x is NaN.
func (a *isa) unlessBelow(x reg.VecVirtual, bound float32, v reg.VecVirtual) {
	const notLess = 0x15 // NLT_UQ
	if a.avx512() {
		k := a.K()
		a.VCMPPS_BCST(operand.U8(notLess), a.inMemory(bound), x, k)
		a.VMOVAPS_Z(v, k, v)
		return
	}
	a.VCMPPS(operand.U8(notLess), a.inMemory(bound), x, x)
	a.VANDPS(x, v, v)
}

// polynomials returns Σ c[i]·x^i by Horner's rule, for each register of x.
func (a *isa) polynomials(x []reg.VecVirtual, c []float32) []reg.VecVirtual {
	p := a.vectors(len(x))
	for i := range p {
		a.VBROADCASTSS(a.inMemory(c[len(c)-1]), p[i])
	}
	for n := len(c) - 2; n >= 0; n-- {
		for i := range p {
			a.withConstant(a.VFMADD213PS, a.VFMADD213PS_BCST, c[n], x[i], p[i])
		}
	}
	return p
}

// withConstant writes an instruction whose first operand is v in every lane, read from memory: registers are few.
func (a *isa) withConstant(instruction, broadcast func(...operand.Op), v float32, others ...operand.Op) {
	if a.avx512() {
		instruction = broadcast
	}
	instruction(append([]operand.Op{a.inMemory(v)}, others...)...)
}

// inMemory is v in memory: eight times for AVX2, whose instructions read whole registers.
func (a *isa) inMemory(v float32) operand.Mem {
	bits := math.Float32bits(v)
	if m, ok := a.stored[bits]; ok {
		return m
	}
	m := a.StaticGlobal(a.label("number"))
	a.DataAttributes(attr.RODATA | attr.NOPTR)
	times := map[bool]int{false: 8, true: 1}[a.avx512()]
	for range times {
		a.AppendDatum(operand.U32(bits))
	}
	if a.stored == nil {
		a.stored = make(map[uint32]operand.Mem)
	}
	a.stored[bits] = m
	return m
}

// vectors returns n registers.
func (a *isa) vectors(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = a.vector()
	}
	return v
}

// loads reads a register at each place after base.
func (a *isa) loads(at []place, base reg.Register) []reg.VecVirtual {
	v := make([]reg.VecVirtual, len(at))
	for i := range v {
		v[i] = a.load(at[i](base))
	}
	return v
}
