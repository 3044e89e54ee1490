package collective

import (
	"sync"
	"time"
)

// Traffic is what a rank has exchanged with others, but for the messages of Watch.
type Traffic struct {
	Sent   int64         // bytes
	Active time.Duration // in which at least one exchange had begun and not ended
}

// Since returns the traffic since an earlier one.
func (t Traffic) Since(before Traffic) Traffic {
	return Traffic{t.Sent - before.Sent, t.Active - before.Active}
}

// meter measures the traffic of a group.
type meter struct {
	mutex   sync.Mutex
	traffic Traffic
	begun   int // exchanges that have not ended
	since   time.Time
}

// begin counts an exchange that sends so many bytes.
func (m *meter) begin(sent int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.begun == 0 {
		m.since = time.Now()
	}
	m.begun++
	m.traffic.Sent += int64(sent)
}

func (m *meter) end() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.begun--; m.begun == 0 {
		m.traffic.Active += time.Since(m.since)
	}
}

// Traffic returns what this rank has exchanged so far.
func (g *Group) Traffic() Traffic {
	m := &g.meter
	m.mutex.Lock()
	defer m.mutex.Unlock()
	t := m.traffic
	if m.begun > 0 {
		t.Active += time.Since(m.since)
	}
	return t
}
