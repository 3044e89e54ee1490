package outputs

import (
	"math"
	"reflect"
	"testing"
)

// A number that does not fit its field is an error: truncated to the field's size it would be another one.
func TestUnmarshalRefusesNumbersThatDoNotFit(t *testing.T) {
	type wide struct {
		ID    int64
		Count uint64
	}
	type narrow struct {
		ID    int8
		Count uint16
	}
	from, to := newCodec(reflect.TypeFor[wide]()), newCodec(reflect.TypeFor[narrow]())
	for _, fits := range []wide{{math.MaxInt8, math.MaxUint16}, {math.MinInt8, 0}} {
		got, err := to.unmarshal(from.marshal(&fits))
		if want := (narrow{int8(fits.ID), uint16(fits.Count)}); err != nil || *got.(*narrow) != want {
			t.Errorf("%+v is decoded as %+v, %v", fits, got, err)
		}
	}
	for _, large := range []wide{{math.MaxInt8 + 1, 0}, {math.MinInt8 - 1, 0}, {0, math.MaxUint16 + 1}} {
		if got, err := to.unmarshal(from.marshal(&large)); err == nil || err.Error() != "want a number" {
			t.Errorf("%+v is decoded as %+v, %v", large, got, err)
		}
	}
}
