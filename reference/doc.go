// Package reference is the reference engine: a driver whose decisions are the
// retry specifications in executable form.
//
// It picks servers itself (reference/selection), builds and sends each attempt
// itself, and asks reference/retry what to do next. Monitoring, connection
// pools and handshakes come from the Go driver's public experimental packages,
// so that its CMAP and SDAM events are those of a real driver.
package reference
