// Package tasks turns the records of data files into examples with targets, and predictions into metrics.
//
// # The life of a task
//
// An init function calls Register with the name that files write as type, the defaults of its options, and its
// constructor. The file's section is decoded over the defaults (package plugin). The constructor receives the options
// and an Env, and checks what a tag cannot express. Output is the kind of outputs of all the task's heads (package
// outputs); it determines which heads fit, how targets are numbered, and how predictions are written. A Describer says
// what the task can do beyond that.
//
// Survey reads all records of a file before Example makes the first example of it, the training file first. When all
// files are read, Warnings are about the records, and those of CheckTargets about the targets of each split. Texts to
// predict do not pass through Example, which therefore leaves texts as they are.
//
// Evaluate compares the predictions of a head with its targets in each evaluation. A task learns nothing and has no
// parameters; only its options are saved. The result of a survey is computed anew when a run is opened: Survey receives
// one record with all labels of each head in place of the training file.
//
// Package parttest checks that a task keeps these rules, given its name and some records.
package tasks
