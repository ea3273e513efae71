package data

import (
	"testing"
	"time"
)

// TestPanicKeepsNoLock holds that a command that fails inside leaves the data
// to the others: the server answers with an error and goes on.
func TestPanicKeepsNoLock(t *testing.T) {
	fails := func() { panic("on purpose") }
	for name, run := range map[string]func(*Data){
		"reading":   func(d *Data) { d.reading(fails) },
		"changing":  func(d *Data) { d.changing(fails) },
		"attempt":   func(d *Data) { _ = (&scope{d: d}).locked(func() error { fails(); return nil }) },
		"kill some": func(d *Data) { d.killCursorsOf(func(string) bool { fails(); return false }) },
	} {
		t.Run(name, func(t *testing.T) {
			d := New(Options{ReplicaSet: true})
			d.cursors[1] = &cursor{session: "s", killed: make(chan struct{})}
			func() {
				defer func() {
					if recover() == nil {
						t.Error("nothing failed")
					}
				}()
				run(d)
			}()
			free := make(chan struct{})
			go func() {
				d.changing(func() {})
				d.CursorCount("")
				close(free)
			}()
			select {
			case <-free:
			case <-time.After(10 * time.Second):
				t.Fatal("waited 10s for a lock")
			}
		})
	}
}
