#include "textflag.h"
#include "neon_arm64.h"
#include "tile_arm64.h"

// The tiles of a product of integers are those of float32: a lane of a, four bytes or two words, is multiplied by each lane
// of a row of b.

// INTS_FROM_r adds the rows at R8, with row stride R9 in bytes, to the sums of the first r rows.
#define INTS_FROM(x) VLD1 (R8), [V24.S4, V25.S4, V26.S4, V27.S4]; VADD_S4(24, x, x); VADD_S4(25, (x)+1, (x)+1); VADD_S4(26, (x)+2, (x)+2); VADD_S4(27, (x)+3, (x)+3)
#define INTS_FROM_1 INTS_FROM(0)
#define INTS_FROM_2 INTS_FROM_1; ADD R9, R8; INTS_FROM(4)
#define INTS_FROM_3 INTS_FROM_2; ADD R9, R8; INTS_FROM(8)
#define INTS_FROM_4 INTS_FROM_3; ADD R9, R8; INTS_FROM(12)
#define INTS_FROM_5 INTS_FROM_4; ADD R9, R8; INTS_FROM(16)
#define INTS_FROM_6 INTS_FROM_5; ADD R9, R8; INTS_FROM(20)

// BYTES adds the products of a row of b and of lane 0 of V(x) to the sums of row r.
#define BYTES(r, x) \
	VSDOT(x, 24, 4*(r));   \
	VSDOT(x, 25, 4*(r)+1); \
	VSDOT(x, 26, 4*(r)+2); \
	VSDOT(x, 27, 4*(r)+3)

// BYTES_STEP_r reads the lane of each of the first r rows of a, from R8 to R13, at offset R6, and adds its products.
#define BYTES_STEP_1 FMOVS (R8)(R6), F28; BYTES(0, 28)
#define BYTES_STEP_2 BYTES_STEP_1; FMOVS (R9)(R6), F29; BYTES(1, 29)
#define BYTES_STEP_3 BYTES_STEP_2; FMOVS (R10)(R6), F30; BYTES(2, 30)
#define BYTES_STEP_4 BYTES_STEP_3; FMOVS (R11)(R6), F31; BYTES(3, 31)
#define BYTES_STEP_5 BYTES_STEP_4; FMOVS (R12)(R6), F28; BYTES(4, 28)
#define BYTES_STEP_6 BYTES_STEP_5; FMOVS (R13)(R6), F29; BYTES(5, 29)

// func byteTile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·byteTile1NEON(SB), NOSPLIT, $0-80
	TILE(1, CLEAR_1, BYTES_STEP_1, INTS_FROM_1, STORE_1)

// func byteTile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·byteTile2NEON(SB), NOSPLIT, $0-80
	TILE(2, CLEAR_2, BYTES_STEP_2, INTS_FROM_2, STORE_2)

// func byteTile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·byteTile3NEON(SB), NOSPLIT, $0-80
	TILE(3, CLEAR_3, BYTES_STEP_3, INTS_FROM_3, STORE_3)

// func byteTile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·byteTile4NEON(SB), NOSPLIT, $0-80
	TILE(4, CLEAR_4, BYTES_STEP_4, INTS_FROM_4, STORE_4)

// func byteTile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·byteTile5NEON(SB), NOSPLIT, $0-80
	TILE(5, CLEAR_5, BYTES_STEP_5, INTS_FROM_5, STORE_5)

// func byteTile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·byteTile6NEON(SB), NOSPLIT, $0-80
	TILE(6, CLEAR_6, BYTES_STEP_6, INTS_FROM_6, STORE_6)

// SEPARATE puts the first words of a row of b in V24 and V26, and the second ones in V25 and V27.
#define SEPARATE \
	VUZP1 V25.H8, V24.H8, V31.H8;    \
	VUZP2 V25.H8, V24.H8, V25.H8;    \
	VMOV  V31.B16, V24.B16;          \
	VUZP1 V27.H8, V26.H8, V31.H8;    \
	VUZP2 V27.H8, V26.H8, V27.H8;    \
	VMOV  V31.B16, V26.B16

// WORDS reads the lane of row r of a, at R(row) + R6, and adds its products.
#define WORDS(r, row) \
	FMOVS (row)(R6), F28;         \
	VDUP  V28.H[0], V29.H8;       \
	VDUP  V28.H[1], V30.H8;       \
	VSMLAL_H4(29, 24, 4*(r));     \
	VSMLAL2_H8(29, 24, 4*(r)+1);  \
	VSMLAL_H4(29, 26, 4*(r)+2);   \
	VSMLAL2_H8(29, 26, 4*(r)+3);  \
	VSMLAL_H4(30, 25, 4*(r));     \
	VSMLAL2_H8(30, 25, 4*(r)+1);  \
	VSMLAL_H4(30, 27, 4*(r)+2);   \
	VSMLAL2_H8(30, 27, 4*(r)+3)

// WORDS_STEP_r adds the products of the first r rows of a.
#define WORDS_STEP_1 SEPARATE; WORDS(0, R8)
#define WORDS_STEP_2 WORDS_STEP_1; WORDS(1, R9)
#define WORDS_STEP_3 WORDS_STEP_2; WORDS(2, R10)
#define WORDS_STEP_4 WORDS_STEP_3; WORDS(3, R11)
#define WORDS_STEP_5 WORDS_STEP_4; WORDS(4, R12)
#define WORDS_STEP_6 WORDS_STEP_5; WORDS(5, R13)

// func wordTile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·wordTile1NEON(SB), NOSPLIT, $0-80
	TILE(1, CLEAR_1, WORDS_STEP_1, INTS_FROM_1, STORE_1)

// func wordTile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·wordTile2NEON(SB), NOSPLIT, $0-80
	TILE(2, CLEAR_2, WORDS_STEP_2, INTS_FROM_2, STORE_2)

// func wordTile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·wordTile3NEON(SB), NOSPLIT, $0-80
	TILE(3, CLEAR_3, WORDS_STEP_3, INTS_FROM_3, STORE_3)

// func wordTile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·wordTile4NEON(SB), NOSPLIT, $0-80
	TILE(4, CLEAR_4, WORDS_STEP_4, INTS_FROM_4, STORE_4)

// func wordTile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·wordTile5NEON(SB), NOSPLIT, $0-80
	TILE(5, CLEAR_5, WORDS_STEP_5, INTS_FROM_5, STORE_5)

// func wordTile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·wordTile6NEON(SB), NOSPLIT, $0-80
	TILE(6, CLEAR_6, WORDS_STEP_6, INTS_FROM_6, STORE_6)

// ROUNDED rounds 4 values at R1 times V16 to integers in V(x), and adds V17.
#define ROUNDED(x, f) \
	FMOVQ.P 16(R1), f; \
	VFMUL(16, x, x);   \
	VFCVTNS(x, x);     \
	VADD_S4(17, x, x)

// func quantizeBytes16NEON(out *float32, x []float32, inverse float32, zero int32)
TEXT ·quantizeBytes16NEON(SB), NOSPLIT, $0-40
	MOVD  out+0(FP), R0
	MOVD  x_base+8(FP), R1
	MOVD  x_len+16(FP), R2
	MOVWU inverse+32(FP), R3
	MOVW  zero+36(FP), R4
	VDUP  R3, V16.S4
	VDUP  R4, V17.S4
	VMOVI $128, V18.B16
	CBZ   R2, done

sixteen:
	ROUNDED(0, F0)
	ROUNDED(1, F1)
	ROUNDED(2, F2)
	ROUNDED(3, F3)
	VSQXTUN_S4(0, 4)
	VSQXTUN2_S4(1, 4)
	VSQXTUN_S4(2, 5)
	VSQXTUN2_S4(3, 5)
	VUQXTN_H8(4, 6)
	VUQXTN2_H8(5, 6)
	VEOR    V18.B16, V6.B16, V6.B16
	FMOVQ.P F6, 16(R0)
	SUBS    $16, R2
	BNE     sixteen

done:
	RET

// func quantizeWords8NEON(out *float32, x []float32, inverse float32, zero int32)
TEXT ·quantizeWords8NEON(SB), NOSPLIT, $0-40
	MOVD  out+0(FP), R0
	MOVD  x_base+8(FP), R1
	MOVD  x_len+16(FP), R2
	MOVWU inverse+32(FP), R3
	MOVW  zero+36(FP), R4
	MOVD  $255, R5
	VDUP  R3, V16.S4
	VDUP  R4, V17.S4
	VDUP  R5, V18.H8
	CBZ   R2, done

eight:
	ROUNDED(0, F0)
	ROUNDED(1, F1)
	VSQXTUN_S4(0, 4)
	VSQXTUN2_S4(1, 4)
	VUMIN_H8(18, 4, 4)
	FMOVQ.P F4, 16(R0)
	SUBS    $8, R2
	BNE     eight

done:
	RET

// func dequantize4NEON(c []float32, sums []int32, scales, bias []float32, zero int32, scale float32)
TEXT ·dequantize4NEON(SB), NOSPLIT, $0-104
	MOVD  c_base+0(FP), R0
	MOVD  c_len+8(FP), R1
	MOVD  sums_base+24(FP), R2
	MOVD  scales_base+48(FP), R3
	MOVD  bias_base+72(FP), R4
	MOVW  zero+96(FP), R5
	MOVWU scale+100(FP), R6
	VDUP  R5, V16.S4
	VDUP  R6, V17.S4
	CBZ   R1, done

four:
	FMOVQ   (R0), F0
	FMOVQ.P 16(R2), F1
	FMOVQ.P 16(R3), F2
	FMOVQ.P 16(R4), F3
	VMLS_S4(1, 16, 0)
	VSCVTF(0, 0)
	VFMUL(2, 17, 2)
	VFMUL(2, 0, 0)
	VFADD(3, 0, 0)
	FMOVQ.P F0, 16(R0)
	SUBS    $4, R1
	BNE     four

done:
	RET

// func extremes4NEON(row []float32) (low, high float32)
TEXT ·extremes4NEON(SB), NOSPLIT, $0-32
	MOVD row_base+0(FP), R0
	MOVD row_len+8(FP), R1
	VEOR V0.B16, V0.B16, V0.B16 // the least
	VEOR V1.B16, V1.B16, V1.B16 // the largest
	VEOR V2.B16, V2.B16, V2.B16 // the sum of v − v: NaN where one is not finite
	CBZ  R1, done

four:
	FMOVQ.P 16(R0), F3
	VFMIN(3, 0, 0)
	VFMAX(3, 1, 1)
	VFSUB(3, 3, 3)
	VFADD(3, 2, 2)
	SUBS    $4, R1
	BNE     four

done:
	VFADD(2, 0, 0)
	VFADD(2, 1, 1)
	VFMINV(0, 0)
	VFMAXV(1, 1)
	FMOVS F0, low+24(FP)
	FMOVS F1, high+28(FP)
	RET

// func byteMultiplyAddsNEON(times int)
TEXT ·byteMultiplyAddsNEON(SB), NOSPLIT, $0-8
	MOVD times+0(FP), R0
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16

round:
	VSDOT(28, 29, 0)
	VSDOT(28, 29, 1)
	VSDOT(28, 29, 2)
	VSDOT(28, 29, 3)
	VSDOT(28, 29, 4)
	VSDOT(28, 29, 5)
	VSDOT(28, 29, 6)
	VSDOT(28, 29, 7)
	VSDOT(28, 29, 8)
	VSDOT(28, 29, 9)
	VSDOT(28, 29, 10)
	VSDOT(28, 29, 11)
	VSDOT(28, 29, 12)
	VSDOT(28, 29, 13)
	VSDOT(28, 29, 14)
	VSDOT(28, 29, 15)
	VSDOT(28, 29, 16)
	VSDOT(28, 29, 17)
	VSDOT(28, 29, 18)
	VSDOT(28, 29, 19)
	VSDOT(28, 29, 20)
	VSDOT(28, 29, 21)
	VSDOT(28, 29, 22)
	VSDOT(28, 29, 23)
	VSDOT(28, 29, 24)
	VSDOT(28, 29, 25)
	VSDOT(28, 29, 26)
	VSDOT(28, 29, 27)
	SUB  $1, R0
	CBNZ R0, round
	RET

// func wordMultiplyAddsNEON(times int)
TEXT ·wordMultiplyAddsNEON(SB), NOSPLIT, $0-8
	MOVD times+0(FP), R0
	VEOR V28.B16, V28.B16, V28.B16
	VEOR V29.B16, V29.B16, V29.B16

round:
	VSMLAL_H4(28, 29, 0)
	VSMLAL_H4(28, 29, 1)
	VSMLAL_H4(28, 29, 2)
	VSMLAL_H4(28, 29, 3)
	VSMLAL_H4(28, 29, 4)
	VSMLAL_H4(28, 29, 5)
	VSMLAL_H4(28, 29, 6)
	VSMLAL_H4(28, 29, 7)
	VSMLAL_H4(28, 29, 8)
	VSMLAL_H4(28, 29, 9)
	VSMLAL_H4(28, 29, 10)
	VSMLAL_H4(28, 29, 11)
	VSMLAL_H4(28, 29, 12)
	VSMLAL_H4(28, 29, 13)
	VSMLAL_H4(28, 29, 14)
	VSMLAL_H4(28, 29, 15)
	VSMLAL_H4(28, 29, 16)
	VSMLAL_H4(28, 29, 17)
	VSMLAL_H4(28, 29, 18)
	VSMLAL_H4(28, 29, 19)
	VSMLAL_H4(28, 29, 20)
	VSMLAL_H4(28, 29, 21)
	VSMLAL_H4(28, 29, 22)
	VSMLAL_H4(28, 29, 23)
	VSMLAL_H4(28, 29, 24)
	VSMLAL_H4(28, 29, 25)
	VSMLAL_H4(28, 29, 26)
	VSMLAL_H4(28, 29, 27)
	VSMLAL2_H8(28, 29, 0)
	VSMLAL2_H8(28, 29, 1)
	VSMLAL2_H8(28, 29, 2)
	VSMLAL2_H8(28, 29, 3)
	VSMLAL2_H8(28, 29, 4)
	VSMLAL2_H8(28, 29, 5)
	VSMLAL2_H8(28, 29, 6)
	VSMLAL2_H8(28, 29, 7)
	VSMLAL2_H8(28, 29, 8)
	VSMLAL2_H8(28, 29, 9)
	VSMLAL2_H8(28, 29, 10)
	VSMLAL2_H8(28, 29, 11)
	VSMLAL2_H8(28, 29, 12)
	VSMLAL2_H8(28, 29, 13)
	VSMLAL2_H8(28, 29, 14)
	VSMLAL2_H8(28, 29, 15)
	VSMLAL2_H8(28, 29, 16)
	VSMLAL2_H8(28, 29, 17)
	VSMLAL2_H8(28, 29, 18)
	VSMLAL2_H8(28, 29, 19)
	VSMLAL2_H8(28, 29, 20)
	VSMLAL2_H8(28, 29, 21)
	VSMLAL2_H8(28, 29, 22)
	VSMLAL2_H8(28, 29, 23)
	VSMLAL2_H8(28, 29, 24)
	VSMLAL2_H8(28, 29, 25)
	VSMLAL2_H8(28, 29, 26)
	VSMLAL2_H8(28, 29, 27)
	SUB  $1, R0
	CBNZ R0, round
	RET
