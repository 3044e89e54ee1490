package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// IsFloat reports whether Decode reads values of type dtype.
func IsFloat(dtype string) bool { return dtype == "F32" || dtype == "F16" || dtype == "BF16" }

// Decode fills values from little-endian bytes of type F32, F16 or BF16.
func Decode(values []float32, raw []byte, dtype string) {
	switch dtype {
	case "F32":
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case "F16":
		for i := range values {
			values[i] = float16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case "BF16": // the upper half of a float32
		for i := range values {
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	default:
		panic(fmt.Sprintf("safetensors: decode %s", dtype))
	}
}

// float16 returns the value of an IEEE 754 half: a sign, 5 bits of exponent, 10 of fraction.
func float16(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero and the numbers below 2^-14, which a float32 holds exactly
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f: // infinities and NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}
