// Package tasks turns the records of data files into examples with targets, and predictions into metrics.
//
// # The life of a task
//
// Registered. An init function calls Register with the name that files write as type, the defaults of its options, and
// its constructor.
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin).
//
// Built. The constructor receives the options and an Env: the names of the task's heads, and how a text is split into
// words. It checks what a tag cannot express. Output is the kind of outputs of all the task's heads (package outputs);
// it determines which heads fit, how targets are numbered, and how predictions are written.
//
// Described. DescriptionOf returns, for a Describer, what the task can do beyond the methods of Task, in one value
// whose fields are nil where it cannot. They are used as follows.
//
// Surveyed. Survey reads all records of a file before the first example is made from it. The training file comes first.
//
// Read. Example makes an example of each record, with a target for each head, nil where the record has none. A mistake
// in a record is an error that names its place. When all files are read, Warnings are about the records, and those of
// CheckTargets about the targets of each split.
//
// Evaluated. Evaluate compares the predictions of a head with its targets in each evaluation. The first metric is the
// main one, by which models are compared: for it higher is better. Undefined lists metrics that the targets give no
// meaning, and Tables adds metrics for each label. A task learns nothing and has no parameters.
//
// Saved. Only the options are saved. The result of a survey is computed anew when a run is opened: Survey receives one
// record with all labels of each head in place of the training file.
//
// Opened and used. Texts to predict do not pass through Example, which therefore leaves texts as they are. Spans turns
// predicted tags into spans.
//
// Package parttest checks that a task keeps these rules, given its name and some records.
package tasks
