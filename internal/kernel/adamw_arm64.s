#include "textflag.h"
#include "neon_arm64.h"

// ADAMW updates a weight, or four. V24 to V31 are the numbers of adamWStep.
#define ADAMW(MOVE, bytes) \
	MOVE.P bytes(R3), F0;        \ // gradient
	MOVE   (R1), F1;             \ // mean
	MOVE   (R2), F2;             \ // mean square
	MOVE   (R0), F3;             \ // weight
	VFMUL(24, 0, 0);             \ // · scale
	VFSUB(1, 0, 4);              \
	VFMLA  V4.S4, V25.S4, V1.S4; \ // m + rise1·(g − m)
	VFMUL(27, 0, 4);             \
	VFMUL(26, 2, 2);             \
	VFMLA  V4.S4, V0.S4, V2.S4;  \ // beta2·v + rise2·g²
	MOVE.P F1, bytes(R1);        \
	MOVE.P F2, bytes(R2);        \
	VFSQRT(2, 2);                \
	VMOV   V31.B16, V5.B16;      \
	VFMLA  V2.S4, V30.S4, V5.S4; \ // √v·root + epsilon
	VFMUL(29, 1, 1);             \ // size·m
	VFDIV(5, 1, 1);              \
	VFMUL(28, 3, 3);             \ // keep·w
	VFSUB(1, 3, 3);              \
	MOVE.P F3, bytes(R0)

// func adamWNEON(w, m, v, g []float32, c *[8]float32)
TEXT ·adamWNEON(SB), NOSPLIT, $0-104
	MOVD    w_base+0(FP), R0
	MOVD    w_len+8(FP), R4
	MOVD    m_base+24(FP), R1
	MOVD    v_base+48(FP), R2
	MOVD    g_base+72(FP), R3
	MOVD    c+96(FP), R5
	VLD1R.P 4(R5), [V24.S4]
	VLD1R.P 4(R5), [V25.S4]
	VLD1R.P 4(R5), [V26.S4]
	VLD1R.P 4(R5), [V27.S4]
	VLD1R.P 4(R5), [V28.S4]
	VLD1R.P 4(R5), [V29.S4]
	VLD1R.P 4(R5), [V30.S4]
	VLD1R.P 4(R5), [V31.S4]
	SUBS    $4, R4
	BLT     few

four:
	ADAMW(FMOVQ, 16)
	SUBS $4, R4
	BGE  four

few:
	ADDS $4, R4
	BEQ  done

one:
	ADAMW(FMOVS, 4)
	SUBS $1, R4
	BNE  one

done:
	RET
