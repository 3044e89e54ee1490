package kernel

import "golang.org/x/sys/cpu"

//go:generate go run -C gen .

// available lists the sets that this processor can run, the best last.
func available() []*set {
	sets := []*set{&plain}
	if cpu.X86.HasAVX2 && cpu.X86.HasFMA {
		sets = append(sets, &avx2)
	}
	if cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		sets = append(sets, &avx512)
	}
	return sets
}

// Operations of a round of float32 multiply-adds.
const (
	multiplyAddsOfAVX2   = 12 * 8 * 2
	multiplyAddsOfAVX512 = 28 * 16 * 2
)

var avx2 = avx2Loops.with(
	tiles{
		run: tilesAVX2, panel: 16, lane: 1, depthMultiple: 1,
		multiplyAdds: multiplyAddsAVX2, operations: multiplyAddsOfAVX2,
	}, tiles{
		run: wordTilesAVX2, panel: 16, lane: 2, depthMultiple: 1,
		multiplyAdds: wordMultiplyAddsAVX2, operations: 2 * multiplyAddsOfAVX2,
	}, quantizeWordsAVX2)

// avx512F is the set for AVX-512 without instructions for integers in bytes and for bfloat16.
var avx512F = avx512Loops.with(
	tiles{
		run: tilesAVX512, panel: 32, lane: 1, depthMultiple: 1,
		multiplyAdds: multiplyAddsAVX512, operations: multiplyAddsOfAVX512,
	}, tiles{
		run: wordTilesAVX512, panel: 32, lane: 2, depthMultiple: 1,
		multiplyAdds: wordMultiplyAddsAVX512, operations: 2 * multiplyAddsOfAVX512,
	}, quantizeWordsAVX2)

var avx512 = avx512F.withLanes(cpu.X86.HasAVX512VNNI, cpu.X86.HasAVX512BF16)

// withLanes returns the set with the instructions for integers in bytes (VNNI) and for pairs of bfloat16.
func (s set) withLanes(bytes, pairs bool) set {
	if bytes {
		s.quantize = quantizeBytesAVX512
		s.tiles[Int8] = tiles{
			run: byteTilesAVX512, panel: 32, lane: 4, depthMultiple: 1,
			multiplyAdds: byteMultiplyAddsAVX512, operations: 4 * multiplyAddsOfAVX512,
		}
	}
	if pairs {
		s.pairRow, s.pairRows = pairRowAVX512, pairRowsAVX512
		s.tiles[BFloat16] = tiles{
			run: pairTilesAVX512, panel: 32, lane: 2, depthMultiple: 1,
			multiplyAdds: pairMultiplyAddsAVX512, operations: 2 * multiplyAddsOfAVX512,
		}
	}
	return s
}

// pause runs PAUSE instructions for some hundred cycles, which leave the core to its other thread.
func pause()
