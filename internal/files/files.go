// Package files copies files, and has the polynomial of their checksums.
package files

import (
	"errors"
	"hash/crc32"
	"io"
	"os"
)

// CRC32C is the polynomial of the checksums of files, Castagnoli's, for which processors have an instruction.
var CRC32C = crc32.MakeTable(crc32.Castagnoli)

// Copy copies the content of a file to a new one, or over an old one.
func Copy(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
