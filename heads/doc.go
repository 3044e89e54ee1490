// Package heads turns the hidden states that a task receives into logits, a loss and predictions.
//
// # The life of a head
//
// An init function calls Register with the name that files write as type, the defaults of its options, its constructor,
// and the kinds of outputs that it can have (package outputs). DefaultFor makes it the head of tasks whose file names
// none. The file's section is decoded over the defaults (package plugin), CheckOutput refuses a head whose outputs are
// of another kind than its task's, and TraitsOf reads from the options what has to be known before the head is made.
//
// The constructor receives the options and an Env with the head's subtree of the parameters, below which it makes all
// of its own. It checks what a tag cannot express: options against each other, and against the Env. Mistakes of the
// user are errors. Describe returns what the head can do beyond the methods of Head; a head that wraps another, or
// embeds a predefined objective (OneClass, ManyClasses, TagPerWord, Number), returns the description of that, changed.
//
// In training, Prepare changes each batch before it is encoded, Logits adds the head's logits to the graph of a pass,
// and Loss its loss, a sum over labelled units, which the loop divides by the Units of the whole step. The head itself
// keeps nothing from pass to pass but parameters; state that one of its methods passes to another is kept in the pass
// (nn.Pass.Put). A head with a Fitter learns nothing by gradients: before each evaluation on dev, and at the end of a
// training without evaluations, it is fitted to the features of those training examples that it chooses. In an
// evaluation on dev a Tuner chooses the thresholds, before the metrics are computed.
//
// A head with a Soft also learns from the answers of another model's head, a teacher, or is one: the teacher's Answers
// are located in the student's tokens, and Soft's Loss and Units take the place of those of gold targets.
//
// All learned, fitted and tuned values are parameters, frozen where gradients must not change them; they are saved in
// the checkpoint, and the thresholds of a Tuner in its model.json as well. To open it, the same constructor receives
// the options of the run and an Env with the labels of the checkpoint and an empty Training, and the parameters are
// read. Many passes may predict at once. A Calibrator may then be given a Calibration that was fitted to examples after
// training; it is not saved with the parameters.
//
// Package parttest checks that a head keeps these rules, given its name and options.
package heads
