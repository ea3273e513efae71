package server

import (
	"math"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// parameters are what getParameter returns and setParameter changes.
type parameters struct {
	mu       sync.Mutex
	values   map[string]any
	names    []string // sorted
	tunables []tunable
}

// tunable is a parameter whose value does something here: it keeps the type
// that it has at first, and numbers are bounded.
type tunable struct {
	name    string
	initial any
	least   float64 // of numbers
	wire    int     // the version that brought it
}

// transactionLifetime is after how many seconds an open transaction is aborted.
const transactionLifetime = "transactionLifetimeLimitSeconds"

func newParameters(c *Cluster, s *Server) *parameters {
	version := c.Profile
	p := &parameters{values: map[string]any{
		"authenticationMechanisms":                     []string{"MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"},
		"cursorTimeoutMillis":                          int64(600000),
		"enableTestCommands":                           true,
		"internalQueryMaxBlockingSortMemoryUsageBytes": int32(104857600),
		"localLogicalSessionTimeoutMinutes":            int32(logicalSessionTimeout),
		"logLevel":                                     int32(0),
		"logicalSessionRefreshMillis":                  int32(300000),
		"maxTransactionLockRequestTimeoutMillis":       int32(5),
		"quiet":                                        false,
		"saslHostName":                                 s.address,
		"scramIterationCount":                          int32(10000),
		"scramSHA256IterationCount":                    int32(15000),
		// Suites that need the fail point require it.
		failpoint.FailCommandSequence: true,
	}}
	if version.has(stableAPI) {
		p.values["requireApiVersion"] = false
		p.values["acceptApiVersion2"] = false
	}
	if c.Kind != Sharded {
		p.values["featureCompatibilityVersion"] = bson.D{{Key: "version", Value: version.Name}}
		p.values["ttlMonitorEnabled"] = true
		p.values["notablescan"] = false
	}
	p.tunables = append(ingressParameters(version), tunable{name: transactionLifetime, initial: int32(60), least: 1})
	for _, t := range p.tunables {
		p.values[t.name] = t.initial
	}
	for name := range p.values {
		p.names = append(p.names, name)
	}
	slices.Sort(p.names)
	return p
}

// admit adds those parameters that the version does not have.
func (p *parameters) admit(list bson.D) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range list {
		if _, known := p.values[e.Key]; !known {
			p.names = append(p.names, e.Key)
			p.values[e.Key] = e.Value
		}
	}
	slices.Sort(p.names)
}

// set changes a parameter and gives its old value.
func (p *parameters) set(name string, value bson.RawValue) (old any, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	old, ok := p.values[name]
	if !ok {
		return nil, command.Errorf(command.CodeInvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", name)
	}
	value.Value = slices.Clone(value.Value)
	kept := tunable{name: name, initial: old}
	if i := slices.IndexFunc(p.tunables, func(t tunable) bool { return t.name == name }); i >= 0 {
		kept = p.tunables[i]
	} else if _, isSwitch := old.(bool); !isSwitch {
		p.values[name] = value
		return old, nil
	}
	typed, err := kept.typed(value) // a switch that is set to 1 is returned as true
	if err != nil {
		return nil, err
	}
	p.values[name] = typed
	return old, nil
}

// typed gives the value the type that the parameter has.
func (t tunable) typed(v bson.RawValue) (any, error) {
	number, isNumber := v.AsFloat64OK()
	switch t.initial.(type) {
	case bool:
		if b, ok := v.BooleanOK(); ok || isNumber {
			return b || isNumber && number != 0, nil
		}
	case bson.D:
		if doc, ok := v.DocumentOK(); ok {
			return doc, nil
		}
	default:
		if !isNumber {
			break
		}
		if number < t.least {
			return nil, command.Errorf(command.CodeBadValue,
				"Invalid value for parameter %s: %v is not greater than or equal to %v", t.name, number, t.least)
		}
		switch t.initial.(type) {
		case int32:
			if number <= math.MaxInt32 {
				return int32(number), nil
			}
		case int64:
			if number < 1<<62 {
				return int64(number), nil
			}
		default:
			return number, nil
		}
	}
	return nil, command.Errorf(command.CodeBadValue, "Invalid value for parameter %s: %s", t.name, v)
}

// has reports whether the version has a parameter.
func (p *parameters) has(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.values[name]
	return ok
}

// number is the value of a parameter that is one, 0 if the version lacks it.
func (p *parameters) number(name string) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch v := p.values[name].(type) {
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

// document is the value of a parameter that is one, empty if it was not set.
func (p *parameters) document(name string) bson.Raw {
	p.mu.Lock()
	defer p.mu.Unlock()
	doc, _ := p.values[name].(bson.Raw)
	return doc
}

func (p *parameters) isTrue(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch v := p.values[name].(type) {
	case bool:
		return v
	case bson.RawValue:
		return truth(v, false)
	}
	return false
}

func (x *exchange) getParameter() (bson.D, error) {
	p := x.conn.server.params
	p.mu.Lock()
	defer p.mu.Unlock()
	first := x.request.Body.Index(0).Value()
	all, _ := first.StringValueOK()
	if options, ok := first.DocumentOK(); ok {
		if everything, _ := options.Lookup("allParameters").BooleanOK(); everything {
			all = "*"
		}
	}
	reply := bson.D{}
	for _, name := range p.names {
		_, err := x.request.Body.LookupErr(name)
		if all == "*" || err == nil {
			reply = append(reply, bson.E{Key: name, Value: p.values[name]})
		}
	}
	for _, name := range failpoint.Names() {
		shown := "failpoint." + name
		if _, err := x.request.Body.LookupErr(shown); all == "*" || err == nil {
			reply = append(reply, bson.E{Key: shown, Value: x.failPoint(name)})
		}
	}
	if len(reply) > 0 {
		return reply, nil
	}
	// Older servers forgot the code.
	failure := command.Errorf(0, "no option found to get")
	if x.has(codeNoOption) {
		failure.Code = command.CodeInvalidOptions
	}
	return nil, failure
}

// failPoint is a fail point as a server with test commands returns it among its
// parameters.
func (x *exchange) failPoint(name string) bson.D {
	state := x.conn.server.failPoints.State(name)
	if name == failpoint.FailCommandSequence {
		state = x.conn.server.cluster.sequence.State()
	}
	out := bson.D{{Key: "mode", Value: state.Mode}, {Key: "data", Value: state.Data}}
	if x.has(timesEntered) {
		out = append(out, bson.E{Key: "timesEntered", Value: state.Entered})
	}
	return out
}

// notParameters are arguments that every command takes.
var notParameters = []string{"lsid", "txnNumber", "autocommit", "startTransaction", "readConcern", "writeConcern", "maxTimeMS", "comment",
	"apiVersion", "apiStrict", "apiDeprecationErrors"}

func (x *exchange) setParameter() (bson.D, error) {
	elements, err := x.request.Body.Elements()
	if err != nil {
		return nil, err
	}
	var reply bson.D
	defer x.conn.server.ingress.reload()
	for _, e := range elements[1:] {
		name := e.Key()
		if strings.HasPrefix(name, "$") || slices.Contains(notParameters, name) {
			continue
		}
		old, err := x.conn.server.params.set(name, e.Value())
		if err != nil {
			return nil, err
		}
		if reply == nil {
			reply = bson.D{{Key: "was", Value: old}}
		}
	}
	if reply == nil {
		return nil, command.Errorf(command.CodeInvalidOptions, "no option found to set, use help:true to see options ")
	}
	return reply, nil
}
