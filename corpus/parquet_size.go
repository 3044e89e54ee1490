package corpus

import (
	"fmt"

	"github.com/parquet-go/parquet-go"
)

// Sizes in memory of what a row becomes, in bytes, about those of a 64-bit machine.
const (
	parquetObject = 400 // a map of fields, and its record
	parquetField  = 50  // a name and its value in a map
	parquetValue  = 32  // a value that is not a text, or the header of one
)

// parquetRoom counts the memory that the rows of a file take, so that a small file with many empty rows is an error
// before they are made.
type parquetRoom struct {
	size, left int64             // bytes
	objects    [][]parquetColumn // the columns of objects whose first leaf column has an index
}

// parquetColumn is a column whose values become objects.
type parquetColumn struct {
	level int   // definition level from which on there is an object
	size  int64 // bytes of an object without its values
}

// newParquetRoom returns the room of a file of size bytes with the columns.
func newParquetRoom(size int64, columns []*parquet.Column) *parquetRoom {
	r := &parquetRoom{size: max(freeSize, maxRatio*size)}
	r.left = r.size
	for _, c := range columns {
		r.addObjects(c)
	}
	return r
}

// addObjects adds the objects that valueIn and elementIn make of c and of what is below it.
func (r *parquetRoom) addObjects(c *parquet.Column) {
	children := c.Columns()
	first := firstLeaf(c).Index()
	for len(r.objects) <= first {
		r.objects = append(r.objects, nil)
	}
	if !c.Leaf() && !isList(c) && !(c.Repeated() && len(children) == 1) {
		size := parquetObject + parquetField*int64(len(children))
		r.objects[first] = append(r.objects[first], parquetColumn{c.MaxDefinitionLevel(), size})
	}
	for _, child := range children {
		r.addObjects(child)
	}
}

// take subtracts the size of a row of so many columns.
func (r *parquetRoom) take(row parquet.Row, columns int) error {
	r.left -= parquetObject + parquetField*int64(columns)
	for _, v := range row {
		r.left -= parquetValue + int64(len(bytesIn(v)))
		for _, object := range r.objects[v.Column()] {
			if v.DefinitionLevel() >= object.level {
				r.left -= object.size
			}
		}
	}
	if r.left < 0 {
		return fmt.Errorf("the rows take more than %d MiB of memory, which is the limit for a file of this size: %d times "+
			"the size, and at least %d MiB; save it as several files, or as jsonl", r.size>>20, maxRatio, freeSize>>20)
	}
	return nil
}

// rowSize returns the size of a row's values in bytes.
func rowSize(row parquet.Row) int {
	size := 0
	for _, v := range row {
		size += 8 + len(bytesIn(v))
	}
	return size
}
