// Package enginekit is shared by engines built on packages of the Go driver. It has
// tests and their entities by name, tables of operations, arguments, connection
// strings, the event log and sockets of a client, and conversions to the types of
// package result. It contains no rules of a driver: engines that are compared with
// each other must not share them.
package enginekit

import (
	"context"

	"github.com/unified-test-runner/utr/engine"
)

// Engine implements engine.Engine; an engine embeds it. The fields must be set
// before any method is called. Methods may be called concurrently.
type Engine struct {
	// Description is what Describe returns.
	Description engine.Description
	// NewTest returns a test without entities.
	NewTest func() engine.Test
}

// Describe implements engine.Engine.
func (e *Engine) Describe(context.Context) (engine.Description, error) { return e.Description, nil }

// Begin implements engine.Engine.
func (e *Engine) Begin(context.Context) (engine.Test, error) { return e.NewTest(), nil }

// Close does nothing: the engine has no resources except those of its tests.
func (e *Engine) Close() error { return nil }
