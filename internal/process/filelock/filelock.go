// Package filelock locks files between processes. A lock lasts until all processes that inherited the file close it.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// errHeld is the error of Lock if another process holds the lock.
var errHeld = errors.New("another utr is using it")

const poll = 100 * time.Millisecond

// Wait locks a file as soon as no other process holds the lock. It calls note if it must wait. If ctx ends, Wait
// returns its cause. On systems without flock, the file is nil.
func Wait(ctx context.Context, name string, note func()) (*os.File, error) {
	for waits := false; ; waits = true {
		lock, err := Lock(name)
		if !errors.Is(err, errHeld) {
			return lock, err
		}
		if !waits {
			note()
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(poll):
		}
	}
}
