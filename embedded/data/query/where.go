package query

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Scripts connects the functions of $where to their server.
type Scripts struct {
	// Disabled servers have no script engine.
	Disabled bool
	// Sleep is the function of that name. Its error ends the match.
	Sleep func(time.Duration) error
	// Stopped reports why the operation is over, nil if it is not. It is called from another goroutine
	// while a function runs; its error ends the match.
	Stopped func() error
}

// longestSleep bounds one call of sleep.
const longestSleep = 24 * time.Hour

// where is $where: a function that is called for each document. It is given by its source, or that of
// what one would return.
func (p *parser) where(v any) node {
	s := p.opts.Scripts
	switch {
	case s == nil:
		p.Fail(command.CodeBadValue, "$where is not allowed in this context")
		return nil
	case s.Disabled:
		p.Fail(command.CodeBadValue, "no globalScriptEngine in $where parsing")
	}
	var source string
	var scope bson.D
	switch x := v.(type) {
	case string:
		source = x
	case bson.JavaScript:
		source = string(x)
	case bson.CodeWithScope:
		source = string(x.Code)
		scope, _ = x.Scope.(bson.D)
	default:
		p.Fail(command.CodeBadValue, "$where got bad type")
	}
	f, err := script.ParseLoose(source)
	p.Note(err)
	return func(doc any, c *run) bool {
		if c.err != nil {
			return false
		}
		globals := map[string]any{"obj": doc, "sleep": s.sleep()}
		for _, e := range scope {
			globals[e.Key] = e.Value
		}
		r, err := f.Call(s.Stopped, doc, globals)
		c.err = err
		return err == nil && truthy(r)
	}
}

// sleep is the function of that name.
func (s *Scripts) sleep() script.Builtin {
	return func(args []any) (any, error) {
		ms := math.NaN()
		if len(args) == 1 {
			ms, _ = args[0].(float64)
		}
		if !(ms > 0) {
			return nil, nil
		}
		ms = min(ms, float64(longestSleep/time.Millisecond))
		return nil, s.Sleep(time.Duration(ms * float64(time.Millisecond)))
	}
}

// truthy is what JavaScript takes for true.
func truthy(v any) bool {
	switch x := v.(type) {
	case string:
		return x != ""
	case float64:
		return x != 0 && !math.IsNaN(x)
	}
	return value.Truthy(v)
}
