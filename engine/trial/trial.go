// Package trial is for utr only. It is a small test framework, in which enginetest and the prose tests check engines.
package trial

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/result"
)

// Trial is the state of a running test. The first error ends the test. It may be used concurrently; the zero value is
// ready.
type Trial struct {
	mu   sync.Mutex
	err  error
	ends []func(context.Context) error
}

// Failed returns the first error.
func (t *Trial) Failed() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Try calls a function in a goroutine, which Check may end as in package testing, and waits for it.
func (t *Trial) Try(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	<-done
}

// Check ends the function that Try calls if its caller or a concurrent function has an error.
func (t *Trial) Check(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = err
	}
	if t.err != nil {
		runtime.Goexit()
	}
}

// Require fails the test unless a condition holds.
func (t *Trial) Require(holds bool, format string, args ...any) {
	if !holds {
		t.Check(fmt.Errorf(format, args...))
	}
}

// AtEnd registers a cleanup function.
func (t *Trial) AtEnd(f func(context.Context) error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ends = append(t.ends, f)
}

// End runs the cleanup functions, the newest first, even if the context has ended.
func (t *Trial) End(ctx context.Context, limit time.Duration) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	for _, f := range slices.Backward(t.ends) {
		err = errors.Join(err, f(ctx))
	}
	return err
}

// Open opens an entity, with options in Extended JSON.
func Open(ctx context.Context, test engine.Test, uri, kind, id, options string) error {
	doc, err := document(options)
	if err == nil {
		err = test.Open(ctx, engine.Entity{Kind: kind, ID: id, Options: doc, URI: uri})
	}
	return err
}

// Do performs an operation, with arguments in Extended JSON.
func Do(ctx context.Context, test engine.Test, object, name, arguments string) result.Outcome {
	doc, err := document(arguments)
	if err != nil {
		return result.Outcome{Broken: err}
	}
	return test.Do(ctx, engine.Operation{Object: object, Name: name, Arguments: doc})
}

// FailCommand returns the arguments that set the fail point failCommand.
func FailCommand(mode, data string) string {
	return `{"command": {"configureFailPoint": "failCommand", "mode": ` + mode + `, "data": ` + data + `}}`
}

func document(text string) (doc bson.Raw, err error) {
	err = bson.UnmarshalExtJSON([]byte(text), false, &doc)
	return doc, err
}
