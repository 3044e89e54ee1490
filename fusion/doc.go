// Package fusion turns the hidden states that all tasks share into those that each task's heads get.
//
// # The life of a fusion
//
// Registered. An init function calls Register with the name that files write as type, the defaults of its options, and
// its constructor. none is the fusion of a file that names none.
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin).
//
// Built. The constructor gets the options and a Env: the names of all tasks, the width of the states, how many layers'
// states the encoder gives, and the fusion's corner of the tree of parameters, below which it makes all of its own. It
// checks what no tag can say. A plugin.Warner warns then.
//
// Described. DescriptionOf asks a Describer which layers' states it reads, by which the encoder is called and its
// states are cached, and which of its parameters all tasks share, at which a weighting compares the tasks' gradients.
//
// Trained. For each task of a batch Fuse adds the states that its heads get to the graph of a pass. The fusion itself
// keeps nothing from pass to pass but parameters.
//
// Evaluated. After each evaluation the figures of a Reporter stand beside the metrics.
//
// Saved, opened and used. The parameters go into the checkpoint. The same constructor gets the options of the run and
// the same Env; the parameters are read, and Fuse is called as before. Many passes may run at once.
//
// Package parttest checks a fusion's side of this, given its name and options, in front of a linear head.
package fusion
