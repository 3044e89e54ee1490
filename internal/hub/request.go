package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const maxRedirects = 10

// errStalled is the cause of the end of a response that sends nothing.
var errStalled = errors.New("the server sends nothing")

// response is the response to a request after its redirects.
type response struct {
	*http.Response
	fromHub bool        // whether the hub itself sent it, not a host to which it redirects
	hub     http.Header // the last header that the hub itself sent
}

// send sends a request and follows redirects: all of them, or with stay only those within the hub. The hub's token and
// If-Range, whose etag is the hub's, go to no other host. A server that sends nothing for a while ends the response.
// The caller closes the body.
func (c *Client) send(ctx context.Context, method, address string, header http.Header, stay bool) (*response, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	parent := ctx
	ctx, cancel := context.WithCancelCause(ctx)
	guard := time.AfterFunc(c.stall, func() { cancel(errStalled) })
	fail := func(err error) (*response, error) {
		guard.Stop()
		cancel(nil)
		return nil, err
	}

	var hub http.Header
	for range maxRedirects {
		guard.Reset(c.stall)
		r, err := c.sendOnce(ctx, method, at, header)
		if err != nil {
			return fail(requestError(parent, ctx, at, err))
		}
		fromHub := c.isHub(at)
		if fromHub {
			hub = r.Header
		}
		next, err := redirection(r, at)
		if err != nil {
			r.Body.Close()
			return fail(err)
		}
		if next == nil || stay && !c.isHub(next) {
			guard.Stop() // until the first read
			r.Body = &guarded{r.Body, func(err error) error { return requestError(parent, ctx, at, err) }, guard,
				c.stall, cancel}
			return &response{r, fromHub, hub}, nil
		}
		r.Body.Close()
		at = next
	}
	return fail(fmt.Errorf("%s: more than %d redirects", c.endpoint.Host, maxRedirects))
}

func (c *Client) sendOnce(ctx context.Context, method string, at *url.URL, header http.Header) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), nil)
	if err != nil {
		return nil, err
	}
	for name, values := range header {
		request.Header[name] = values
	}
	request.Header.Set("User-Agent", "jenga")
	request.Header.Set("Accept-Encoding", "identity")
	if !c.isHub(at) {
		request.Header.Del("If-Range")
	} else if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	return c.http.Do(request)
}

// isHub reports whether an address is on the hub itself: the same protocol, host and port.
func (c *Client) isHub(at *url.URL) bool {
	return at.Scheme == c.endpoint.Scheme && at.Host == c.endpoint.Host
}

// redirection returns the address to which r, the response of the address from, redirects, nil if it does not.
func redirection(r *http.Response, from *url.URL) (*url.URL, error) {
	switch r.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := from.Parse(r.Header.Get("Location"))
	switch {
	case err != nil || r.Header.Get("Location") == "":
		return nil, fmt.Errorf("%s redirects to %.200q, which is no address", from.Host, r.Header.Get("Location"))
	case to.Scheme != "https" && to.Scheme != "http" || to.Host == "":
		return nil, fmt.Errorf("%s redirects to %.200q; want an address of https or http", from.Host, to)
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, fmt.Errorf("%s redirects from https to http, to %.200q; it could be changed on its way", from.Host,
			to)
	}
	to.User = nil
	return to, nil
}

// requestError returns the error of a request or of its body: the parent's if it has ended, else one that may be gone
// the next time.
func requestError(parent, ctx context.Context, at *url.URL, err error) error {
	if parent.Err() != nil {
		return parent.Err()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	var address *url.Error // which repeats the address, with the signature of a storage host
	if errors.As(err, &address) {
		err = address.Err
	}
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("%s: host not found; want a network, or a proxy in HTTPS_PROXY", at.Host)
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: %w", at.Host, err)
	}
	return &temporary{err: fmt.Errorf("%s: %w", at.Host, err)}
}

// guarded is the body of a response. Each read gives the server time anew; between reads there is
// no limit.
type guarded struct {
	body   io.ReadCloser
	wrap   func(error) error
	guard  *time.Timer
	stall  time.Duration
	cancel context.CancelCauseFunc
}

func (g *guarded) Read(data []byte) (int, error) {
	g.guard.Reset(g.stall)
	n, err := g.body.Read(data)
	g.guard.Stop() // what the caller does with the data, as a slow disk does, takes time of its own
	if err != nil && err != io.EOF {
		err = g.wrap(err)
	}
	return n, err
}

func (g *guarded) Close() error {
	g.guard.Stop()
	err := g.body.Close()
	g.cancel(nil)
	return err
}

const (
	maxAttempts = 6 // in a row without progress
	firstWait   = time.Second
	maxWait     = 5 * time.Minute // longer ones are left to the user
)

// temporary is an error of the network or the server that may be gone the next time.
type temporary struct {
	err      error
	after    time.Duration // what the server demands (Retry-After), 0 for nothing
	progress bool          // whether a good part of a file came before it
}

func (t *temporary) Error() string { return t.err.Error() }
func (t *temporary) Unwrap() error { return t.err }

// retry calls try until it returns no temporary error, at most maxAttempts times in a row without progress. It waits
// twice as long each time, and at least as long as the server demands.
func (c *Client) retry(ctx context.Context, try func() error) error {
	wait := firstWait
	for attempt := 1; ; attempt++ {
		err := try()
		var again *temporary
		if !errors.As(err, &again) {
			return err
		}
		if again.progress {
			attempt, wait = 1, firstWait
		}
		pause := max(wait, again.after)
		switch {
		case pause > maxWait:
			return fmt.Errorf("%w; the server wants no request for %s", err, pause.Round(time.Second))
		case attempt == maxAttempts:
			return fmt.Errorf("%w (%d times)", err, attempt)
		}
		c.note("%v; trying again in %s", err, pause.Round(time.Second))
		if err := c.wait(ctx, pause); err != nil {
			return err
		}
		wait *= 2
	}
}

// retryAfter returns how long a response demands to wait: seconds, or until a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(0, date.Sub(now))
	}
	return 0
}

// checkStatus returns an error unless r is a success: a temporary one if the server is overloaded or broken.
func checkStatus(r *response) error {
	switch {
	case r.StatusCode < 300:
		return nil
	case r.StatusCode == http.StatusTooManyRequests, r.StatusCode == http.StatusRequestTimeout, r.StatusCode >= 500,
		r.StatusCode == http.StatusForbidden && !r.fromHub: // a storage host's: the address that the hub gave expired
		return &temporary{err: statusError{r}, after: retryAfter(r.Header, time.Now())}
	}
	return statusError{r}
}

// statusError is the error of a response that is no success.
type statusError struct{ *response }

func (e statusError) Error() string {
	text := fmt.Sprintf("%s: status %d", e.Request.URL.Host, e.StatusCode)
	if name := http.StatusText(e.StatusCode); name != "" {
		text += " (" + name + ")"
	}
	if message := e.Header.Get("X-Error-Message"); message != "" {
		text += fmt.Sprintf(": %.200q", message)
	}
	return text
}
