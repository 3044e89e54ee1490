package hub

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

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
