package serve

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// limited starts a web server of at most most connections, whose requests wait until goes is closed.
func limited(t *testing.T, most int) (address string, begun chan struct{}, goes chan struct{}) {
	t.Helper()
	begun, goes = make(chan struct{}, 100), make(chan struct{})
	web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun <- struct{}{}
		if r.URL.Path == "/slow" {
			<-goes
		}
		io.WriteString(w, "ok")
	}))
	connections := Limit(web.Listener, most)
	web.Listener, web.Config.ConnState = connections, connections.State
	web.Start()
	t.Cleanup(web.Close)
	return web.Listener.Addr().String(), begun, goes
}

func dial(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(10 * time.Second))
	return c
}

func ask(t *testing.T, c net.Conn, path string) {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
}

func answer(c net.Conn) error {
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, err = io.ReadAll(response.Body)
	return err
}

// Connections that say nothing, that wait after an answer or send half a header give way; one whose request is at hand
// does not.
func TestIdleConnectionsGiveWayToNewOnes(t *testing.T) {
	address, begun, goes := limited(t, 3)
	busy := dial(t, address)
	ask(t, busy, "/slow")
	<-begun
	var idle []net.Conn
	for i := range 8 {
		c := dial(t, address)
		switch i % 3 {
		case 1:
			ask(t, c, "/")
			if err := answer(c); err != nil {
				t.Fatal(err)
			}
		case 2:
			io.WriteString(c, "GET / HTTP/1.1\r\nHost: ")
		}
		idle = append(idle, c)
	}
	late := dial(t, address)
	ask(t, late, "/")
	if err := answer(late); err != nil {
		t.Errorf("a new connection beside idle ones: %v", err)
	}
	if _, err := idle[0].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the connection that was idle for longest: %v, want its end", err)
	}
	close(goes)
	if err := answer(busy); err != nil {
		t.Errorf("the request at hand: %v", err)
	}
}

func TestConnectionsWaitWhereAllHaveRequests(t *testing.T) {
	address, begun, goes := limited(t, 2)
	for range 2 {
		ask(t, dial(t, address), "/slow")
		<-begun
	}
	late := dial(t, address)
	ask(t, late, "/")
	select {
	case <-begun:
		t.Error("a third request at once, want two")
	case <-time.After(50 * time.Millisecond):
	}
	close(goes)
	if err := answer(late); err != nil {
		t.Errorf("the request that waited: %v", err)
	}
}
