package corpus

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/parquet-go/parquet-go"
)

// leafValue returns a value as the field of a record. Bytes that are no text are missing: they may be an image.
func leafValue(c *parquet.Column, v parquet.Value) (any, error) {
	if v.IsNull() {
		return nil, nil
	}
	number := func(text string) (any, error) { return json.Number(text), nil }
	unsigned := strings.HasSuffix(logicalType(c), ",false)") // as INT(64,false)
	switch v.Kind() {
	case parquet.Boolean:
		return v.Boolean(), nil
	case parquet.Int32:
		if unsigned {
			return number(strconv.FormatUint(uint64(v.Uint32()), 10))
		}
		return number(strconv.FormatInt(int64(v.Int32()), 10))
	case parquet.Int64:
		if unsigned {
			return number(strconv.FormatUint(v.Uint64(), 10))
		}
		return number(strconv.FormatInt(v.Int64(), 10))
	case parquet.Float:
		return floatField(float64(v.Float()), 32)
	case parquet.Double:
		return floatField(v.Double(), 64)
	case parquet.ByteArray, parquet.FixedLenByteArray:
		text := v.ByteArray()
		switch {
		case utf8.Valid(text):
			return string(text), nil
		case logicalType(c) != "":
			return nil, fmt.Errorf("column %q is not UTF-8", c.Name())
		}
	}
	return nil, nil
}

// floatField returns a number of so many bits as a field; one that is not finite stands for a missing value, as in
// pandas.
func floatField(v float64, bits int) (any, error) {
	if math.IsNaN(v) || math.IsInf(v, 0) {
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
