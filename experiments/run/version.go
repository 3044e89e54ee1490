package run

// Version is the version of jenga, as written in checkpoints.
const Version = "0.1.0"
