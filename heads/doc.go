// Package heads turns the hidden states that a task receives into logits, a loss and predictions.
//
// # The life of a head
//
// Registered. An init function calls Register with the name that files write as type, the defaults of its options, its
// constructor, and the kinds of outputs that it can have (package outputs). DefaultFor makes it the head of tasks whose
// file names none. A head that is registered without kinds has the one of its Description, like a head that embeds a
// predefined objective (OneClass, ManyClasses, TagPerWord, Number).
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin). CheckOutput refuses a head whose outputs are of another kind than its task's. TraitsOf reads from options
// that have Traits whether the head learns by gradients, compares the examples of a batch, and has lenses.
//
// Built. The constructor receives the options and an Env: labels, the width of the states, statistics of the training
// targets, the attention maps of the encoder, the lenses of other heads on the same texts, and the head's subtree of
// the parameters, below which it makes all of its own. It checks what a tag cannot express: options against each other,
// and against the Env. Mistakes of the user are errors.
//
// Described. Describe returns what the head can do beyond the methods of Head, in one value whose fields are nil where
// it cannot. A head that wraps another, or embeds an objective, returns the description of that, changed. The fields
// are used as follows: Warnings are reported, and CheckTarget receives each target that was read.
//
// Trained. Prepare changes each batch before it is encoded. Logits adds the head's logits to the graph of a pass, and
// Loss its loss, a sum over labelled units, which the loop divides by the Units of the whole step. The head itself
// keeps nothing from pass to pass but parameters; state that one of its methods passes to another is kept in the pass
// (nn.Pass.Put).
//
// Fitted. A head with a Fitter learns nothing by gradients, its loss is nil. Before each evaluation on dev, and at the
// end of a training without evaluations, its Fit receives the Features of those training examples that it chooses by
// their targets.
//
// Tuned. In an evaluation on dev a Tuner chooses the thresholds from the predictions and updates the predictions
// accordingly, before the metrics are computed. Without an evaluation, Untuned is the warning.
//
// Saved. All learned, fitted and tuned values are parameters, frozen where gradients must not change them; they are
// saved in the checkpoint, and the thresholds of a Tuner in its model.json as well.
//
// Opened and used. The same constructor receives the options of the run and an Env with the labels of the checkpoint
// and an empty Training; the parameters are read, and Predict uses them. In evaluation and prediction Observe
// requests from each pass values that other parts emit for a batch, before it is encoded. Where all heads on the same
// texts have Reads, the states of tokens that none of them reads may be NaN. Many passes may run at once.
//
// Calibrated. Once it is open, a Calibrator may be given a Calibration that was fitted to examples after training, by
// which Predict computes probabilities and decides. It is not saved with the parameters.
//
// Package parttest checks that a head keeps these rules, given its name and options.
package heads
