package run

// Version is this jenga's, as checkpoints name it.
const Version = "0.1.0"
