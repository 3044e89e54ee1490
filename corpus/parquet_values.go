package corpus

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
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

// intOf returns a number of 32 or 64 bits.
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

// bytesIn returns the bytes of a text, nil of another value.
func bytesIn(v parquet.Value) []byte {
	if kind := v.Kind(); v.IsNull() || kind != parquet.ByteArray && kind != parquet.FixedLenByteArray {
		return nil
	}
	return v.ByteArray()
}
