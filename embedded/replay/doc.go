// Package replay does not hold code: its tests send what was once sent to a real
// server to embedded ones, and compare the answers with the real ones.
//
//	go test ./embedded/replay -run 'TestReplay/replica-set/reads_and_cursors'
//
// A recording is always replayed whole, since each scenario builds on what the ones
// before it left; -run chooses what is reported. The differences that are meant
// to be stand in a table, each with its reason; one that is gone fails the test.
package replay
