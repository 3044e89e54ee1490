#include "textflag.h"
#include "neon_arm64.h"

// Loops process four elements at a time, or more, and the remaining ones one by one in the lowest lane of the same
// registers, by the same instructions: FMOVS sets the other lanes to zeros. So the bits of an element do not depend on its
// position.

// func addScaledNEON(to, from []float32, by float32)
TEXT ·addScaledNEON(SB), NOSPLIT, $0-52
	MOVD  to_base+0(FP), R0
	MOVD  from_base+24(FP), R1
	MOVD  from_len+32(FP), R2
	FMOVS by+48(FP), F4
	VDUP  V4.S[0], V4.S4
	SUBS  $8, R2
	BLT   few

eight:
	FLDPQ.P 32(R1), (F2, F3)
	FLDPQ   (R0), (F0, F1)
	VFMLA   V4.S4, V2.S4, V0.S4
	VFMLA   V4.S4, V3.S4, V1.S4
	FSTPQ.P (F0, F1), 32(R0)
	SUBS    $8, R2
	BGE     eight

few:
	ADDS $8, R2
	BEQ  done

one:
	FMOVS.P 4(R1), F2
	FMOVS   (R0), F0
	VFMLA   V4.S4, V2.S4, V0.S4
	FMOVS.P F0, 4(R0)
	SUBS    $1, R2
	BNE     one

done:
	RET

// func scaleNEON(x []float32, by float32)
TEXT ·scaleNEON(SB), NOSPLIT, $0-28
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	FMOVS by+24(FP), F4
	VDUP  V4.S[0], V4.S4
	SUBS  $8, R2
	BLT   few

eight:
	FLDPQ   (R0), (F0, F1)
	VFMUL(4, 0, 0)
	VFMUL(4, 1, 1)
	FSTPQ.P (F0, F1), 32(R0)
	SUBS    $8, R2
	BGE     eight

few:
	ADDS $8, R2
	BEQ  done

one:
	FMOVS   (R0), F0
	VFMUL(4, 0, 0)
	FMOVS.P F0, 4(R0)
	SUBS    $1, R2
	BNE     one

done:
	RET

// ADD_FOUR_ROWS adds an element, or four, of the rows at R5 to R8 to those of the sum at R9.
#define ADD_FOUR_ROWS(MOVE, bytes) \
	MOVE.P bytes(R5), F1; \
	MOVE.P bytes(R6), F2; \
	MOVE.P bytes(R7), F3; \
	MOVE.P bytes(R8), F4; \
	MOVE   (R9), F0;      \
	VFADD(1, 0, 0);       \
	VFADD(2, 0, 0);       \
	VFADD(3, 0, 0);       \
	VFADD(4, 0, 0);       \
	MOVE.P F0, bytes(R9)

// ADD_ROW adds an element, or four, of the row at R5.
#define ADD_ROW(MOVE, bytes) \
	MOVE.P bytes(R5), F1; \
	MOVE   (R9), F0;      \
	VFADD(1, 0, 0);       \
	MOVE.P F0, bytes(R9)

// func addRowsNEON(sum, x []float32)
TEXT ·addRowsNEON(SB), NOSPLIT, $0-48
	MOVD sum_base+0(FP), R0
	MOVD sum_len+8(FP), R1
	MOVD x_base+24(FP), R2
	MOVD x_len+32(FP), R3
	CBZ  R1, done
	LSL  $2, R1, R4         // the elements of four rows, and the bytes of one

	// Four rows at a time: the sum is read and written once for them.
fourRows:
	SUBS R4, R3
	BLT  rows
	MOVD R2, R5
	ADD  R4, R5, R6
	ADD  R4, R6, R7
	ADD  R4, R7, R8
	ADD  R4, R8, R2
	MOVD R0, R9
	SUBS $4, R1, R10
	BLT  few

four:
	ADD_FOUR_ROWS(FMOVQ, 16)
	SUBS $4, R10
	BGE  four

few:
	ADDS $4, R10
	BEQ  fourRows

one:
	ADD_FOUR_ROWS(FMOVS, 4)
	SUBS $1, R10
	BNE  one
	B    fourRows

rows:
	ADD R4, R3

row:
	SUBS R1, R3
	BLT  done
	MOVD R2, R5
	ADD  R4, R2
	MOVD R0, R9
	SUBS $4, R1, R10
	BLT  fewOfRow

fourOfRow:
	ADD_ROW(FMOVQ, 16)
	SUBS $4, R10
	BGE  fourOfRow

fewOfRow:
	ADDS $4, R10
	BEQ  row

oneOfRow:
	ADD_ROW(FMOVS, 4)
	SUBS $1, R10
	BNE  oneOfRow
	B    row

done:
	RET

// func dotNEON(x, y []float32) float32
TEXT ·dotNEON(SB), NOSPLIT, $0-52
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	MOVD y_base+24(FP), R1
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	VEOR V4.B16, V4.B16, V4.B16
	VEOR V5.B16, V5.B16, V5.B16
	VEOR V6.B16, V6.B16, V6.B16
	VEOR V7.B16, V7.B16, V7.B16
	SUBS $32, R2
	BLT  fours

	// 32 sums: as many as AVX2 has for Σy·d, so that long rows have no larger rounding error.
thirtyTwo:
	FLDPQ.P 32(R0), (F16, F17)
	FLDPQ.P 32(R1), (F24, F25)
	VFMLA   V24.S4, V16.S4, V0.S4
	VFMLA   V25.S4, V17.S4, V1.S4
	FLDPQ.P 32(R0), (F18, F19)
	FLDPQ.P 32(R1), (F26, F27)
	VFMLA   V26.S4, V18.S4, V2.S4
	VFMLA   V27.S4, V19.S4, V3.S4
	FLDPQ.P 32(R0), (F20, F21)
	FLDPQ.P 32(R1), (F28, F29)
	VFMLA   V28.S4, V20.S4, V4.S4
	VFMLA   V29.S4, V21.S4, V5.S4
	FLDPQ.P 32(R0), (F22, F23)
	FLDPQ.P 32(R1), (F30, F31)
	VFMLA   V30.S4, V22.S4, V6.S4
	VFMLA   V31.S4, V23.S4, V7.S4
	SUBS    $32, R2
	BGE     thirtyTwo

fours:
	ADDS $28, R2
	BLT  few

four:
	FMOVQ.P 16(R0), F16
	FMOVQ.P 16(R1), F24
	VFMLA   V24.S4, V16.S4, V0.S4
	SUBS    $4, R2
	BGE     four

few:
	ADDS $4, R2
	BEQ  sum

one:
	FMOVS.P 4(R0), F16
	FMOVS.P 4(R1), F24
	VFMLA   V24.S4, V16.S4, V0.S4
	SUBS    $1, R2
	BNE     one

sum:
	VFADD(4, 0, 0)
	VFADD(5, 1, 1)
	VFADD(6, 2, 2)
	VFADD(7, 3, 3)
	SUM_OF_4(0, 1, 2, 3)
	FMOVS F0, ret+48(FP)
	RET

// SOFTMAX_GRADIENT processes an element, or four, of d at R0 and y at R1.
#define SOFTMAX_GRADIENT(MOVE, bytes) \
	MOVE   (R0), F0;      \
	MOVE.P bytes(R1), F1; \
	VFSUB(4, 0, 0);       \
	VFMUL(1, 0, 0);       \
	MOVE.P F0, bytes(R0)

// func softmaxGradientNEON(d, y []float32, mean float32)
TEXT ·softmaxGradientNEON(SB), NOSPLIT, $0-52
	MOVD  d_base+0(FP), R0
	MOVD  d_len+8(FP), R2
	MOVD  y_base+24(FP), R1
	FMOVS mean+48(FP), F4
	VDUP  V4.S[0], V4.S4
	SUBS  $4, R2
	BLT   few

four:
	SOFTMAX_GRADIENT(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	SOFTMAX_GRADIENT(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET

// func sumSquaresNEON(x []float32) float64
TEXT ·sumSquaresNEON(SB), NOSPLIT, $0-32
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	SUBS $8, R2
	BLT  few

	// In float64 the square of a float32 neither underflows nor overflows.
eight:
	FLDPQ.P 32(R0), (F4, F6)
	VFCVTL2(4, 5)
	VFCVTL(4, 4)
	VFCVTL2(6, 7)
	VFCVTL(6, 6)
	VFMLA   V4.D2, V4.D2, V0.D2
	VFMLA   V5.D2, V5.D2, V1.D2
	VFMLA   V6.D2, V6.D2, V2.D2
	VFMLA   V7.D2, V7.D2, V3.D2
	SUBS    $8, R2
	BGE     eight

few:
	ADDS $8, R2
	BEQ  sum

one:
	FMOVS.P 4(R0), F4
	VFCVTL(4, 4)
	VFMLA   V4.D2, V4.D2, V0.D2
	SUBS    $1, R2
	BNE     one

sum:
	VFADD_D2(2, 0, 0)
	VFADD_D2(3, 1, 1)
	VFADD_D2(1, 0, 0)
	VFADDP_D2(0, 0)
	FMOVD F0, ret+24(FP)
	RET
