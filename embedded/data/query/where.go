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

// where is $where: a function that is called for each document.
type where struct {
	f     *script.Function
	scope bson.D
}

// where parses the source of a function, or of what one would return.
func (p parser) where(v any, top bool) (node, error) {
	switch s := p.opts.Scripts; {
	case s == nil:
		return nil, command.Errorf(command.CodeBadValue, "$where is not allowed in this context")
	case s.Disabled:
		return nil, command.Errorf(command.CodeBadValue, "no globalScriptEngine in $where parsing")
	case !top:
		return nil, command.Errorf(command.CodeBadValue, "$where can only be applied to the top-level document")
	}
	var source string
	var n where
	switch x := v.(type) {
	case string:
		source = x
	case bson.JavaScript:
		source = string(x)
	case bson.CodeWithScope:
		source = string(x.Code)
		n.scope, _ = x.Scope.(bson.D)
	default:
		return nil, command.Errorf(command.CodeBadValue, "$where got bad type")
	}
	var err error
	if n.f, err = script.ParseLoose(source); err != nil {
		return nil, err
	}
	return n, nil
}

func (n where) match(v any, c *run) bool {
	if c.err != nil {
		return false
	}
	globals := map[string]any{"obj": v}
	for _, e := range n.scope {
		globals[e.Key] = e.Value
	}
	globals["sleep"] = script.Builtin(func(args []any) (any, error) {
		ms := math.NaN()
		if len(args) == 1 {
			ms, _ = args[0].(float64)
		}
		if !(ms > 0) {
			return nil, nil
		}
		ms = min(ms, float64(longestSleep/time.Millisecond))
		return nil, c.opts.Scripts.Sleep(time.Duration(ms * float64(time.Millisecond)))
	})
	r, err := n.f.Call(c.opts.Scripts.Stopped, v, globals)
	c.err = err
	return c.err == nil && truthy(r)
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
