package corpus

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
)

type parquetType struct {
	kind  parquetKind
	list  bool // the values are lists of such
	large bool // there is an integer that a number of 64 bits may round
}

type parquetKind int

const (
	parquetMissing parquetKind = iota // all values so far
	parquetInteger
	parquetNumber
	parquetBoolean
	parquetText
	parquetJSON // as text
)

// with returns the type that has a further value too: JSON as text if the values have no common type.
func (t parquetType) with(value any) parquetType {
	list, isList := value.([]any)
	switch {
	case value == nil:
		return t
	case isList != t.list && (t.kind != parquetMissing || t.list):
		return parquetType{kind: parquetJSON}
	case !isList:
		return t.withOne(value)
	}
	t.list = true
	for _, element := range list {
		t = t.withOne(element)
	}
	return t
}

func (t parquetType) withOne(value any) parquetType {
	own := parquetKindOf(value)
	if own == parquetInteger {
		const exact = 1 << 53 // what float64 does not round
		i, _ := value.(json.Number).Int64()
		t.large = t.large || i > exact || i < -exact
	}
	switch {
	case value == nil, t.kind == own:
	case t.kind == parquetMissing && own != parquetJSON:
		t.kind = own
	case !t.large && min(t.kind, own) == parquetInteger && max(t.kind, own) == parquetNumber:
		t.kind = parquetNumber
	default:
		return parquetType{kind: parquetJSON}
	}
	return t
}

func parquetKindOf(value any) parquetKind {
	switch value := value.(type) {
	case string:
		return parquetText
	case bool:
		return parquetBoolean
	case json.Number:
		if _, err := value.Int64(); err == nil {
			return parquetInteger
		}
		if _, err := value.Float64(); err == nil && strings.ContainsAny(value.String(), ".eE") {
			return parquetNumber
		}
	}
	return parquetJSON
}

// node returns the column that has the type; any value may be missing.
func (t parquetType) node() parquet.Node {
	n := parquet.String()
	switch t.kind {
	case parquetInteger:
		n = parquet.Int(64)
	case parquetNumber:
		n = parquet.Leaf(parquet.DoubleType)
	case parquetBoolean:
		n = parquet.Leaf(parquet.BooleanType)
	}
	n = parquet.Optional(n)
	if t.list {
		n = parquet.Optional(parquet.List(n))
	}
	return n
}

// appendTo appends a value of the type in column number at to a row, with Dremel's levels (Melnik et al. 2010, section
// 4.1): a list has those of the column, of the list and of its elements.
func (t parquetType) appendTo(row parquet.Row, at int, value any) parquet.Row {
	list, isList := value.([]any)
	switch {
	case value == nil, isList && t.list && len(list) == 0:
		level := 0
		if value != nil {
			level = 1
		}
		return append(row, parquet.NullValue().Level(0, level, at))
	case !t.list:
		return append(row, t.value(value).Level(0, 1, at))
	}
	for i, element := range list {
		v := parquet.NullValue().Level(min(i, 1), 2, at)
		if element != nil {
			v = t.value(element).Level(min(i, 1), 3, at)
		}
		row = append(row, v)
	}
	return row
}

// value returns a value that is not missing, and no list unless the type is JSON. A text in a column of several types
// stands as it is.
func (t parquetType) value(value any) parquet.Value {
	switch t.kind {
	case parquetInteger:
		n, _ := value.(json.Number).Int64()
		return parquet.Int64Value(n)
	case parquetNumber:
		x, _ := value.(json.Number).Float64()
		return parquet.DoubleValue(x)
	case parquetBoolean:
		return parquet.BooleanValue(value.(bool))
	}
	if text, ok := value.(string); ok {
		return parquet.ByteArrayValue([]byte(text))
	}
	text, err := json.Marshal(value)
	if err != nil {
		panic("corpus: " + err.Error()) // it came from JSON
	}
	return parquet.ByteArrayValue(text)
}

// parquetColumns are the columns of a file in their order; a parquet.Group alone sorts them by name.
type parquetColumns struct {
	parquet.Group
	names []string
}

// Fields implements parquet.Node.
func (c parquetColumns) Fields() []parquet.Field {
	fields := c.Group.Fields()
	slices.SortFunc(fields, func(a, b parquet.Field) int {
		return slices.Index(c.names, a.Name()) - slices.Index(c.names, b.Name())
	})
	return fields
}

func parquetSchema(columns []string, types []parquetType) (*parquet.Schema, error) {
	group := parquet.Group{}
	for i, name := range columns {
		if _, twice := group[name]; twice || name == "" {
			return nil, fmt.Errorf("column %d: its name %q is empty or that of another; want another", i+1, name)
		}
		group[name] = types[i].node()
	}
	return parquet.NewSchema("records", parquetColumns{group, columns}), nil
}
