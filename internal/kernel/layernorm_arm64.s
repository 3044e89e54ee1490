#include "textflag.h"
#include "neon_arm64.h"

// func sumNEON(x []float32) float32
TEXT ·sumNEON(SB), NOSPLIT, $0-28
	MOVD x_base+0(FP), R0
	MOVD x_len+8(FP), R2
	VEOR V0.B16, V0.B16, V0.B16
	VEOR V1.B16, V1.B16, V1.B16
	VEOR V2.B16, V2.B16, V2.B16
	VEOR V3.B16, V3.B16, V3.B16
	SUBS $16, R2
	BLT  few

sixteen:
	FLDPQ.P 32(R0), (F4, F5)
	FLDPQ.P 32(R0), (F6, F7)
	VFADD(4, 0, 0)
	VFADD(5, 1, 1)
	VFADD(6, 2, 2)
	VFADD(7, 3, 3)
	SUBS    $16, R2
	BGE     sixteen

few:
	ADDS $16, R2
	BEQ  sum

one:
	FMOVS.P 4(R0), F4
	VFADD(4, 0, 0)
	SUBS    $1, R2
	BNE     one

sum:
	SUM_OF_4(0, 1, 2, 3)
	FMOVS F0, ret+24(FP)
	RET

// func sumsAroundNEON(x []float32, mean float32) (sum, squares float32)
TEXT ·sumsAroundNEON(SB), NOSPLIT, $0-40
	MOVD  x_base+0(FP), R0
	MOVD  x_len+8(FP), R2
	FMOVS mean+24(FP), F20
	VDUP  V20.S[0], V20.S4
	VEOR  V0.B16, V0.B16, V0.B16
	VEOR  V1.B16, V1.B16, V1.B16
	VEOR  V2.B16, V2.B16, V2.B16
	VEOR  V3.B16, V3.B16, V3.B16
	VEOR  V16.B16, V16.B16, V16.B16
	VEOR  V17.B16, V17.B16, V17.B16
	VEOR  V18.B16, V18.B16, V18.B16
	VEOR  V19.B16, V19.B16, V19.B16
	SUBS  $16, R2
	BLT   few

sixteen:
	FLDPQ.P 32(R0), (F4, F5)
	FLDPQ.P 32(R0), (F6, F7)
	VFSUB(20, 4, 4)
	VFSUB(20, 5, 5)
	VFSUB(20, 6, 6)
	VFSUB(20, 7, 7)
	VFADD(4, 0, 0)
	VFADD(5, 1, 1)
	VFADD(6, 2, 2)
	VFADD(7, 3, 3)
	VFMLA   V4.S4, V4.S4, V16.S4
	VFMLA   V5.S4, V5.S4, V17.S4
	VFMLA   V6.S4, V6.S4, V18.S4
	VFMLA   V7.S4, V7.S4, V19.S4
	SUBS    $16, R2
	BGE     sixteen

few:
	ADDS $16, R2
	BEQ  sums

one:
	FMOVS.P 4(R0), F4
	FSUBS   F20, F4, F4          // which leaves zeros in the other lanes
	VFADD(4, 0, 0)
	VFMLA   V4.S4, V4.S4, V16.S4
	SUBS    $1, R2
	BNE     one

sums:
	SUM_OF_4(0, 1, 2, 3)
	SUM_OF_4(16, 17, 18, 19)
	FMOVS F0, sum+32(FP)
	FMOVS F16, squares+36(FP)
	RET

// NORMALIZE processes an element, or four.
#define NORMALIZE(MOVE, bytes) \
	MOVE.P bytes(R1), F0;       \
	MOVE.P bytes(R3), F1;       \
	MOVE.P bytes(R4), F2;       \
	VFSUB(20, 0, 0);            \
	VFMUL(21, 0, 0);            \
	VFMLA  V1.S4, V0.S4, V2.S4; \
	MOVE.P F2, bytes(R0)

// func normalizeNEON(out, x, gain, bias []float32, mean, scale float32)
TEXT ·normalizeNEON(SB), NOSPLIT, $0-104
	MOVD  out_base+0(FP), R0
	MOVD  x_base+24(FP), R1
	MOVD  x_len+32(FP), R2
	MOVD  gain_base+48(FP), R3
	MOVD  bias_base+72(FP), R4
	FMOVS mean+96(FP), F20
	VDUP  V20.S[0], V20.S4
	FMOVS scale+100(FP), F21
	VDUP  V21.S[0], V21.S4
	SUBS  $4, R2
	BLT   few

four:
	NORMALIZE(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	NORMALIZE(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET

// GRADIENT_SUMS takes an element, or four, whose parts of the two sums it leaves in V2 and V0.
#define GRADIENT_SUMS(MOVE, bytes) \
	MOVE.P bytes(R3), F0;       \ // x
	MOVE.P bytes(R5), F1;       \ // dOut
	MOVE.P bytes(R4), F2;       \ // gain
	MOVE   (R0), F3;            \
	MOVE   (R1), F4;            \
	VFSUB(20, 0, 0);            \
	VFMUL(21, 0, 0);            \
	VFMLA  V0.S4, V1.S4, V3.S4; \
	VFADD(1, 4, 4);             \
	VFMUL(1, 2, 2);             \
	MOVE.P F3, bytes(R0);       \
	MOVE.P F4, bytes(R1)

// func layerNormSumsNEON(dGain, dBias, x, gain, dOut []float32, mean, scale float32) (sum, dot float32)
TEXT ·layerNormSumsNEON(SB), NOSPLIT, $0-136
	MOVD  dGain_base+0(FP), R0
	MOVD  dBias_base+24(FP), R1
	MOVD  x_base+48(FP), R3
	MOVD  x_len+56(FP), R2
	MOVD  gain_base+72(FP), R4
	MOVD  dOut_base+96(FP), R5
	FMOVS mean+120(FP), F20
	VDUP  V20.S[0], V20.S4
	FMOVS scale+124(FP), F21
	VDUP  V21.S[0], V21.S4
	VEOR  V16.B16, V16.B16, V16.B16
	VEOR  V17.B16, V17.B16, V17.B16
	VEOR  V18.B16, V18.B16, V18.B16
	VEOR  V19.B16, V19.B16, V19.B16
	VEOR  V24.B16, V24.B16, V24.B16
	VEOR  V25.B16, V25.B16, V25.B16
	VEOR  V26.B16, V26.B16, V26.B16
	VEOR  V27.B16, V27.B16, V27.B16
	SUBS  $16, R2
	BLT   few

sixteen:
	GRADIENT_SUMS(FMOVQ, 16)
	VFADD(2, 16, 16)
	VFMLA V0.S4, V2.S4, V24.S4
	GRADIENT_SUMS(FMOVQ, 16)
	VFADD(2, 17, 17)
	VFMLA V0.S4, V2.S4, V25.S4
	GRADIENT_SUMS(FMOVQ, 16)
	VFADD(2, 18, 18)
	VFMLA V0.S4, V2.S4, V26.S4
	GRADIENT_SUMS(FMOVQ, 16)
	VFADD(2, 19, 19)
	VFMLA V0.S4, V2.S4, V27.S4
	SUBS  $16, R2
	BGE   sixteen

few:
	ADDS $16, R2
	BEQ  sums

one:
	GRADIENT_SUMS(FMOVS, 4)
	FMOVS F2, F2               // zeros to the other lanes, which hold the mean
	VFADD(2, 16, 16)
	FMOVS F0, F0
	VFMLA V0.S4, V2.S4, V24.S4
	SUBS  $1, R2
	BNE   one

sums:
	SUM_OF_4(16, 17, 18, 19)
	SUM_OF_4(24, 25, 26, 27)
	FMOVS F16, sum+128(FP)
	FMOVS F24, dot+132(FP)
	RET

// NORM_GRADIENT processes an element, or four.
#define NORM_GRADIENT(MOVE, bytes) \
	MOVE.P bytes(R1), F0;        \ // x
	MOVE.P bytes(R3), F1;        \ // gain
	MOVE.P bytes(R4), F2;        \ // dOut
	MOVE   (R0), F3;             \
	VFSUB(20, 0, 0);             \
	VFMUL(21, 0, 0);             \
	VFMUL(2, 1, 1);              \
	VFSUB(22, 1, 1);             \
	VFMLS  V23.S4, V0.S4, V1.S4; \
	VFMLA  V21.S4, V1.S4, V3.S4; \
	MOVE.P F3, bytes(R0)

// func layerNormGradientNEON(dx, x, gain, dOut []float32, mean, scale, meanG, meanGN float32)
TEXT ·layerNormGradientNEON(SB), NOSPLIT, $0-112
	MOVD  dx_base+0(FP), R0
	MOVD  x_base+24(FP), R1
	MOVD  x_len+32(FP), R2
	MOVD  gain_base+48(FP), R3
	MOVD  dOut_base+72(FP), R4
	FMOVS mean+96(FP), F20
	VDUP  V20.S[0], V20.S4
	FMOVS scale+100(FP), F21
	VDUP  V21.S[0], V21.S4
	FMOVS meanG+104(FP), F22
	VDUP  V22.S[0], V22.S4
	FMOVS meanGN+108(FP), F23
	VDUP  V23.S[0], V23.S4
	SUBS  $4, R2
	BLT   few

four:
	NORM_GRADIENT(FMOVQ, 16)
	SUBS $4, R2
	BGE  four

few:
	ADDS $4, R2
	BEQ  done

one:
	NORM_GRADIENT(FMOVS, 4)
	SUBS $1, R2
	BNE  one

done:
	RET
