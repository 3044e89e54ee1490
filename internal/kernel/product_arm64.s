#include "textflag.h"
#include "neon_arm64.h"
#include "tile_arm64.h"

// The tiles of a matrix product (Goto & van de Geijn 2008), up to 6 rows of 16 columns: V0 to V23 hold the sums, those of
// row r from V(4r) on, V24 to V27 a row of b, V28 to V31 what is read of a. A column of a and a row of b take 35
// instructions for 96 multiply-adds: 24 fused multiply-adds of four lanes, 8 loads (6 of a, 2 of b) and 3 of the loop. The
// 24 are independent of each other, and 16 would be enough for four a cycle that take four cycles each.

// FROM_r adds the rows at R8, with row stride R9 in bytes, to the sums of the first r rows.
#define FROM(x) VLD1 (R8), [V24.S4, V25.S4, V26.S4, V27.S4]; VFADD(24, x, x); VFADD(25, (x)+1, (x)+1); VFADD(26, (x)+2, (x)+2); VFADD(27, (x)+3, (x)+3)
#define FROM_1 FROM(0)
#define FROM_2 FROM_1; ADD R9, R8; FROM(4)
#define FROM_3 FROM_2; ADD R9, R8; FROM(8)
#define FROM_4 FROM_3; ADD R9, R8; FROM(12)
#define FROM_5 FROM_4; ADD R9, R8; FROM(16)
#define FROM_6 FROM_5; ADD R9, R8; FROM(20)
// ROW adds a row of b, times lane 0 of V(x), to the sums of row r.
#define ROW(r, x) \
	VFMLA_LANE(0, x, 24, 4*(r));   \
	VFMLA_LANE(0, x, 25, 4*(r)+1); \
	VFMLA_LANE(0, x, 26, 4*(r)+2); \
	VFMLA_LANE(0, x, 27, 4*(r)+3)

// STEP_r reads the element of each of the first r rows of a, from R8 to R13, at offset R6, and adds its products.
#define STEP_1 FMOVS (R8)(R6), F28; ROW(0, 28)
#define STEP_2 STEP_1; FMOVS (R9)(R6), F29; ROW(1, 29)
#define STEP_3 STEP_2; FMOVS (R10)(R6), F30; ROW(2, 30)
#define STEP_4 STEP_3; FMOVS (R11)(R6), F31; ROW(3, 31)
#define STEP_5 STEP_4; FMOVS (R12)(R6), F28; ROW(4, 28)
#define STEP_6 STEP_5; FMOVS (R13)(R6), F29; ROW(5, 29)

// func tile1NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·tile1NEON(SB), NOSPLIT, $0-80
	TILE(1, CLEAR_1, STEP_1, FROM_1, STORE_1)

// func tile2NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·tile2NEON(SB), NOSPLIT, $0-80
	TILE(2, CLEAR_2, STEP_2, FROM_2, STORE_2)

// func tile3NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·tile3NEON(SB), NOSPLIT, $0-80
	TILE(3, CLEAR_3, STEP_3, FROM_3, STORE_3)

// func tile4NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·tile4NEON(SB), NOSPLIT, $0-80
	TILE(4, CLEAR_4, STEP_4, FROM_4, STORE_4)

// func tile5NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·tile5NEON(SB), NOSPLIT, $0-80
	TILE(5, CLEAR_5, STEP_5, FROM_5, STORE_5)

// func tile6NEON(c, from *float32, cRow, fromRow int, a *float32, aRow, aCol int, b *float32, k int, next *float32)
TEXT ·tile6NEON(SB), NOSPLIT, $0-80
	TILE(6, CLEAR_6, STEP_6, FROM_6, STORE_6)

// func copyWideNEON(out, x *float32, xRow, rows int)
TEXT ·copyWideNEON(SB), NOSPLIT, $0-32
	MOVD out+0(FP), R0
	MOVD x+8(FP), R1
	MOVD xRow+16(FP), R2
	MOVD rows+24(FP), R3

loop:
	FLDPQ   (R1), (F0, F1)
	FLDPQ   32(R1), (F2, F3)
	FSTPQ.P (F0, F1), 32(R0)
	FSTPQ.P (F2, F3), 32(R0)
	ADD     R2<<2, R1
	SUB     $1, R3
	CBNZ    R3, loop
	RET

// func copyNarrowNEON(out, x *float32, xRow, rows, cols int)
TEXT ·copyNarrowNEON(SB), NOSPLIT, $0-40
	MOVD out+0(FP), R0
	MOVD x+8(FP), R1
	MOVD xRow+16(FP), R2
	MOVD rows+24(FP), R3
	MOVD cols+32(FP), R4

loop:
	FLDPQ (R1), (F0, F1)
	FSTPQ (F0, F1), (R0)
	ADD   R2<<2, R1
	ADD   R4<<2, R0
	SUB   $1, R3
	CBNZ  R3, loop
	RET

// QUARTER reads four rows of four values, with row stride R3 in bytes, and writes them as columns, with row stride R2.
#define QUARTER(x, out) \
	MOVD  x, R7;               \
	MOVD  out, R8;             \
	FMOVQ (R7), F0;            \
	ADD   R3, R7;              \
	FMOVQ (R7), F1;            \
	ADD   R3, R7;              \
	FMOVQ (R7), F2;            \
	ADD   R3, R7;              \
	FMOVQ (R7), F3;            \
	VTRN1 V1.S4, V0.S4, V4.S4; \
	VTRN2 V1.S4, V0.S4, V5.S4; \
	VTRN1 V3.S4, V2.S4, V6.S4; \
	VTRN2 V3.S4, V2.S4, V7.S4; \
	VZIP1 V6.D2, V4.D2, V0.D2; \
	VZIP1 V7.D2, V5.D2, V1.D2; \
	VZIP2 V6.D2, V4.D2, V2.D2; \
	VZIP2 V7.D2, V5.D2, V3.D2; \
	FMOVQ F0, (R8);            \
	ADD   R2, R8;              \
	FMOVQ F1, (R8);            \
	ADD   R2, R8;              \
	FMOVQ F2, (R8);            \
	ADD   R2, R8;              \
	FMOVQ F3, (R8)

// func transpose8NEON(out, x *float32, outRow, xRow, times int)
TEXT ·transpose8NEON(SB), NOSPLIT, $0-40
	MOVD out+0(FP), R0
	MOVD x+8(FP), R1
	MOVD outRow+16(FP), R2
	MOVD xRow+24(FP), R3
	MOVD times+32(FP), R4
	LSL  $2, R2
	LSL  $2, R3
	ADD  R3<<2, R1, R5     // rows 4 to 7
	ADD  $16, R0, R6       // columns 4 to 7
	LSL  $1, R4            // four columns of x at a time

loop:
	QUARTER(R1, R0)
	QUARTER(R5, R6)
	ADD  $16, R1
	ADD  $16, R5
	ADD  R2<<2, R0
	ADD  R2<<2, R6
	SUB  $1, R4
	CBNZ R4, loop
	RET
