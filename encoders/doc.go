// Package encoders turns tokens into the hidden states that all tasks share.
//
// # The life of an encoder
//
// Registered. An init function calls Register with the name that experiments write as type, the defaults of its
// options, and its constructor.
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin). Beside a base model, options that are a BaseChecker are checked by CheckBase.
//
// Built. The constructor receives the options and an Env: the base model's path, the sizes of tokenizer and texts, what
// is frozen, and the encoder's subtree of parameters, in which it makes all of its own. For a base model that takes
// shorter texts than Env.MaxLength it returns a *LengthError, wrapped with the name of the file that has the limit;
// where an option of Env is the mistake, as Freeze, it returns an *OptionError, of which the message has the place;
// other mistakes of the user are errors, too.
//
// Described. Describe returns a Description, from which the model is assembled: fusion and heads have Width, Layers,
// Attention and WordEmbeddings in their own Env; word vectors are copied into WordEmbeddings where the experiment has
// some; a warning is given for training options that the encoder does not support (MixedPrecision, Recomputes); a
// command without a length truncates texts to MaxTokens.
//
// Estimated. Before training and before prediction a MemoryEstimator returns the memory that the largest batch takes,
// which must fit the machine. Other encoders are not checked.
//
// Trained. Each step calls Encode with a pass of its own, then, if the encoder is Trainable and has a parameter that
// learns, Backward with the gradient at the states that Encode returned. Backward adds to the gradients of the step's
// store and reports each level of parameters as final by nn.Gradients.Ready, last layer first, so that processes sum
// them while those of the lower layers are still computed. The training has the optimizer that updates them; only a
// Resident, whose parameters are in a memory of its own, provides a store with an optimizer (Store), and reports
// whether it learns (Learns), which for others follows from the parameters. A Layered lists its parameters by layer:
// layers may have learning rates of their own (training.layer_decay), and may begin to learn later (nn.Param.Later), so
// that Encode drops out nothing in layers none of whose parameters LearnsNow, and Backward stops above them. The states
// of an encoder that learns nothing are computed once for each text and cached, as far as there is room.
//
// Saved. A Saver writes itself to the folder of each checkpoint. One that learns nothing is not copied: the checkpoint
// names Description.Files with their checksums, so that it need not be a Saver. An encoder for which neither is
// possible is an error before training.
//
// Opened and used. The same constructor receives the saved folder, or the original files, as Env.Model, with all
// parameters frozen. Encode may be called by many goroutines at once, each with its own pass: whatever it keeps is in
// the pass. Outside training it may leave out the states that the pass does not read (nn.Pass.Read).
//
// Closed. An encoder that holds files is an io.Closer. It is closed when the run or model that was opened is no longer
// used, and not while a call of Encode lasts.
//
// Package parttest tests that an encoder does all this, given its name and options that make it small.
package encoders
