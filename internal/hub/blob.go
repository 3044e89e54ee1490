package hub

import (
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/hubcache"
)

// blob is the content of a file, as the hub states it.
type blob struct {
	file
	address string
	etag    string
	size    int64
}

// errChanged is the error of a file whose etag differs from one request to the next, though a commit's files stay.
var errChanged = errors.New("the file changed during the download; the same command starts it again")

// stat asks the hub for the etag and the length of a file.
func (c *Client) stat(ctx context.Context, address string, f file) (b blob, err error) {
	b = blob{file: f, address: address}
	err = c.retry(ctx, func() error {
		r, err := c.send(ctx, http.MethodHead, address, nil, true)
		if err != nil {
			return err
		}
		defer r.Body.Close()
		elsewhere := r.StatusCode >= 300 && r.StatusCode < 400 // to the host that stores the content
		if !elsewhere {
			if err := c.checkStatus(r); err != nil {
				return err
			}
		}
		b.etag, b.size = etagOf(c.hubHeader(r)), -1
		if n, err := strconv.ParseInt(c.hubHeader(r).Get("X-Linked-Size"), 10, 64); err == nil {
			b.size = n
		} else if !elsewhere {
			b.size = r.ContentLength
		}
		return nil
	})
	switch {
	case err != nil:
		return b, fmt.Errorf("%s: %w", f.name, err)
	case hubcache.CheckETag(b.etag) != nil:
		return b, fmt.Errorf("%s: %w", f.name, hubcache.CheckETag(b.etag))
	case b.size < 0:
		return b, fmt.Errorf("%s: %s states no length of the file", f.name, c.endpoint.Host)
	case b.size > f.limit:
		return b, fmt.Errorf("%s: %d bytes; such a file has at most %d", f.name, b.size, f.limit)
	}
	return b, nil
}

// etagOf returns the etag of the file that a header of the hub describes, which may be stored elsewhere.
func etagOf(h http.Header) string {
	tag := cmp.Or(h.Get("X-Linked-Etag"), h.Get("ETag"))
	return strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
}

// newSum returns the hash whose value is the blob's etag, nil if the etag is no hash of the content: SHA-256 for files
// in the hub's large file storage, and for those in the git repository SHA-1 as git computes it.
func (b blob) newSum() hash.Hash {
	if _, err := hex.DecodeString(b.etag); err != nil {
		return nil
	}
	switch len(b.etag) {
	case 2 * sha256.Size:
		return sha256.New()
	case 2 * sha1.Size:
		sum := sha1.New()
		fmt.Fprintf(sum, "blob %d\x00", b.size)
		return sum
	}
	return nil
}

// download writes a blob into the cache. What is there of an earlier download that was cut off is kept, and what this
// one leaves stays for the next.
func (c *Client) download(ctx context.Context, repo hubcache.Repo, b blob) error {
	path := repo.Blob(b.etag)
	complete := func() bool {
		size, ok := hubcache.Size(path)
		return ok && size == b.size
	}
	if complete() {
		return nil // a shared cache may be read-only: nothing is locked
	}
	unlock, err := repo.Lock(ctx, b.etag, func() {
		c.note("%s: another process downloads it; waiting for that", b.name)
	})
	if err != nil {
		return err
	}
	defer unlock()
	if complete() { // by the process that held the lock
		return nil
	}

	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	part := path + ".incomplete"
	f, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	err = c.complete(ctx, f, b)
	if errors.Is(err, errChanged) || errors.Is(err, errSum) {
		f.Close()
		os.Remove(part) // its end will never come
	}
	if err != nil {
		return err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// errSum is the error of a file whose checksum is not its etag.
var errSum = errors.New("wrong checksum")

// complete downloads what a blob's file lacks, and compares the checksum. A wrong one of a file that several responses
// wrote may be due to an earlier one: then all is downloaded again, once.
func (c *Client) complete(ctx context.Context, f *os.File, b blob) error {
	for again := true; ; again = false {
		joined := false
		err := c.retry(ctx, func() error {
			kept, err := f.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			joined = joined || kept > 0
			return c.fill(ctx, f, b)
		})
		if err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
		got, err := b.sum(f)
		switch {
		case err != nil || got == b.etag:
			return err
		case !joined || !again:
			return fmt.Errorf("%s: %w: its hash is %s, but the hub states %s; nothing of it is kept", b.name, errSum,
				got, b.etag)
		}
		c.note("%s: %v; downloading it again from its beginning", b.name, errSum)
		if err := f.Truncate(0); err != nil {
			return err
		}
	}
}

// sum returns the hash of a file's content as an etag has it; the etag itself where that is no hash.
func (b blob) sum(f *os.File) (string, error) {
	sum := b.newSum()
	if sum == nil {
		return b.etag, nil
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	_, err := io.Copy(sum, f)
	return hex.EncodeToString(sum.Sum(nil)), err
}

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

	have, err = c.checkPart(r, b, have)
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
	return c.appendBody(ctx, f, r, b, have)
}

// errRange is the error of a response to a request for the end of a file that has another part.
var errRange = errors.New("the response lacks the end of the file")

// checkPart checks the header of a response to the request for the part of a blob from the byte have on. It returns the
// byte at which the response begins: 0 where the server ignores the range.
func (c *Client) checkPart(r *http.Response, b blob, have int64) (from int64, err error) {
	if tag := etagOf(c.hubHeader(r)); tag != "" && tag != b.etag && r.StatusCode < 400 {
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
	if err := c.checkStatus(r); err != nil {
		return 0, err
	}
	return 0, statusError{r}
}

// appendBody appends a response to the have bytes of a blob's file.
func (c *Client) appendBody(ctx context.Context, f *os.File, r *http.Response, b blob, have int64) error {
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
		switch {
		case err == io.EOF && done < b.size:
			err = &temporary{err: fmt.Errorf("%s: the response ended after %d of %d bytes", r.Request.URL.Host, done,
				b.size)}
		case err == io.EOF:
			c.report(Event{File: b.name, Done: done, Size: b.size})
			return nil
		case err != nil:
			err = requestError(ctx, r.Request.URL, err)
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
