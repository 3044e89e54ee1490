package serve

import (
	"net"
	"net/http"
	"slices"
	"sync"
)

// Connections is a listener that bounds how many connections are open at once. Beyond, those without a request give
// way to new ones, the longest first; where all have one, new ones wait until another is closed or has its answer.
type Connections struct {
	net.Listener
	most int

	mu      sync.Mutex
	changed *sync.Cond
	open    int
	idle    []*connection // the longest first
	closed  bool
}

type connection struct {
	net.Conn
	of   *Connections
	open bool // counts; under of.mu
}

// Limit returns a listener of at most most connections. State is the ConnState of the web server that it belongs to.
func Limit(l net.Listener, most int) *Connections {
	c := &Connections{Listener: l, most: most}
	c.changed = sync.NewCond(&c.mu)
	return c
}

// Accept implements net.Listener.
func (c *Connections) Accept() (net.Conn, error) {
	accepted, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.open >= c.most && !c.closed {
		if len(c.idle) == 0 {
			c.changed.Wait()
			continue
		}
		first := c.idle[0]
		c.leave(first)
		go first.Conn.Close()
	}
	if c.closed {
		accepted.Close()
		return nil, net.ErrClosed
	}
	added := &connection{Conn: accepted, of: c, open: true}
	c.open++
	c.idle = append(c.idle, added)
	return added, nil
}

// State takes a new state of a connection, as the ConnState of a web server.
func (c *Connections) State(conn net.Conn, state http.ConnState) {
	if wrapped, ok := conn.(interface{ NetConn() net.Conn }); ok { // of TLS
		conn = wrapped.NetConn()
	}
	of, ok := conn.(*connection)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.Index(c.idle, of)
	switch {
	case state == http.StateActive && at >= 0:
		c.idle = slices.Delete(c.idle, at, at+1)
	case state == http.StateIdle && at < 0 && of.open:
		c.idle = append(c.idle, of)
		c.changed.Signal()
	}
}

// leave makes room. The caller has locked c.mu.
func (c *Connections) leave(of *connection) {
	if !of.open {
		return
	}
	of.open = false
	c.open--
	if at := slices.Index(c.idle, of); at >= 0 {
		c.idle = slices.Delete(c.idle, at, at+1)
	}
	c.changed.Signal()
}

// Close ends the listener, not its connections.
func (c *Connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.changed.Broadcast()
	c.mu.Unlock()
	return c.Listener.Close()
}

// Close implements net.Conn.
func (of *connection) Close() error {
	of.of.mu.Lock()
	of.of.leave(of)
	of.of.mu.Unlock()
	return of.Conn.Close()
}
