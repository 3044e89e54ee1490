// Package fusion turns the hidden states that all tasks share into those that each task's heads receive.
//
// # The life of a fusion
//
// Registered. An init function calls Register with the name that files write as type, the defaults of its options, and
// its constructor. none is the fusion of a file that names none.
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin).
//
// Built. The constructor receives the options and an Env: the names of all tasks, the width of the states, the number
// of layers whose states the encoder returns, and the fusion's subtree of the parameters, below which it makes all of
// its own. It checks what a tag cannot express.
//
// Described. Describe returns the fusion's warnings; which layers' states it reads, which determines how the encoder is
// called and its states are cached; which parameters all tasks share, at which a weighting compares the tasks'
// gradients; and whether it treats each token alone: then in evaluation and prediction the states of tokens that no
// head reads may be NaN.
//
// Trained. For each task of a batch Fuse adds the states of its heads to the graph of a pass. The fusion itself keeps
// nothing from pass to pass but parameters.
//
// Evaluated. Each evaluation reports the Figures beside the metrics.
//
// Saved, opened and used. The parameters are saved in the checkpoint. The same constructor receives the options of the
// run and the same Env; the parameters are read, and Fuse is called as before. Many passes may run at once.
//
// Package parttest checks that a fusion keeps these rules, given its name and options, in front of a linear head.
package fusion
