package query

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/script"
	"github.com/unified-test-runner/utr/embedded/data/value"
)

// Scripts is what the functions of $where have of their server.
type Scripts struct {
	// Disabled servers have no script engine.
	Disabled bool
	// Sleep is the function of that name. Its error ends the match.
	Sleep func(time.Duration) error
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
		return nil, command.Errorf(2, "$where is not allowed in this context")
	case s.Disabled:
		return nil, command.Errorf(2, "no globalScriptEngine in $where parsing")
	case !top:
		return nil, command.Errorf(2, "$where can only be applied to the top-level document")
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
		return nil, command.Errorf(2, "$where got bad type")
	}
	var err error
	if n.f, err = script.ParseLoose(source); err != nil {
		return nil, scriptFailed(err)
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
	var stopped error
	globals["sleep"] = script.Builtin(func(args []any) (any, error) {
		ms := math.NaN()
		if len(args) == 1 {
			ms, _ = args[0].(float64)
		}
		if ms > 0 {
			ms = min(ms, float64(longestSleep/time.Millisecond))
			stopped = c.opts.Scripts.Sleep(time.Duration(ms * float64(time.Millisecond)))
		}
		return nil, stopped
	})
	r, err := n.f.Call(v, globals)
	switch {
	case stopped != nil:
		c.err = stopped
	case err != nil:
		c.err = scriptFailed(err)
	}
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

func scriptFailed(err error) error {
	return command.Errorf(139, "%v (the embedded deployment knows a small part of JavaScript)", err)
}
