package kernel

// pause tells the processor that nothing happens for some hundred cycles, so that its other thread can use them.
func pause()
