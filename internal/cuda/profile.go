//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"cmp"
	"maps"
	"slices"
	"time"
	"unsafe"
)

// OperationTime is how long the operations of a name took on a device.
type OperationTime struct {
	Name  string
	Count int
	Time  time.Duration // from the end of the operation before each to its own end
}

// profile has an event after each operation.
type profile struct {
	names  []string
	events []uintptr
}

// Profile measures the operations that do queues, and returns their times, the longest first. It is for measurements:
// the events make each operation a microsecond or two longer.
func (d *Device) Profile(do func()) []OperationTime {
	d.enter()
	d.profile = &profile{}
	d.mark("")
	d.leave()
	do()
	d.Synchronize()
	d.enter()
	defer d.leave()
	p := d.profile
	d.profile = nil
	sums := map[string]OperationTime{}
	for i := 1; i < len(p.events); i++ {
		var milliseconds float32
		call(d.driver.eventElapsed, uintptr(unsafe.Pointer(&milliseconds)), p.events[i-1], p.events[i])
		sum := sums[p.names[i]]
		sum.Name, sum.Count = p.names[i], sum.Count+1
		sum.Time += time.Duration(float64(milliseconds) * float64(time.Millisecond))
		sums[p.names[i]] = sum
	}
	for _, event := range p.events {
		call(d.driver.eventDestroy, event)
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b OperationTime) int { return cmp.Compare(b.Time, a.Time) })
}

// mark records an event after an operation, if there is a profile.
func (d *Device) mark(name string) {
	if d.profile == nil {
		return
	}
	var event uintptr
	if call(d.driver.eventCreate, uintptr(unsafe.Pointer(&event)), 0) == 0 &&
		call(d.driver.eventRecord, event, d.stream) == 0 {
		d.profile.names, d.profile.events = append(d.profile.names, name), append(d.profile.events, event)
	}
}
