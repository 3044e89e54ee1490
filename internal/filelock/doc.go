// Package filelock locks files against other processes. The lock is the system's: it ends with the process that holds
// it, however that ends.
package filelock
