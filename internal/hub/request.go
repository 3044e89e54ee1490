package hub

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

const maxRedirects = 10

// errStalled is the error of a server that sends nothing.
var errStalled = errors.New("the server sends nothing")

// connection is a connection to a server. One that sends nothing for a while, after a request or while its response is
// read, ends it. Between reads there is no limit: a slow disk takes time of its own.
type connection struct {
	net.Conn
	client *Client
}

func (c connection) Read(data []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(c.client.stall))
	return c.Conn.Read(data)
}

func (c connection) Write(data []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(c.client.stall)) // of the read that waits for the response
	return c.Conn.Write(data)
}

// send sends a request and follows redirects: all of them, or with stay only those within the hub. The caller closes
// the body.
func (c *Client) send(ctx context.Context, method, address string, header http.Header, stay bool) (
	*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	maps.Copy(request.Header, header)
	request.Header.Set("User-Agent", "jenga")
	request.Header.Set("Accept-Encoding", "identity") // lengths are those of the files
	c.setHubHeader(request)

	client := *c.http
	client.CheckRedirect = func(next *http.Request, sent []*http.Request) error {
		if err := checkRedirect(sent[len(sent)-1].URL, next.URL); err != nil {
			return redirectError{err}
		}
		if stay && !c.isHub(next.URL) {
			return http.ErrUseLastResponse
		}
		if len(sent) == maxRedirects {
			return redirectError{fmt.Errorf("%s: more than %d redirects", c.endpoint.Host, maxRedirects)}
		}
		next.URL.User = nil
		next.Header.Del("Referer") // which may have the signature of a storage host
		c.setHubHeader(next)
		return nil
	}
	r, err := client.Do(request)
	if err != nil {
		return nil, requestError(ctx, request.URL, err)
	}
	return r, nil
}

// setHubHeader sets what the hub alone gets: its token, and If-Range, whose etag is the hub's.
func (c *Client) setHubHeader(r *http.Request) {
	if !c.isHub(r.URL) {
		r.Header.Del("Authorization")
		r.Header.Del("If-Range")
	} else if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
}

// isHub reports whether an address is on the hub itself: the same protocol, host and port.
func (c *Client) isHub(at *url.URL) bool {
	return at.Scheme == c.endpoint.Scheme && at.Host == c.endpoint.Host
}

// hubHeader returns the last header that the hub itself sent on the way to a response.
func (c *Client) hubHeader(r *http.Response) http.Header {
	for ; r != nil; r = r.Request.Response {
		if c.isHub(r.Request.URL) {
			return r.Header
		}
	}
	return nil
}

// redirectError is the error of a redirect that is not followed.
type redirectError struct{ error }

func checkRedirect(from, to *url.URL) error {
	switch {
	case to.Scheme != "https" && to.Scheme != "http" || to.Host == "":
		return fmt.Errorf("%s redirects to %.200q; want an address of https or http", from.Host, to)
	case from.Scheme == "https" && to.Scheme == "http":
		return fmt.Errorf("%s redirects from https to http, to %.200q; it could be changed on its way", from.Host, to)
	}
	return nil
}

// requestError returns the error of a request to an address, or of its body: that of ctx if it has ended, else one that
// may be gone the next time.
func requestError(ctx context.Context, at *url.URL, err error) error {
	if context.Cause(ctx) == errStalled {
		return &temporary{err: errStalled}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var of *url.Error // which repeats the address, with the signature of a storage host
	if errors.As(err, &of) {
		if redirected, wrong := url.Parse(of.URL); wrong == nil {
			at = redirected
		}
		err = of.Err
	}
	var redirect redirectError
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &redirect):
		return redirect.error
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return fmt.Errorf("%s: host not found; want a network, or a proxy in HTTPS_PROXY; a folder "+
			"with the files of the model that another machine has downloaded may be base_model too", at.Host)
	case errors.As(err, &certificate):
		return fmt.Errorf("%s: %w", at.Host, err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = errStalled
	}
	return &temporary{err: fmt.Errorf("%s: %w", at.Host, err)}
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
func (c *Client) checkStatus(r *http.Response) error {
	switch {
	case r.StatusCode < 300:
		return nil
	case r.StatusCode == http.StatusTooManyRequests, r.StatusCode == http.StatusRequestTimeout, r.StatusCode >= 500,
		r.StatusCode == http.StatusForbidden && !c.isHub(r.Request.URL): // the address that the hub gave expired
		return &temporary{err: statusError{r}, after: retryAfter(r.Header, time.Now())}
	}
	return statusError{r}
}

// statusError is the error of a response that is no success.
type statusError struct{ *http.Response }

func (e statusError) Error() string {
	text := fmt.Sprintf("%s: status %d", e.Request.URL.Host, e.StatusCode)
	if name := http.StatusText(e.StatusCode); name != "" {
		text += " (" + name + ")"
	}
	if e.StatusCode >= 300 && e.StatusCode < 400 {
		text += fmt.Sprintf(", a redirect to %.200q", e.Header.Get("Location"))
	}
	if message := e.Header.Get("X-Error-Message"); message != "" {
		text += fmt.Sprintf(": %.200q", message)
	}
	return text
}
