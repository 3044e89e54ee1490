package corpus

import (
	"fmt"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// checkCodecs returns an error if a column is compressed in a way that is not read. parquet-go doubles its buffer
// without end on damaged LZ4_RAW, and has no limit for BROTLI.
func checkCodecs(file *parquet.File) error {
	for _, group := range file.Metadata().RowGroups {
		for _, chunk := range group.Columns {
			switch codec := chunk.MetaData.Codec; codec {
			case format.Uncompressed, format.Snappy, format.Gzip, format.Zstd:
			default:
				name := codec.String()
				if codec < format.Uncompressed || codec > format.Lz4Raw {
					name = fmt.Sprintf("codec %d", codec)
				}
				return fmt.Errorf("column %q is compressed by %s; want one of SNAPPY, GZIP, ZSTD, UNCOMPRESSED",
					strings.Join(chunk.MetaData.PathInSchema, "."), name)
			}
		}
	}
	return nil
}
