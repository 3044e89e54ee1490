package hub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

// enoughProgress is how many bytes of a file show that a connection works, although it was cut.
const enoughProgress = 1 << 20

// fill requests the part of a blob that its file lacks, and appends it. All bytes that came are kept on errors.
func (c *Client) fill(ctx context.Context, f *os.File, b blob) error {
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if have > b.size || b.newSum() == nil { // without a checksum nothing holds two halves together
		have = 0
	}
	if have == b.size && have > 0 {
		return nil
	}
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		header.Set("If-Range", `"`+b.etag+`"`)
	}
	r, err := c.send(ctx, http.MethodGet, b.address, header, false)
	if err != nil {
		return err
	}
	defer r.Body.Close()

	have, err = checkPart(r, b, have)
	if errors.Is(err, errRange) {
		return errors.Join(f.Truncate(0), &temporary{err: err})
	}
	if err != nil {
		return err
	}
	if err := f.Truncate(have); err != nil {
		return err
	}
	if _, err := f.Seek(have, io.SeekStart); err != nil {
		return err
	}
	return c.appendBody(f, r, b, have)
}

// errRange is the error of a response to a request for the end of a file that has another part.
var errRange = errors.New("the response lacks the end of the file")

// checkPart checks the header of a response to the request for the part of a blob from the byte have on. It returns the
// byte at which the response begins: 0 where the server ignores the range.
func checkPart(r *response, b blob, have int64) (from int64, err error) {
	if tag := etagOf(r.hub); r.hub != nil && tag != "" && tag != b.etag && r.StatusCode < 400 {
		return 0, errChanged
	}
	host := r.Request.URL.Host
	switch {
	case r.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0:
		return 0, fmt.Errorf("%s: %w: no byte %d", host, errRange, have)
	case r.StatusCode == http.StatusPartialContent && have > 0:
		want := fmt.Sprintf("bytes %d-%d/%d", have, b.size-1, b.size)
		if got := r.Header.Get("Content-Range"); got != want {
			return 0, fmt.Errorf("%s: %w: %.100q; want %q", host, errRange, got, want)
		}
		return have, nil
	case r.StatusCode == http.StatusOK:
		if r.ContentLength >= 0 && r.ContentLength != b.size {
			return 0, fmt.Errorf("%s: the response has %d bytes; want %d, the length that the hub states", host,
				r.ContentLength, b.size)
		}
		return 0, nil
	}
	if err := checkStatus(r); err != nil {
		return 0, err
	}
	return 0, statusError{r}
}

// appendBody appends a response to the have bytes of a blob's file.
func (c *Client) appendBody(f *os.File, r *response, b blob, have int64) error {
	const chunk = 256 << 10
	data, done := make([]byte, chunk), have
	for {
		if done < b.size {
			c.report(Event{File: b.name, Done: done, Size: b.size})
		}
		n, err := r.Body.Read(data[:min(chunk, b.size-done+1)]) // one more shows what is too long
		if int64(n) > b.size-done {
			return fmt.Errorf("%s: more than %d bytes, the length that the hub states", r.Request.URL.Host, b.size)
		}
		if n, err := c.write(f, data[:n]); err != nil {
			return fmt.Errorf("%w; the same command goes on after the %d of %d bytes that are there", err,
				done+int64(n), b.size)
		}
		done += int64(n)
		if err == io.EOF && done < b.size {
			err = &temporary{err: fmt.Errorf("%s: the response ended after %d of %d bytes", r.Request.URL.Host, done,
				b.size)}
		}
		if err == io.EOF {
			c.report(Event{File: b.name, Done: done, Size: b.size})
			return nil
		}
		var again *temporary
		if errors.As(err, &again) {
			again.progress = done-have >= enoughProgress
		}
		if err != nil {
			return err
		}
	}
}
