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
// Built. The constructor gets the options and a Env: the names of the task's heads, and how a text is divided into
// words. It checks what no tag can say. Output is the kind of outputs of all the task's heads (package outputs); it
// settles which heads fit, how targets are numbered, and what is written of predictions.
//
// Surveyed. A Surveyor reads all records of a file before the first example is made of it. Training's file comes first.
//
// Read. Example makes an example of each record, with a target for each head, nil where the record has none. A mistake
// in a record is an error that names its place. When all files are read, a plugin.Warner warns of what it found, and a
// TargetChecker of the targets of each split.
//
// Judged. Judge compares the predictions of a head with its targets after each evaluation; the first metric is the main
// one. A Tabler adds figures for each label. A task learns nothing and has no parameters.
//
// Saved. Nothing but the options is. What a survey settles is settled anew when a run is opened: Survey gets one record
// with all labels of each head in place of the training file.
//
// Opened and used. Texts to predict are records without targets, and pass through Example too. A task of tags that mark
// spans is an outputs.SpanFinder, by which predicted tags are written as spans.
//
// Package parttest checks a task's side of this, given its name and some records.
package tasks
