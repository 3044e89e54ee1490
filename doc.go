// Package jenga is a framework that trains one shared transformer encoder on many language tasks at once. See README.md
// for a first experiment, and experiments/config, dataset, model, run and predict for the packages that run one.
package jenga
