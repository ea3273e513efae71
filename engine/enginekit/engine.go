// Package enginekit has what engines built on packages of the Go driver share: the
// tests that are open and their entities by name, tables of operations, arguments
// and connection strings, the log of a client, events of the driver's monitors and
// values in the terms of package result, and the sockets of a client. What a driver
// decides is not here: engines that are compared with each other share no rule.
package enginekit

import (
	"context"

	"github.com/unified-test-runner/utr/engine"
)

// Engine is what engines have in common: an engine embeds it. Methods may be
// called concurrently; fields are set before.
type Engine struct {
	// Description is what Describe returns.
	Description engine.Description
	// NewTest makes an empty set of entities.
	NewTest func() engine.Test
}

// Describe returns the description.
func (e *Engine) Describe(context.Context) (engine.Description, error) { return e.Description, nil }

// Begin opens an empty set of entities.
func (e *Engine) Begin(context.Context) (engine.Test, error) { return e.NewTest(), nil }

// Close does nothing: all belongs to tests.
func (e *Engine) Close() error { return nil }
