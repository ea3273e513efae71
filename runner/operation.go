package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/engine"
	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/format/operations"
	"github.com/unified-test-runner/utr/format/source"
	"github.com/unified-test-runner/utr/matchers"
	"github.com/unified-test-runner/utr/result"
	"github.com/unified-test-runner/utr/specs"
)

// aggregates lists the operations that raise a BulkWriteException ("bulkWrite").
var aggregates = map[string]bool{"bulkWrite": true, "insertMany": true}

// perform executes an operation with its assertions ("Executing an Operation") and returns the engine's outcome. ctx is
// test or, in a callback, a context of the engine. Its deadline does not end the test.
func (t *testRun) perform(test, ctx context.Context, path string, op specs.Operation) (result.Outcome, *fault) {
	if f := ended(test, path, op.Position, "the operations before "+op.Name); f != nil {
		return result.Outcome{}, f
	}
	if op.Object == testRunner {
		special, known := specials()[op.Name]
		if !known {
			return result.Outcome{}, failf(path+".name", op.Position,
				"undefined operation: the test runner has no operation %q", op.Name)
		}
		if f := special.do(test, t, call{path, op, special.want}); f != nil {
			return result.Outcome{}, f
		}
		// It returns no result ("Special Test Operations").
		return t.conclude(test, path, op, operations.Operation{}, result.Outcome{})
	}
	object, err := t.entities.Get(op.Object)
	if err != nil {
		return result.Outcome{}, failf(path+".object", op.Position, "%s", err)
	}
	row, known := operations.Lookup(object.Kind, op.Name)
	if !known {
		return result.Outcome{}, failf(path+".name", op.Position, "unsupported operation: a %s has no operation %q",
			object.Kind, op.Name)
	}
	request, f := t.request(test, path, op, row)
	if f != nil {
		return result.Outcome{}, f
	}
	outcome, f := t.do(ctx, op, request)
	late := ended(test, path, op.Position, fmt.Sprintf("operation %s on %s", op.Name, op.Object))
	if f = cmp.Or(f, late, unsupported(outcome.Err)); f != nil {
		return outcome, f
	}
	t.track(path, op, request, outcome)
	if request.Callback != nil && t.hasFault() {
		return outcome, nil // recorded by the callback
	}
	if object.Kind == entities.Cursor && op.Name == "close" {
		outcome = result.Outcome{} // "close": errors are suppressed
	}
	if op.IgnoreResultAndError {
		return outcome, nil
	}
	return t.conclude(test, path, op, row, outcome)
}

// conclude compares an outcome with expectError and expectResult, and saves it.
func (t *testRun) conclude(
	test context.Context, path string, op specs.Operation, row operations.Operation, outcome result.Outcome,
) (result.Outcome, *fault) {
	f := failed(t.matcher(test).Outcome(path, matchers.Expectation{
		Position: op.Position, Error: op.ExpectError, Result: op.ExpectResult, Shape: row.Result,
		Aggregates: aggregates[op.Name],
	}, outcome))
	if f != nil {
		f.value = (op.ExpectError != nil) == (outcome.Err != nil)
		if !f.value {
			return outcome, f
		}
		t.add(f)
	}
	return outcome, t.save(path, op, row, outcome)
}

func (t *testRun) request(ctx context.Context, path string, op specs.Operation,
	row operations.Operation) (engine.Operation, *fault) {
	request := engine.Operation{Object: op.Object, Name: op.Name}
	if op.SaveResultAsEntity != "" {
		if old, err := t.entities.Get(op.SaveResultAsEntity); err == nil {
			return request, failf(path+".saveResultAsEntity", op.Position, "%s", entities.Duplicate(old))
		}
		if row.Result.Makes() != entities.SavedValue {
			request.SaveAs = op.SaveResultAsEntity
		}
	}
	arguments := op.Arguments
	if callback := arguments.Get("callback"); op.Name == "withTransaction" && callback != nil {
		request.Callback = t.callback(ctx, path+".arguments.callback", specs.DecodeOperations(callback))
		arguments = arguments.With("callback", nil)
	}
	var err error
	if request.Arguments, err = arguments.Raw(); err != nil {
		return request, failf(path+".arguments", op.Position, "%s", err)
	}
	return request, nil
}

// do performs an operation on the engine and logs it.
func (t *testRun) do(ctx context.Context, op specs.Operation, request engine.Operation) (result.Outcome, *fault) {
	started := t.run.cfg.Now()
	outcome, err := t.send(ctx, fmt.Sprintf("operation %s on %s", op.Name, op.Object), request)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.operations = append(t.operations, result.OperationLog{
		Name: op.Name, Object: op.Object, Position: op.Position, Outcome: outcome,
		Duration: t.since(started),
	})
	return outcome, broken(err)
}

func (t *testRun) send(ctx context.Context, during string, request engine.Operation) (result.Outcome, error) {
	outcome, err := guarded(ctx, during, func(ctx context.Context) (result.Outcome, error) {
		outcome := t.engine.Do(ctx, request)
		return outcome, outcome.Broken
	})
	t.waited(outcome.Decisions)
	return outcome, err
}

// query performs an operation of the runner. Its name begins with $.
func (t *testRun) query(
	ctx context.Context, path string, at source.Position, object, name string, arguments bson.Raw,
) (result.Outcome, *fault) {
	outcome, err := t.send(ctx, name+" on "+object, engine.Operation{Object: object, Name: name, Arguments: arguments})
	return outcome, cmp.Or(broken(err), unsupported(outcome.Err), ended(ctx, path, at, name+" on "+object))
}

// save stores the result as an entity ("saveResultAsEntity").
func (t *testRun) save(path string, op specs.Operation, row operations.Operation, outcome result.Outcome) *fault {
	if op.SaveResultAsEntity == "" {
		return nil
	}
	var err error
	if kind := row.Result.Makes(); kind != entities.SavedValue {
		err = t.entities.AddObject(kind, op.SaveResultAsEntity, op.Object)
	} else if err = errors.New("the operation returned nothing to save"); outcome.Value.Type != 0 {
		err = t.entities.Add(entities.Entity{ID: op.SaveResultAsEntity, Kind: entities.SavedValue,
			Value: outcome.Value.RawValue})
	}
	if err != nil {
		return failf(path+".saveResultAsEntity", op.Position, "%s", err)
	}
	return nil
}

// callback returns the callback of withTransaction. It returns the first error of
// an operation, expected or not. A failed assertion ends the test.
func (t *testRun) callback(test context.Context, path string,
	ops []specs.Operation) func(context.Context) *result.Error {
	return func(ctx context.Context) *result.Error {
		for i, op := range ops {
			outcome, f := t.perform(test, ctx, fmt.Sprintf("%s[%d]", path, i), op)
			t.add(f)
			if t.stopAtFault() {
				return &result.Error{Client: true, Kind: "assertion", Message: "an operation of the callback failed its assertions"}
			}
			if outcome.Err != nil {
				return outcome.Err
			}
		}
		return nil
	}
}

// track records transactions and fail points for the clean-up.
func (t *testRun) track(path string, op specs.Operation, request engine.Operation, outcome result.Outcome) {
	switch op.Name {
	case "startTransaction", "withTransaction":
		t.mu.Lock()
		t.transactions = true
		t.mu.Unlock()
	case "runCommand":
		if _, ok := request.Arguments.Lookup("command", "configureFailPoint").StringValueOK(); ok {
			command := request.Arguments.Lookup("command").Document()
			t.recordFailPoint(path+".arguments.command", op.Position, command, op.Object, outcome)
			t.blocksFrom(command)
		}
	}
}

func (t *testRun) matcher(ctx context.Context) *matchers.Matcher {
	return matchers.New(entityView{ctx, t})
}

type entityView struct {
	ctx context.Context // of the assertion
	t   *testRun
}

func (v entityView) BSON(name string) (bson.RawValue, error) {
	return entities.Value[bson.RawValue](&v.t.entities, name, entities.SavedValue)
}

func (v entityView) LSID(name string) (bson.RawValue, error) {
	if _, err := v.t.entities.Get(name); err != nil {
		return bson.RawValue{}, err
	}
	outcome, f := v.t.query(v.ctx, "", source.Position{}, name, engine.OpLSID, nil)
	switch {
	case f != nil:
		v.t.add(f)
		return bson.RawValue{}, errors.New("the engine does not report the session's lsid")
	case outcome.Err != nil:
		return bson.RawValue{}, outcome.Err
	case outcome.Value.Type != bson.TypeEmbeddedDocument:
		return bson.RawValue{}, errors.New("the session has no lsid")
	}
	return outcome.Value.RawValue, nil
}
