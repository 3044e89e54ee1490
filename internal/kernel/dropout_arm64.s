#include "textflag.h"
#include "neon_arm64.h"

// Sixteen elements at a time use the words of four of the generator's blocks, whose words 0 are the lanes of V0, words 1
// those of V1, 2 of V2, 3 of V3. Fewer elements, or elements that do not start a block, are copied through the stack, so
// that an element's result does not depend on its position.
//
//	R0 out      V8 factors of words 0    V16, V17 the keys of the first round
//	R1 x        V9 and 2                 V18, V19 their increments
//	R2 to       V10, V11 the blocks'     V20 bound
//	R3 left     numbers, two each        V21 scale
//	R4 skip: elements of the first block that come before x
//	R5, R6, R7 addresses of the sixteen elements of out, x and to
//	R8 number of elements; if less than sixteen, they are on the stack
//	R10 address of the first of them on the stack

// NUMBERS broadcasts the parameters of the generator and starts the blocks.
#define NUMBERS(key, counter, bound, scale, first) \
	MOVD  key, R9;          \
	VDUP  R9, V16.S4;       \
	LSR   $32, R9;          \
	VDUP  R9, V17.S4;       \
	MOVD  counter, R9;      \
	VDUP  R9, V12.S4;       \
	LSR   $32, R9;          \
	VDUP  R9, V13.S4;       \
	MOVD  $0xD2511F53, R9;  \
	VDUP  R9, V8.S4;        \
	MOVD  $0xCD9E8D57, R9;  \
	VDUP  R9, V9.S4;        \
	MOVD  $0x9E3779B9, R9;  \
	VDUP  R9, V18.S4;       \
	MOVD  $0xBB67AE85, R9;  \
	VDUP  R9, V19.S4;       \
	MOVWU bound, R9;        \
	VDUP  R9, V20.S4;       \
	FMOVS scale, F21;       \
	VDUP  V21.S[0], V21.S4; \
	MOVD  first, R9;        \
	AND   $3, R9, R4;       \
	LSR   $2, R9;           \
	VMOV  R9, V10.D[0];     \
	ADD   $1, R9;           \
	VMOV  R9, V10.D[1];     \
	ADD   $1, R9;           \
	VMOV  R9, V11.D[0];     \
	ADD   $1, R9;           \
	VMOV  R9, V11.D[1];     \
	MOVD  $4, R9;           \
	VDUP  R9, V22.D2        // blocks of sixteen elements

// ROUND is one of the generator's rounds: words 0 and 2 times their factors are two products of two words. The next words
// are high(2)⊕1⊕key, low(2), high(0)⊕3⊕key, low(0).
#define ROUND \
	VUMULL(8, 0, 4);               \
	VUMULL2(8, 0, 5);              \
	VUMULL(9, 2, 6);               \
	VUMULL2(9, 2, 7);              \
	VUZP2 V7.S4, V6.S4, V0.S4;     \
	VEOR  V1.B16, V0.B16, V0.B16;  \
	VEOR  V23.B16, V0.B16, V0.B16; \
	VUZP2 V5.S4, V4.S4, V2.S4;     \
	VEOR  V3.B16, V2.B16, V2.B16;  \
	VEOR  V24.B16, V2.B16, V2.B16; \
	VUZP1 V7.S4, V6.S4, V1.S4;     \
	VUZP1 V5.S4, V4.S4, V3.S4;     \
	VADD  V18.S4, V23.S4, V23.S4;  \
	VADD  V19.S4, V24.S4, V24.S4

// KEPT makes V24 to V27 what the mask leaves of the sixteen elements at R6.
#define KEPT \
	VUZP1  V11.S4, V10.S4, V0.S4;      \
	VUZP2  V11.S4, V10.S4, V1.S4;      \
	VMOV   V12.B16, V2.B16;            \
	VMOV   V13.B16, V3.B16;            \
	VADD   V22.D2, V10.D2, V10.D2;     \
	VADD   V22.D2, V11.D2, V11.D2;     \
	VMOV   V16.B16, V23.B16;           \
	VMOV   V17.B16, V24.B16;           \
	ROUND; ROUND; ROUND; ROUND; ROUND; \
	ROUND; ROUND; ROUND; ROUND; ROUND; \
	VZIP1  V2.S4, V0.S4, V4.S4;        \ // to the order of the elements
	VZIP2  V2.S4, V0.S4, V5.S4;        \
	VZIP1  V3.S4, V1.S4, V6.S4;        \
	VZIP2  V3.S4, V1.S4, V7.S4;        \
	VZIP1  V6.S4, V4.S4, V0.S4;        \
	VZIP2  V6.S4, V4.S4, V1.S4;        \
	VZIP1  V7.S4, V5.S4, V2.S4;        \
	VZIP2  V7.S4, V5.S4, V3.S4;        \
	FLDPQ  (R6), (F24, F25);           \
	FLDPQ  32(R6), (F26, F27);         \
	VFMUL(21, 24, 24);                 \
	VFMUL(21, 25, 25);                 \
	VFMUL(21, 26, 26);                 \
	VFMUL(21, 27, 27);                 \
	VCMHS(20, 0, 0);                   \
	VCMHS(20, 1, 1);                   \
	VCMHS(20, 2, 2);                   \
	VCMHS(20, 3, 3);                   \
	VAND   V0.B16, V24.B16, V24.B16;   \
	VAND   V1.B16, V25.B16, V25.B16;   \
	VAND   V2.B16, V26.B16, V26.B16;   \
	VAND   V3.B16, V27.B16, V27.B16

// PLACE sets R8 to the number of elements among the next sixteen.
#define PLACE \
	MOVD $16, R8;       \
	SUB  R4, R8;        \
	CMP  R3, R8;        \
	CSEL GT, R3, R8, R8

// COPY copies R8 elements, at least one, one by one.
#define COPY(from, to, loop) \
	MOVD    from, R9;   \
	MOVD    to, R11;    \
	MOVD    R8, R12;    \
	loop:               \
	FMOVS.P 4(R9), F0;  \
	FMOVS.P F0, 4(R11); \
	SUB     $1, R12;    \
	CBNZ    R12, loop

// func dropNEON(out, x []float32, key, counter uint64, bound uint32, scale float32, first int)
TEXT ·dropNEON(SB), NOSPLIT, $64-80
	MOVD out_base+0(FP), R0
	MOVD x_base+24(FP), R1
	MOVD x_len+32(FP), R3
	NUMBERS(key+48(FP), counter+56(FP), bound+64(FP), scale+68(FP), first+72(FP))
	CBZ  R3, done

next:
	PLACE
	MOVD R0, R5
	MOVD R1, R6
	CMP  $16, R8
	BEQ  kept
	MOVD $dropped-64(SP), R5
	MOVD R5, R6
	ADD  R4<<2, R5, R10
	COPY(R1, R10, in)

kept:
	KEPT
	FSTPQ (F24, F25), (R5)
	FSTPQ (F26, F27), 32(R5)
	CMP   $16, R8
	BEQ   advance
	COPY(R10, R0, back)

advance:
	ADD  R8<<2, R0
	ADD  R8<<2, R1
	MOVD $0, R4
	SUB  R8, R3
	CBNZ R3, next

done:
	RET

// func addDroppedNEON(out, to, x []float32, key, counter uint64, bound uint32, scale float32, first int)
TEXT ·addDroppedNEON(SB), NOSPLIT, $128-104
	MOVD out_base+0(FP), R0
	MOVD to_base+24(FP), R2
	MOVD x_base+48(FP), R1
	MOVD x_len+56(FP), R3
	NUMBERS(key+72(FP), counter+80(FP), bound+88(FP), scale+92(FP), first+96(FP))
	CBZ  R3, done

next:
	PLACE
	MOVD R0, R5
	MOVD R1, R6
	MOVD R2, R7
	CMP  $16, R8
	BEQ  kept
	MOVD $dropped-64(SP), R5
	MOVD R5, R6
	MOVD $added-128(SP), R7
	ADD  R4<<2, R5, R10
	COPY(R1, R10, in)
	ADD  R4<<2, R7, R13
	COPY(R2, R13, inAdded)

kept:
	KEPT
	FLDPQ (R7), (F4, F5)
	FLDPQ 32(R7), (F6, F7)
	VFADD(24, 4, 4)
	VFADD(25, 5, 5)
	VFADD(26, 6, 6)
	VFADD(27, 7, 7)
	FSTPQ (F4, F5), (R5)
	FSTPQ (F6, F7), 32(R5)
	CMP   $16, R8
	BEQ   advance
	COPY(R10, R0, back)

advance:
	ADD  R8<<2, R0
	ADD  R8<<2, R1
	ADD  R8<<2, R2
	MOVD $0, R4
	SUB  R8, R3
	CBNZ R3, next

done:
	RET
