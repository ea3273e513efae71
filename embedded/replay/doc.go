// Package replay holds no code: its tests send what was once sent to a real
// server to an embedded deployment, and hold the answers against the real ones.
//
//	go test ./embedded/replay -run 'TestReplay/replica-set/reads_and_cursors'
//
// A recording is always replayed whole, for each scenario builds on what the ones
// before it left; -run chooses what is reported. The differences that are meant
// to be stand in the tables of differences_*_test.go, each with its reason; one
// that is gone fails the test.
package replay
