package corpus

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// leafValue returns a value as the field of a record: a number, true or false, or a text. Bytes of no type that are no
// text are missing: they may be an image.
func leafValue(c *parquet.Column, v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	var logical format.LogicalTypeValue
	if t := c.Type().LogicalType(); t != nil {
		logical = t.Value
	}
	switch t := logical.(type) {
	case *format.DecimalType:
		return decimalField(c, v, t)
	case *format.DateType:
		return time.Unix(int64(v.Int32())*secondsOfDay, 0).UTC().Format(time.DateOnly), nil
	case *format.TimeType:
		return instant(intOf(v), t.Unit).Format(clockLayout), nil
	case *format.TimestampType:
		layout := time.DateOnly + "T" + clockLayout
		if t.IsAdjustedToUTC {
			layout += "Z"
		}
		return instant(intOf(v), t.Unit).Format(layout), nil
	case *format.IntType:
		if !t.IsSigned && v.Kind() == parquet.Int32 {
			return json.Number(strconv.FormatUint(uint64(v.Uint32()), 10)), nil
		}
		if !t.IsSigned {
			return json.Number(strconv.FormatUint(v.Uint64(), 10)), nil
		}
	case *format.UUIDType:
		return uuidField(v.ByteArray()), nil
	}
	return physicalValue(c, v, logical)
}

// physicalValue returns a value by the type that it is stored as; logical is nil for a column without a logical type.
func physicalValue(c *parquet.Column, v parquet.Value, logical format.LogicalTypeValue) (any, error) {
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32, parquet.Int64:
		return json.Number(strconv.FormatInt(intOf(v), 10)), nil
	case parquet.Int96:
		return julianTime(v.Int96()), nil
	case parquet.Float:
		return floatField(float64(v.Float()), 32)
	case parquet.Double:
		return floatField(v.Double(), 64)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		text := v.ByteArray()
		switch {
		case utf8.Valid(text):
			return string(text), nil
		case logical != nil:
			return nil, fmt.Errorf("column %q is not UTF-8", c.Name())
		}
	}
	return nil, nil
}

func intOf(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

// floatField returns a number of so many bits as a field; one that is not finite stands for a missing value, as in
// pandas.
func floatField(v float64, bits int) (any, error) {
	if !floats.IsFinite(v) {
		return nil, nil
	}
	return json.Number(strconv.FormatFloat(v, 'g', -1, bits)), nil
}

func bytesIn(v parquet.Value) []byte {
	if kind := v.Kind(); v.IsNull() || kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
		return nil
	}
	return v.ByteArray()
}

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
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
	return json.Number(new(big.Rat).SetFrac(n, scale).FloatString(int(t.Scale))), nil
}

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

func uuidField(b []byte) string {
	if len(b) != 16 {
		return fmt.Sprintf("%x", b)
	}
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
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
