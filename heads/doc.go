// Package heads turns the hidden states that a task sees into logits, a loss and predictions.
//
// # The life of a head
//
// Registered. An init function calls Register with the name that files write as type, the defaults of its options, its
// constructor, and the kinds of outputs that it can have (package outputs). DefaultFor makes it the head of tasks whose
// file names none. A head that is registered without kinds may be an Outputter, as one that embeds a finished objective
// is (OneClass, ManyClasses, TagPerWord, Number).
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin). CheckOutput refuses a head whose outputs are of another kind than its task's. TraitsOf asks options that are
// a Describer whether the head learns by gradients, compares the examples of a batch, and has lenses.
//
// Built. The constructor gets the options and a Env: labels, the width of the states, statistics of the training
// targets, what the encoder and other heads of the same texts show, and the head's corner of the tree of parameters,
// below which it makes all of its own. It checks what no tag can say: options beside each other, and beside the env.
// Mistakes of the user are errors. Then an Accepter sees each target that was read, and a plugin.Warner warns.
//
// Trained. A Preparer changes each batch before it is encoded. Scores adds the head's logits to the graph of a pass,
// and Loss its loss, a sum over labelled units, which the loop divides by the Units of the whole step. The head itself
// keeps nothing from pass to pass but parameters; what one of its methods leaves for another lies in the pass
// (nn.Pass.Put).
//
// Fitted. A Fitter learns nothing by gradients, its loss is nil. Before each evaluation on dev, and at the end of a
// training without evaluations, its Fit gets the Features of those training texts that it chooses by their targets.
//
// Tuned. In an evaluation on dev a Tuner chooses its thresholds by its predictions, which it decides anew, before the
// metrics are computed. Where no evaluation comes, Untuned is the warning.
//
// Saved. What was learned, fitted and tuned lies in the parameters, frozen where gradients must not change it; they go
// into the checkpoint, and the thresholds of a Tuner into its model.json as well.
//
// Opened and used. The same constructor gets the options of the run and a Env with the labels of the checkpoint and an
// empty Training; the parameters are read, and Predict decides by them. In evaluation and prediction a Watcher asks
// each pass for what other parts keep of a batch, before it is encoded. Many passes may run at once.
//
// Package parttest checks a head's side of this, given its name and options.
package heads
