// Package files copies files.
package files

import (
	"errors"
	"io"
	"os"
)

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
