package kernel

// available lists the sets that this processor can run, the best last.
func available() []*set { return []*set{&plain} }
