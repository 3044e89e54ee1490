package kernel

// pause runs PAUSE instructions for some hundred cycles, which leave the core to its other thread.
func pause()
