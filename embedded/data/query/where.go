package query

import (
	"math"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/data/script"
)

// Scripts is the environment of $where functions.
type Scripts struct {
	// Disabled means that the server has no script engine.
	Disabled bool
	// Sleep implements the function sleep. Its error ends the match.
	Sleep func(time.Duration) error
	// Stopped returns an error if the operation is over; the error ends the match. It is called from another
	// goroutine while a function runs.
	Stopped func() error
}

// longestSleep limits one call of sleep.
const longestSleep = 24 * time.Hour

// where parses $where: an expression or a function that is evaluated for each document.
func (p *parser) where(v any) node {
	s := p.opts.Scripts
	switch {
	case s == nil:
		p.Fail(command.CodeBadValue, "$where is not allowed in this context")
		return nil
	case s.Disabled:
		p.Fail(command.CodeBadValue, "no globalScriptEngine in $where parsing")
	}
	source, ok := v.(string)
	if code, isCode := v.(bson.JavaScript); isCode {
		source, ok = string(code), true
	}
	p.Refuse(!ok, command.CodeBadValue, "$where got bad type")
	f, err := script.ParseCondition(source)
	p.Note(err)
	p.scripted = true
	return func(doc any, c *run) bool {
		if c.err != nil {
			return false
		}
		var r any
		r, c.err = f.Call(s.Stopped, doc, map[string]script.Builtin{"sleep": s.sleep})
		return c.err == nil && r == true
	}
}

// sleep is the JavaScript function sleep(milliseconds).
func (s *Scripts) sleep(args []any) (any, error) {
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
