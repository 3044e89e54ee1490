// Package encoders turns tokens into the hidden states that all tasks share.
//
// # The life of an encoder
//
// Registered. An init function calls Register with the name that files write as type, the defaults of its options, and
// its constructor.
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin). Beside a base model, options that are a BaseChecker say what is wrong with them there.
//
// Built. The constructor gets the options and a Env: the base model's path, the sizes of tokenizer and texts, what is
// frozen, and the encoder's corner of the tree of parameters, below which it makes all of its own. A base model that
// takes shorter texts than Env.MaxLength is a *LengthError, wrapped with the name of the file that says so; other
// mistakes of the user are errors, too.
//
// Described. Describe returns a Description, by which the model is assembled: fusion and heads take Width, Layers,
// Attention and WordEmbeddings into their own environments; vectors of words are copied into WordEmbeddings where the
// file has some; options of training that the encoder does not heed (MixedPrecision, Recomputes) are warned of; a
// command that is given no length truncates texts to MaxTokens.
//
// Asked for memory. Before training and before prediction a MemoryEstimator says how much the largest batch takes,
// which must fit the machine. Other encoders are not held to that.
//
// Trained. Each step calls Encode with a pass of its own, then, if the encoder is Trainable and has a parameter that
// learns, Backward with the gradient at the states that Encode gave. Backward adds to the gradients of the step's store
// and reports each level of parameters as final by nn.Gradients.Ready, last layer first, so that processes sum them
// while the lower layers are still computed. The optimizer that updates them belongs to the training; only a Resident,
// whose parameters lie in a memory of its own, brings a store with an optimizer (Store), and tells whether it learns
// (Learns), which for others the parameters tell. The states of an encoder that learns nothing are computed once for
// each text and kept, as far as there is room.
//
// Saved. A Saver writes itself to the folder of each checkpoint. One that learns nothing is not copied: the checkpoint
// names Description.Files with their sums, in which case it need be no Saver. One that can do neither is an error
// before training.
//
// Opened and used. The same constructor gets the saved folder, or the original files, as Env.Model, with all
// parameters frozen. Encode may be called by many goroutines at once, each with its own pass: whatever it keeps lies in
// the pass.
//
// Package parttest checks an encoder's side of this, given its name and options that make it small.
package encoders
