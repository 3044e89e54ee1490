// NEON instructions that Go's assembler does not support, by the numbers of their registers: VFADD(1, 2, 3) is what
// VFADD V1.S4, V2.S4, V3.S4 would be, V3 = V2 + V1 in each of four float32 lanes. Operands stand in Go's order: what is
// subtracted or divided by first, the result last. The encodings are those of the Arm Architecture Reference Manual for
// A-profile, DDI 0487, chapter C7, under the name in each comment.

#define VFADD(m, n, d)  WORD $(0x4E20D400 | (m)<<16 | (n)<<5 | (d)) // FADD (vector): d = n + m
#define VFSUB(m, n, d)  WORD $(0x4EA0D400 | (m)<<16 | (n)<<5 | (d)) // FSUB (vector): d = n − m
#define VFMUL(m, n, d)  WORD $(0x6E20DC00 | (m)<<16 | (n)<<5 | (d)) // FMUL (vector): d = n·m
#define VFDIV(m, n, d)  WORD $(0x6E20FC00 | (m)<<16 | (n)<<5 | (d)) // FDIV (vector): d = n/m
#define VFMAX(m, n, d)  WORD $(0x4E20F400 | (m)<<16 | (n)<<5 | (d)) // FMAX (vector): NaN where one of them is
#define VFMIN(m, n, d)  WORD $(0x4EA0F400 | (m)<<16 | (n)<<5 | (d)) // FMIN (vector): NaN where one of them is
#define VFSQRT(n, d)    WORD $(0x6EA1F800 | (n)<<5 | (d))           // FSQRT (vector)
#define VFABS(n, d)     WORD $(0x4EA0F800 | (n)<<5 | (d))           // FABS (vector)
#define VFNEG(n, d)     WORD $(0x6EA0F800 | (n)<<5 | (d))           // FNEG (vector)
#define VFCMGT(m, n, d) WORD $(0x6EA0E400 | (m)<<16 | (n)<<5 | (d)) // FCMGT (register): all bits of d where n > m
#define VCMHS(m, n, d)  WORD $(0x6EA03C00 | (m)<<16 | (n)<<5 | (d)) // CMHS (register): n ≥ m without signs
#define VBIC(m, n, d)   WORD $(0x4E601C00 | (m)<<16 | (n)<<5 | (d)) // BIC (vector, register): the bits of n that m has not
#define VSSHR31(n, d)   WORD $(0x4F210400 | (n)<<5 | (d))           // SSHR (vector) by 31: all bits of d where n < 0
#define VFCVTNS(n, d)   WORD $(0x4E21A800 | (n)<<5 | (d))           // FCVTNS (vector): the nearest int32, even ones in ties
#define VSCVTF(n, d)    WORD $(0x4E21D800 | (n)<<5 | (d))           // SCVTF (vector, integer): int32 to float32

// VFMLA_LANE is d += n·(lane i of m). FMLA (by element), single precision: i is H:L.
#define VFMLA_LANE(i, m, n, d) WORD $(0x4F801000 | ((i)&1)<<21 | ((i)>>1)<<11 | (m)<<16 | (n)<<5 | (d))

// Two lanes of float64.
#define VFADD_D2(m, n, d) WORD $(0x4E60D400 | (m)<<16 | (n)<<5 | (d)) // FADD (vector): d = n + m
#define VFCVTL(n, d)      WORD $(0x0E617800 | (n)<<5 | (d))           // FCVTL: the lower two float32 of n
#define VFCVTL2(n, d)     WORD $(0x4E617800 | (n)<<5 | (d))           // FCVTL2: the upper two

// Sums and the maximum of lanes.
#define VFADDP(m, n, d)    WORD $(0x6E20D400 | (m)<<16 | (n)<<5 | (d)) // FADDP (vector): n0+n1, n2+n3, m0+m1, m2+m3
#define VFADDP_S2(n, d)    WORD $(0x7E30D800 | (n)<<5 | (d))           // FADDP (scalar): d0 = n0 + n1, float32
#define VFADDP_D2(n, d)    WORD $(0x7E70D800 | (n)<<5 | (d))           // FADDP (scalar): d0 = n0 + n1, float64
#define VFMAXV(n, d)       WORD $(0x6E30F800 | (n)<<5 | (d))           // FMAXV: NaN where a lane is

// Integers.
#define VADD_S4(m, n, d)  WORD $(0x4EA08400 | (m)<<16 | (n)<<5 | (d)) // ADD (vector): d = n + m, int32
#define VMLS_S4(m, n, d)  WORD $(0x6EA09400 | (m)<<16 | (n)<<5 | (d)) // MLS (vector): d −= n·m, int32
#define VSQXTUN_S4(n, d)  WORD $(0x2E612800 | (n)<<5 | (d))           // SQXTUN: int32 to uint16, saturated, to the lower half
#define VSQXTUN2_S4(n, d) WORD $(0x6E612800 | (n)<<5 | (d))           // SQXTUN2: to the upper half
#define VUQXTN_H8(n, d)   WORD $(0x2E214800 | (n)<<5 | (d))           // UQXTN: uint16 to uint8, saturated, to the lower half
#define VUQXTN2_H8(n, d)  WORD $(0x6E214800 | (n)<<5 | (d))           // UQXTN2: to the upper half
#define VFMINV(n, d)      WORD $(0x6EB0F800 | (n)<<5 | (d))           // FMINV: the least lane, NaN where a lane is

#define VUMIN_H8(m, n, d)   WORD $(0x6E606C00 | (m)<<16 | (n)<<5 | (d)) // UMIN: the smaller one, uint16
#define VSMLAL_H4(m, n, d)  WORD $(0x0E608000 | (m)<<16 | (n)<<5 | (d)) // SMLAL: int32 d += n·m, the lower int16 of both
#define VSMLAL2_H8(m, n, d) WORD $(0x4E608000 | (m)<<16 | (n)<<5 | (d)) // SMLAL2: the upper ones

// VSDOT is d += the sum of four products of int8, of each lane of n and of lane 0 of m. SDOT (by element), FEAT_DotProd.
#define VSDOT(m, n, d) WORD $(0x4F80E000 | (m)<<16 | (n)<<5 | (d))

// Products of uint32 as uint64.
#define VUMULL(m, n, d)  WORD $(0x2EA0C000 | (m)<<16 | (n)<<5 | (d)) // UMULL (vector): the lower two lanes
#define VUMULL2(m, n, d) WORD $(0x6EA0C000 | (m)<<16 | (n)<<5 | (d)) // UMULL2 (vector): the upper two

// SUM_OF_4 adds all lanes of four registers, two by two, in lane 0 of a.
#define SUM_OF_4(a, b, c, d) \
	VFADD(c, a, a);    \
	VFADD(d, b, b);    \
	VFADD(b, a, a);    \
	VFADDP(a, a, a);   \
	VFADDP_S2(a, a)
