package run

// background runs tasks in a goroutine, one at a time.
type background struct{ result chan error } // nil: no task

// start starts a task. The one before must have been waited for.
func (b *background) start(task func() error) {
	result := make(chan error, 1)
	b.result = result
	go func() { result <- task() }()
}

// wait waits for the task, if there is one, and returns its error, once.
func (b *background) wait() error {
	if b.result == nil {
		return nil
	}
	err := <-b.result
	b.result = nil
	return err
}

// ended reports whether there is a task that wait would not wait for.
func (b *background) ended() bool { return len(b.result) > 0 }
