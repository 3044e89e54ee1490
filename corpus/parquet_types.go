package corpus

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// Of https://github.com/apache/parquet-format/blob/master/LogicalTypes.md, and its limits of decimals in Arrow.
const (
	secondsOfDay = 24 * 60 * 60
	clockLayout  = "15:04:05.999999999" // ISO 8601
	maxDigits    = 76                   // of a decimal of 256 bits
	decimalBytes = 32
	epochDay     = 2440588 // the Julian day of 1 January 1970
)

// decimalField returns the decimal n * 10^-scale, where n is a number or the big-endian two's complement of one.
func decimalField(c *parquet.Column, v parquet.Value, t *format.DecimalType) (any, error) {
	stored := bytesIn(v)
	if t.Scale < 0 || t.Scale > maxDigits || len(stored) > decimalBytes {
		return nil, fmt.Errorf("column %q has a decimal of %d bytes with %d digits after the point; want at most %d "+
			"and %d", c.Name(), len(stored), t.Scale, decimalBytes, maxDigits)
	}
	n := new(big.Int)
	switch v.Kind() {
	case parquet.Int32, parquet.Int64:
		n.SetInt64(intOf(v))
	default:
		n.SetBytes(stored)
		if len(stored) > 0 && stored[0] >= 0x80 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(stored))))
		}
	}
	sign, scale := "", int(t.Scale)
	if n.Sign() < 0 {
		sign = "-"
	}
	digits := n.Abs(n).String()
	if scale == 0 {
		return json.Number(sign + digits), nil
	}
	digits = strings.Repeat("0", max(0, scale+1-len(digits))) + digits
	point := len(digits) - scale
	return json.Number(sign + digits[:point] + "." + digits[point:]), nil
}

// instant returns the time of so many units after the start of 1970.
func instant(n int64, unit format.TimeUnit) time.Time {
	switch unit.Value.(type) {
	case *format.MilliSeconds:
		return time.UnixMilli(n).UTC()
	case *format.MicroSeconds:
		return time.UnixMicro(n).UTC()
	}
	return time.Unix(0, n).UTC()
}

// julianTime returns the time of 96 bits, as Hive and Spark write it: the nanoseconds of a day, and the Julian day.
func julianTime(v deprecated.Int96) string {
	nanoseconds := int64(v[0]) | int64(v[1])<<32
	day := int64(v[2]) - epochDay
	return time.Unix(day*secondsOfDay, nanoseconds).UTC().Format(time.DateOnly + "T" + clockLayout)
}

// uuidField returns the text of a UUID (RFC 9562).
func uuidField(b []byte) string {
	text := fmt.Sprintf("%x", b)
	if len(b) != 16 {
		return text
	}
	return strings.Join([]string{text[:8], text[8:12], text[12:16], text[16:20], text[20:]}, "-")
}

// checkTypes returns an error if the bytes of a column are neither a text nor one of the types that are read.
func checkTypes(file *parquet.File) error {
	for _, e := range file.Metadata().Schema {
		name := ""
		switch t := e.LogicalType.Value.(type) {
		case *format.BsonType, *format.Float16Type, *format.VariantType, *format.GeometryType, *format.GeographyType:
			name = t.String()
		case nil:
			switch {
			case !e.ConvertedType.Valid:
			case e.ConvertedType.V == deprecated.Bson:
				name = "BSON"
			case e.ConvertedType.V == deprecated.Interval:
				name = "INTERVAL"
			case e.ConvertedType.V == deprecated.Decimal && !(e.Scale.Valid && e.Precision.Valid):
				name = "DECIMAL without a scale and a precision"
			}
		}
		if name != "" {
			return fmt.Errorf("column %q is %s, which is not read; save the file without it, or the column as text",
				e.Name, name)
		}
	}
	return nil
}
