package corpus

import (
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
)

// gzipReader decompresses a gzip stream. It is an error if the stream decompresses to far more than its size.
type gzipReader struct {
	compressed *bufio.Reader
	in, out    int64 // bytes so far
	gzip       *gzip.Reader
	err        error // of the header
}

// Text compresses to a third or a tenth of its size; gzip's limit is a thousandth.
const (
	maxRatio = 100
	freeSize = 64 << 20 // bytes that may be decompressed at any ratio
)

// decompress returns a reader of the decompressed bytes of the gzip stream r.
func decompress(r io.Reader) io.Reader {
	u := &gzipReader{}
	u.compressed = bufio.NewReader(counter{r, &u.in})
	return u
}

func (u *gzipReader) Read(b []byte) (int, error) {
	if u.gzip == nil && u.err == nil {
		u.gzip, u.err = gzip.NewReader(u.compressed)
		if u.err == gzip.ErrHeader || u.err == io.EOF || u.err == io.ErrUnexpectedEOF {
			u.err = errors.New("the file is not a gzip file, but its name ends in .gz")
		}
	}
	if u.err != nil {
		return 0, u.err
	}
	n, err := u.gzip.Read(b)
	u.out += int64(n)
	if u.out > freeSize && u.out > maxRatio*u.in {
		return n, fmt.Errorf("it decompresses to more than %d times its size; if that is intended, decompress it first",
			maxRatio)
	}
	if err == io.ErrUnexpectedEOF {
		err = errors.New("the gzip file is truncated; want a whole one")
	}
	return n, err
}

// counter counts the bytes read.
type counter struct {
	io.Reader
	n *int64
}

func (c counter) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	*c.n += int64(n)
	return n, err
}
