// Parts of the tiles of matrix products: V0 to V23 hold the sums of up to 6 rows of 16 columns, those of row r from V(4r) on,
// V24 to V27 a row of b.

// CLEAR_r sets the sums of the first r rows to zeros.
#define CLEAR_1 VEOR V0.B16, V0.B16, V0.B16; VEOR V1.B16, V1.B16, V1.B16; VEOR V2.B16, V2.B16, V2.B16; VEOR V3.B16, V3.B16, V3.B16
#define CLEAR_2 CLEAR_1; VEOR V4.B16, V4.B16, V4.B16; VEOR V5.B16, V5.B16, V5.B16; VEOR V6.B16, V6.B16, V6.B16; VEOR V7.B16, V7.B16, V7.B16
#define CLEAR_3 CLEAR_2; VEOR V8.B16, V8.B16, V8.B16; VEOR V9.B16, V9.B16, V9.B16; VEOR V10.B16, V10.B16, V10.B16; VEOR V11.B16, V11.B16, V11.B16
#define CLEAR_4 CLEAR_3; VEOR V12.B16, V12.B16, V12.B16; VEOR V13.B16, V13.B16, V13.B16; VEOR V14.B16, V14.B16, V14.B16; VEOR V15.B16, V15.B16, V15.B16
#define CLEAR_5 CLEAR_4; VEOR V16.B16, V16.B16, V16.B16; VEOR V17.B16, V17.B16, V17.B16; VEOR V18.B16, V18.B16, V18.B16; VEOR V19.B16, V19.B16, V19.B16
#define CLEAR_6 CLEAR_5; VEOR V20.B16, V20.B16, V20.B16; VEOR V21.B16, V21.B16, V21.B16; VEOR V22.B16, V22.B16, V22.B16; VEOR V23.B16, V23.B16, V23.B16

// STORE_r writes the sums of the first r rows to R0, with row stride R1 in bytes.
#define STORE_1 VST1 [V0.S4, V1.S4, V2.S4, V3.S4], (R0)
#define STORE_2 STORE_1; ADD R1, R0; VST1 [V4.S4, V5.S4, V6.S4, V7.S4], (R0)
#define STORE_3 STORE_2; ADD R1, R0; VST1 [V8.S4, V9.S4, V10.S4, V11.S4], (R0)
#define STORE_4 STORE_3; ADD R1, R0; VST1 [V12.S4, V13.S4, V14.S4, V15.S4], (R0)
#define STORE_5 STORE_4; ADD R1, R0; VST1 [V16.S4, V17.S4, V18.S4, V19.S4], (R0)
#define STORE_6 STORE_5; ADD R1, R0; VST1 [V20.S4, V21.S4, V22.S4, V23.S4], (R0)

// TILE is the function of a tile of the given rows. It prefetches its part of c and, while it multiplies, a cache line of the
// next panel for every second row of b. As on amd64, the sums are added to from at the end, before anything is written.
#define TILE(rows, clear, step, addFrom, store) \
	MOVD    c+0(FP), R0;        \
	MOVD    cRow+16(FP), R1;    \
	MOVD    $rows, R2;          \
	row:                        \
	PRFM    (R0), PLDL1KEEP;    \
	ADD     R1<<2, R0;          \
	SUB     $1, R2;             \
	CBNZ    R2, row;            \
	clear;                      \
	MOVD    a+32(FP), R8;       \
	MOVD    aRow+40(FP), R5;    \
	ADD     R5<<2, R8, R9;      \
	ADD     R5<<2, R9, R10;     \
	ADD     R5<<2, R10, R11;    \
	ADD     R5<<2, R11, R12;    \
	ADD     R5<<2, R12, R13;    \
	MOVD    $0, R6;             \
	MOVD    aCol+48(FP), R7;    \
	MOVD    b+56(FP), R2;       \
	MOVD    k+64(FP), R3;       \
	MOVD    next+72(FP), R4;    \
	SUBS    $2, R3;             \
	BLT     rest;               \
	loop:                       \
	PRFM    (R4), PLDL2KEEP;    \
	ADD     $64, R4;            \
	FLDPQ.P 32(R2), (F24, F25); \
	FLDPQ.P 32(R2), (F26, F27); \
	step;                       \
	ADD     R7<<2, R6;          \
	FLDPQ.P 32(R2), (F24, F25); \
	FLDPQ.P 32(R2), (F26, F27); \
	step;                       \
	ADD     R7<<2, R6;          \
	SUBS    $2, R3;             \
	BGE     loop;               \
	rest:                       \
	TBZ     $0, R3, done;       \ // R3 is -2, or -1 where a row of b remains
	FLDPQ.P 32(R2), (F24, F25); \
	FLDPQ.P 32(R2), (F26, F27); \
	step;                       \
	done:                       \
	MOVD    c+0(FP), R0;        \
	MOVD    cRow+16(FP), R1;    \
	LSL     $2, R1;             \
	MOVD    from+8(FP), R8;     \
	MOVD    fromRow+24(FP), R9; \
	LSL     $2, R9;             \
	addFrom;                    \
	store;                      \
	RET
