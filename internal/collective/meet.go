package collective

import (
	"encoding/binary"
	"errors"
	"time"
)

// ErrLate is the error of Meet where not all ranks have called it in time.
var ErrLate = errors.New("the other processes do not end")

// longestText is the most bytes of a text of Meet that rank 0 receives.
const longestText = 1 << 12

// Meet waits until all ranks have called it, at most for a time, or without limit for 0. Rank 0 then calls decide with
// the texts of all by rank, and all ranks return its result, the others not before rank 0 has it. It is the last method
// of a group that a rank calls, while others may be in any method.
func (g *Group) Meet(text string, limit time.Duration, decide func(texts []string) int) (decision int, err error) {
	if g.rank > 0 {
		return inTime(limit, func() (int, error) { return g.sendText(text) })
	}
	texts, err := inTime(limit, func() ([]string, error) { return g.receiveTexts(text) })
	if err != nil {
		return 0, err
	}
	decision = decide(texts)
	return decision, g.sendDecision(decision)
}

// inTime calls do, and returns ErrLate where it does not return within a time that is not 0.
func inTime[T any](limit time.Duration, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ended := make(chan result, 1)
	go func() {
		value, err := do()
		ended <- result{value, err}
	}()
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case r := <-ended:
		return r.value, r.err
	case <-late:
		var none T
		return none, ErrLate
	}
}

// A text is sent as its length, in 4 bytes, and longestText bytes; a decision as 4 bytes.
const textBytes = 4 + longestText

// receiveTexts returns the texts of all ranks, of which the first is the own one.
func (g *Group) receiveTexts(own string) ([]string, error) {
	memory, err := g.buffer(tagMeet, g.ranks*textBytes)
	if err != nil {
		return nil, err
	}
	err = wait(func(done func(error)) {
		all := &pending{left: 1, done: done}
		for rank := 1; rank < g.ranks; rank++ {
			g.transport.Receive(rank, tagMeet, memory[rank*textBytes:][:textBytes], all.add())
		}
		all.end(nil)
	})
	texts := []string{own}
	for rank := 1; rank < g.ranks && err == nil; rank++ {
		message := memory[rank*textBytes:][:textBytes]
		length := min(binary.LittleEndian.Uint32(message), longestText)
		texts = append(texts, string(message[4:][:length]))
	}
	return texts, err
}

// sendDecision sends rank 0's decision to all others.
func (g *Group) sendDecision(decision int) error {
	memory, err := g.buffer(tagMeet, 4)
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(memory, uint32(int32(decision)))
	return wait(func(done func(error)) {
		all := &pending{left: 1, done: done}
		for rank := 1; rank < g.ranks; rank++ {
			g.transport.Send(rank, tagMeet, memory, all.add())
		}
		all.end(nil)
	})
}

// sendText sends a text to rank 0, and returns its decision.
func (g *Group) sendText(text string) (decision int, err error) {
	memory, err := g.buffer(tagMeet, textBytes)
	if err != nil {
		return 0, err
	}
	length := copy(memory[4:], text)
	binary.LittleEndian.PutUint32(memory, uint32(length))
	err = wait(func(done func(error)) { g.transport.Send(0, tagMeet, memory, done) })
	if err == nil {
		err = wait(func(done func(error)) { g.transport.Receive(0, tagMeet, memory[:4], done) })
	}
	return int(int32(binary.LittleEndian.Uint32(memory))), err
}
