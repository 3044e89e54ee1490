#include "textflag.h"
#include "neon_arm64.h"

// The loops are those that gen/softmax.go, gen/gelu.go and gen/tanh.go, which have the formulas and the sources of the
// numbers, write for amd64: each element has the same operations. One register is computed at a time. The next ones do not
// depend on it, so an out-of-order processor computes several at once.

// NUMBER is entry i of numbers<>: four times v.
#define NUMBER(i, v) \
	DATA numbers<>+(16*(i))(SB)/4, $(v);   \
	DATA numbers<>+(16*(i)+4)(SB)/4, $(v); \
	DATA numbers<>+(16*(i)+8)(SB)/4, $(v); \
	DATA numbers<>+(16*(i)+12)(SB)/4, $(v)

// The coefficients of 2^r/2, the highest power's first: powerOf2 in gen/exp.go.
#define HALF_POWER_OF_2 0
NUMBER(0, 7.663234e-05)
NUMBER(1, 0.0006695403)
NUMBER(2, 0.004809253)
NUMBER(3, 0.0277518)
NUMBER(4, 0.12011324)
NUMBER(5, 0.3465736)
NUMBER(6, 0.5)

// Those of 2^r except the last, 1.
#define POWER_OF_2 7
NUMBER(7, 0.000153264686)
NUMBER(8, 0.00133908063)
NUMBER(9, 0.00961850584)
NUMBER(10, 0.0555035993)
NUMBER(11, 0.240226477)
NUMBER(12, 0.693147182)

// tail in gen/gelu.go.
#define TAIL 13
NUMBER(13, -1.95723493e-10)
NUMBER(14, 9.18604304e-09)
NUMBER(15, -1.93483103e-07)
NUMBER(16, 2.41157204e-06)
NUMBER(17, -1.96228284e-05)
NUMBER(18, 0.000106294916)
NUMBER(19, -0.000343677995)
NUMBER(20, 8.34407037e-05)
NUMBER(21, 0.00688453112)
NUMBER(22, -0.0524174049)
NUMBER(23, -0.459224492)
NUMBER(24, -1.15110409)

// bend in gen/gelu.go.
#define BEND 25
NUMBER(25, 1.18737979e-07)
NUMBER(26, -3.24780808e-06)
NUMBER(27, 4.02120531e-05)
NUMBER(28, -0.00030213772)
NUMBER(29, 0.00156899577)
NUMBER(30, -0.00613460783)
NUMBER(31, 0.019358987)
NUMBER(32, -0.0521811396)
NUMBER(33, 0.124554552)
NUMBER(34, -0.265846342)
NUMBER(35, 0.499985099)
NUMBER(36, -1.59576845)
NUMBER(37, 1.0)

GLOBL numbers<>(SB), RODATA|NOPTR, $608

// A polynomial of V0 by Horner's rule: V2 begins as entry i of numbers<>, at R20, which is the first coefficient, or as
// V0 times that plus the second; HORNER2 takes entries i and i+1. V3 is overwritten.
#define HORNER_BEGIN1(i) \
	FMOVQ (16*(i))(R20), F2

#define HORNER_BEGIN2(i) \
	FMOVQ (16*(i))(R20), F3;    \
	FMOVQ (16*(i)+16)(R20), F2; \
	VFMLA V0.S4, V3.S4, V2.S4

#define HORNER2(i) \
	FMOVQ (16*(i))(R20), F3;    \
	VFMLA V0.S4, V2.S4, V3.S4;  \
	FMOVQ (16*(i)+16)(R20), F2; \
	VFMLA V0.S4, V3.S4, V2.S4

// SPREAD broadcasts the float32 with the given bits to all lanes of d.
#define SPREAD(bits, d) \
	MOVW $(bits), R19; \
	VDUP R19, d.S4

#define MINUS_INFINITY     0xFF800000
#define MINUS_0            0x80000000
#define ONE                0x3F800000
#define TWO                0x40000000
#define BEYOND             0x41200000 // 10, from where on tanh is 1
#define FARTHEST           0x41600000 // 14, from where on Q and φ are rounded to 0
#define HIGHEST            0x42B20000 // 89, whose exponential is infinite
#define LOWEST_POWER       0xC2FA0000 // -125: lowestPower in gen/exp.go
#define LOG2E              0x3FB8AA3B // 1/ln(2) in two parts
#define LOG2E_REST         0x32A57060
#define MINUS_HALF_LOG2E   0xBF38AA3B
#define MINUS_2_LOG2E      0xC038AA3B
#define MINUS_2_LOG2E_REST 0xB3257060

// SPLIT makes V4 = V1·V22, V5 the whole number nearest to that, and V0 the rest.
#define SPLIT \
	VFMUL(22, 1, 4);           \
	VFCVTNS(4, 5);             \
	VSCVTF(5, 0);              \
	VFNEG(0, 0);               \
	VFMLA V22.S4, V1.S4, V0.S4

// HALF_POWERS makes V2 = 2^(V4−1), given V4 as V5, a whole number, and V0, the rest: 0 where V4 is below V24,
// LOWEST_POWER, NaN where V0 and V4 are. Of 2^V4 a part of 2^128 and more would not pass through an exponent's bits.
#define HALF_POWERS \
	HORNER_BEGIN1(HALF_POWER_OF_2); \
	HORNER2(HALF_POWER_OF_2+1);     \
	HORNER2(HALF_POWER_OF_2+3);     \
	HORNER2(HALF_POWER_OF_2+5);     \
	VSHL $23, V5.S4, V5.S4;         \
	VADD V5.S4, V2.S4, V2.S4;       \
	VFCMGT(4, 24, 4);               \
	VBIC(4, 2, 2)

// func maximumNEON(row []float32) float32
TEXT ·maximumNEON(SB), NOSPLIT, $0-28
	MOVD row_base+0(FP), R0
	MOVD row_len+8(FP), R2
	SPREAD(MINUS_INFINITY, V0)
	VMOV V0.B16, V1.B16
	VMOV V0.B16, V2.B16
	VMOV V0.B16, V3.B16
	SUBS $16, R2
	BLT  few

sixteen:
	FLDPQ.P 32(R0), (F4, F5)
	FLDPQ.P 32(R0), (F6, F7)
	VFMAX(4, 0, 0)
	VFMAX(5, 1, 1)
	VFMAX(6, 2, 2)
	VFMAX(7, 3, 3)
	SUBS    $16, R2
	BGE     sixteen

few:
	ADDS $16, R2
	BEQ  top

one:
	VLD1R.P 4(R0), [V4.S4]
	VFMAX(4, 0, 0)
	SUBS    $1, R2
	BNE     one

top:
	VFMAX(2, 0, 0)
	VFMAX(3, 1, 1)
	VFMAX(1, 0, 0)
	VFMAXV(0, 0)
	FMOVS F0, ret+24(FP)
	RET

// EXPONENTIAL makes V2 = exp(V1−V20).
#define EXPONENTIAL \
	VFSUB(20, 1, 1);            \
	VFMIN(21, 1, 1);            \
	SPLIT;                      \
	VFMLA V23.S4, V1.S4, V0.S4; \
	HALF_POWERS;                \
	VFADD(2, 2, 2)

// func expsNEON(row []float32, shift float32) float32
TEXT ·expsNEON(SB), NOSPLIT, $0-36
	MOVD  row_base+0(FP), R0
	MOVD  row_len+8(FP), R2
	MOVD  $numbers<>(SB), R20
	FMOVS shift+24(FP), F20
	VDUP  V20.S[0], V20.S4
	SPREAD(HIGHEST, V21)
	SPREAD(LOG2E, V22)
	SPREAD(LOG2E_REST, V23)
	SPREAD(LOWEST_POWER, V24)
	VEOR  V16.B16, V16.B16, V16.B16
	VEOR  V17.B16, V17.B16, V17.B16
	VEOR  V18.B16, V18.B16, V18.B16
	VEOR  V19.B16, V19.B16, V19.B16
	SUBS  $16, R2
	BLT   fours

sixteen:
	FMOVQ   (R0), F1
	EXPONENTIAL
	VFADD(2, 16, 16)
	FMOVQ.P F2, 16(R0)
	FMOVQ   (R0), F1
	EXPONENTIAL
	VFADD(2, 17, 17)
	FMOVQ.P F2, 16(R0)
	FMOVQ   (R0), F1
	EXPONENTIAL
	VFADD(2, 18, 18)
	FMOVQ.P F2, 16(R0)
	FMOVQ   (R0), F1
	EXPONENTIAL
	VFADD(2, 19, 19)
	FMOVQ.P F2, 16(R0)
	SUBS    $16, R2
	BGE     sixteen

fours:
	ADDS $12, R2
	BLT  few

four:
	FMOVQ   (R0), F1
	EXPONENTIAL
	VFADD(2, 16, 16)
	FMOVQ.P F2, 16(R0)
	SUBS    $4, R2
	BGE     four

few:
	ADDS $4, R2
	BEQ  sum

one:
	FMOVS   (R0), F1
	EXPONENTIAL
	FMOVS   F2, F2    // zeros to the other lanes
	VFADD(2, 16, 16)
	FMOVS.P F2, 4(R0)
	SUBS    $1, R2
	BNE     one

sum:
	SUM_OF_4(16, 17, 18, 19)
	FMOVS F16, ret+32(FP)
	RET

// GELU takes an element, or four: max(x, 0) − |x|·Q(|x|), where V25 is FARTHEST and V26 MINUS_0. Q is 2^V4/2.
#define GELU(MOVE, bytes) \
	MOVE.P bytes(R1), F17;      \
	VFABS(17, 0);               \
	VFMIN(25, 0, 0);            \
	HORNER_BEGIN2(TAIL);        \
	HORNER2(TAIL+2);            \
	HORNER2(TAIL+4);            \
	HORNER2(TAIL+6);            \
	HORNER2(TAIL+8);            \
	HORNER2(TAIL+10);           \
	VFMUL(2, 0, 4);             \
	VFCVTNS(4, 5);              \
	VSCVTF(5, 6);               \
	VFNEG(6, 6);                \
	VFMLA  V2.S4, V0.S4, V6.S4; \
	VMOV   V6.B16, V0.B16;      \
	HALF_POWERS;                \
	VFMAX(26, 17, 7);           \
	VFMIN(25, 17, 6);           \ // not V0: -Inf·0 is NaN, and +Inf less a number is +Inf
	VFABS(6, 6);                \
	VFMLS  V2.S4, V6.S4, V7.S4; \
	MOVE.P F7, bytes(R0)

// func geluNEON(out, x []float32)
TEXT ·geluNEON(SB), NOSPLIT, $0-48
	MOVD out_base+0(FP), R0
	MOVD x_base+24(FP), R1
	MOVD x_len+32(FP), R2
	MOVD $numbers<>(SB), R20
	SPREAD(LOWEST_POWER, V24)
	SPREAD(FARTHEST, V25)
	SPREAD(MINUS_0, V26)
	SUBS $4, R2
	BLT  few

four:
	GELU(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	GELU(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET

// SLOPE makes V2 the slope of x·Φ(x) at V17: t = Q(|x|) − |x|·φ(x) where x < 0, and 1 − t where not. V22 is
// MINUS_HALF_LOG2E, V25 FARTHEST, V27 ONE. V17 − V17 is NaN where x·φ(x) is.
#define SLOPE \
	VFABS(17, 0);                \
	VFMIN(25, 0, 0);             \
	HORNER_BEGIN1(BEND);         \
	HORNER2(BEND+1);             \
	HORNER2(BEND+3);             \
	HORNER2(BEND+5);             \
	HORNER2(BEND+7);             \
	HORNER2(BEND+9);             \
	HORNER2(BEND+11);            \
	VMOV  V2.B16, V7.B16;        \
	VFMUL(0, 0, 1);              \
	SPLIT;                       \
	HALF_POWERS;                 \
	VFSUB(17, 17, 3);            \
	VFMLA V7.S4, V2.S4, V3.S4;   \ // t
	VFSUB(3, 27, 2);             \
	VSSHR31(17, 4);              \
	VBIT  V4.B16, V3.B16, V2.B16

// SLOPE_NUMBERS sets the constants of SLOPE.
#define SLOPE_NUMBERS \
	MOVD $numbers<>(SB), R20;      \
	SPREAD(MINUS_HALF_LOG2E, V22); \
	SPREAD(LOWEST_POWER, V24);     \
	SPREAD(FARTHEST, V25);         \
	SPREAD(ONE, V27)

// GELU_GRADIENT processes an element, or four, of d at R0 and x at R1.
#define GELU_GRADIENT(MOVE, bytes) \
	MOVE.P bytes(R1), F17; \
	MOVE   (R0), F16;      \
	SLOPE;                 \
	VFMUL(2, 16, 16);      \
	MOVE.P F16, bytes(R0)

// func geluGradientNEON(d, x []float32)
TEXT ·geluGradientNEON(SB), NOSPLIT, $0-48
	MOVD d_base+0(FP), R0
	MOVD d_len+8(FP), R2
	MOVD x_base+24(FP), R1
	SLOPE_NUMBERS
	SUBS $4, R2
	BLT  few

four:
	GELU_GRADIENT(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	GELU_GRADIENT(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET

// GELU_BACKWARD processes an element, or four, of dx at R0, x at R1 and dOut at R3.
#define GELU_BACKWARD(MOVE, bytes) \
	MOVE.P bytes(R1), F17;        \
	MOVE.P bytes(R3), F18;        \
	MOVE   (R0), F16;             \
	SLOPE;                        \
	VFMLA  V2.S4, V18.S4, V16.S4; \
	MOVE.P F16, bytes(R0)

// func geluBackwardNEON(dx, x, dOut []float32)
TEXT ·geluBackwardNEON(SB), NOSPLIT, $0-72
	MOVD dx_base+0(FP), R0
	MOVD dx_len+8(FP), R2
	MOVD x_base+24(FP), R1
	MOVD dOut_base+48(FP), R3
	SLOPE_NUMBERS
	SUBS $4, R2
	BLT  few

four:
	GELU_BACKWARD(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	GELU_BACKWARD(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET

// TANH processes an element, or four: with e = exp(−2|x|), (1 − e)/(1 + e), where of e = 2^n·2^r the difference from 1 is
// computed by itself. V22 and V23 are MINUS_2_LOG2E and its rest, V25 BEYOND, V26 TWO, V27 ONE, V28 MINUS_0.
#define TANH(MOVE, bytes) \
	MOVE.P bytes(R1), F17;           \
	VFABS(17, 1);                    \
	VFMIN(25, 1, 1);                 \
	SPLIT;                           \
	VFMLA  V23.S4, V1.S4, V0.S4;     \
	HORNER_BEGIN2(POWER_OF_2);       \
	HORNER2(POWER_OF_2+2);           \
	HORNER2(POWER_OF_2+4);           \
	VFMUL(0, 2, 2);                  \ // 2^r − 1
	VSHL   $23, V5.S4, V5.S4;        \
	VADD   V27.S4, V5.S4, V5.S4;     \ // 2^n: the exponent's bits are added
	VFSUB(27, 5, 3);                 \
	VFMLA  V2.S4, V5.S4, V3.S4;      \ // e − 1 = 2^n·(2^r − 1) + (2^n − 1)
	VFADD(26, 3, 4);                 \
	VFDIV(4, 3, 3);                  \ // −tanh(|x|)
	VFABS(3, 3);                     \
	VBIT   V28.B16, V17.B16, V3.B16; \ // the sign of x
	MOVE.P F3, bytes(R0)

// func tanhNEON(out, x []float32)
TEXT ·tanhNEON(SB), NOSPLIT, $0-48
	MOVD out_base+0(FP), R0
	MOVD x_base+24(FP), R1
	MOVD x_len+32(FP), R2
	MOVD $numbers<>(SB), R20
	SPREAD(MINUS_2_LOG2E, V22)
	SPREAD(MINUS_2_LOG2E_REST, V23)
	SPREAD(BEYOND, V25)
	SPREAD(TWO, V26)
	SPREAD(ONE, V27)
	SPREAD(MINUS_0, V28)
	SUBS $4, R2
	BLT  few

four:
	TANH(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	TANH(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET
