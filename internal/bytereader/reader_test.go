package bytereader

import (
	"encoding/binary"
	"math"
	"testing"
)

func TestAReaderStopsAtTheFirstError(t *testing.T) {
	b := binary.AppendUvarint(nil, 300)
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(-0.5))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(2.5))
	b = append(b, "text"...)
	for n := range len(b) + 2 {
		r := Reader{Rest: append(b, 0)[:n]}
		count, double, single, text := r.Count(), r.Float64(), r.Float32(), r.Take(4)
		err := r.End()
		if complete := n == len(b); complete != (err == nil) {
			t.Errorf("%d of %d bytes: error %v", n, len(b), err)
		}
		if n >= len(b) && (count != 300 || double != -0.5 || single != 2.5 || string(text) != "text") {
			t.Errorf("%d of %d bytes: %v, %v, %v, %q", n, len(b), count, double, single, text)
		}
	}
	if r := (Reader{Rest: b}); len(r.Take(math.MaxUint64)) > 8 || r.End() == nil {
		t.Error("a length beyond the end is no error")
	}
}
