package server

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/command"
	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// parameter is a row of the table of server parameters. Values keep the type of the
// first one, and numbers are bounded.
type parameter struct {
	name    string
	initial any
	least   float64 // of numbers
	since   int     // the wire version that brought it
}

// The names of the parameters that code asks for.
const (
	testCommands         = "enableTestCommands"
	requireAPI           = "requireApiVersion"
	acceptAPI2           = "acceptApiVersion2"
	transactionLifetime  = "transactionLifetimeLimitSeconds" // after which an open transaction is aborted
	connectionLimit      = "ingressConnectionEstablishmentRateLimiterEnabled"
	connectionRate       = "ingressConnectionEstablishmentRatePerSec"
	connectionBurst      = "ingressConnectionEstablishmentBurstCapacitySecs"
	connectionQueue      = "ingressConnectionEstablishmentMaxQueueDepth"
	requestLimit         = "ingressRequestRateLimiterEnabled"
	requestRate          = "ingressRequestAdmissionRatePerSec"
	requestBurst         = "ingressRequestAdmissionBurstCapacitySecs"
	requestQueue         = "ingressRequestAdmissionMaxQueueDepth"
	requestAppExemptions = "ingressRequestRateLimiterApplicationExemptions"
	requestRetries       = "ingressRequestRateLimiterAllowRetries"
	baseBackoff          = "externalClientBaseBackoffMS"
)

// parameterTable are the parameters that servers have. Those of the rate limiters, and
// of the errors that overloaded servers give, are those of Client Backpressure, "Terms".
func parameterTable(p Profile) []parameter {
	return []parameter{
		{name: "authenticationMechanisms", initial: []string{"MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"}},
		{name: "cursorTimeoutMillis", initial: int64(600000)},
		{name: testCommands, initial: true},
		{name: baseBackoff, initial: int64(0), since: limiterLabels.since},
		{name: acceptAPI2, initial: false, since: stableAPI.since},
		{name: requireAPI, initial: false, since: stableAPI.since},
		{name: failpoint.FailCommandSequence, initial: true}, // suites that need the fail point require it
		{name: connectionBurst, initial: math.MaxFloat64, least: math.SmallestNonzeroFloat64, since: overload.since},
		{name: connectionLimit, initial: false, since: overload.since},
		{name: connectionQueue, initial: int32(0), since: overload.since},
		{name: connectionRate, initial: int32(math.MaxInt32), least: 1, since: overload.since},
		{name: requestAppExemptions, initial: bson.D{{Key: "appNames", Value: bson.A{}}}, since: overload.since},
		{name: requestBurst, initial: math.MaxFloat64, least: math.SmallestNonzeroFloat64, since: overload.since},
		{name: requestLimit, initial: p.has(limiterLabels), since: overload.since},
		{name: requestQueue, initial: int64(0), since: limiterLabels.since},
		{name: requestRate, initial: int32(math.MaxInt32), least: 1, since: overload.since},
		{name: requestRetries, initial: true, since: limiterLabels.since},
		{name: transactionLifetime, initial: int32(60), least: 1},
	}
}

// parameters are what getParameter returns and setParameter changes.
type parameters struct {
	mu     sync.Mutex
	table  []parameter
	values map[string]any
}

// newParameters are those of a version, changed as a server was started.
func newParameters(profile Profile, start Process) (*parameters, error) {
	p := &parameters{table: parameterTable(profile), values: map[string]any{}}
	p.table = slices.DeleteFunc(p.table, func(row parameter) bool { return row.since > profile.Wire })
	for _, row := range p.table {
		p.values[row.name] = row.initial
	}
	for _, e := range start.Parameters {
		if _, known := p.values[e.Key]; !known && start.AnyParameter {
			p.table = append(p.table, parameter{name: e.Key, initial: e.Value})
			p.values[e.Key] = e.Value
			continue
		}
		kind, data, err := bson.MarshalValue(e.Value)
		if err == nil {
			_, err = p.set(e.Key, bson.RawValue{Type: kind, Value: data})
		}
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrParameter, e.Key, err)
		}
	}
	return p, nil
}

// set changes a parameter and gives its old value.
func (p *parameters) set(name string, value bson.RawValue) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.table, func(row parameter) bool { return row.name == name })
	if i < 0 {
		return nil, command.Errorf(command.CodeInvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", name)
	}
	typed, err := p.table[i].typed(value)
	if err != nil {
		return nil, err
	}
	old := p.values[name]
	p.values[name] = typed
	return old, nil
}

// typed gives the value the type that the parameter has: a switch that is set to 1 is true.
func (row parameter) typed(v bson.RawValue) (any, error) {
	number, isNumber := v.AsFloat64OK()
	if _, isSwitch := row.initial.(bool); isNumber && !isSwitch && number < row.least {
		return nil, command.Errorf(command.CodeBadValue,
			"Invalid value for parameter %s: %v is not greater than or equal to %v", row.name, number, row.least)
	}
	switch row.initial.(type) {
	case bool:
		if b, ok := v.BooleanOK(); ok || isNumber {
			return b || isNumber && number != 0, nil
		}
	case bson.D:
		if doc, ok := v.DocumentOK(); ok {
			return slices.Clone(doc), nil
		}
	case int32:
		if isNumber && number <= math.MaxInt32 {
			return int32(number), nil
		}
	case int64:
		if isNumber && number < 1<<62 {
			return int64(number), nil
		}
	case float64:
		if isNumber {
			return number, nil
		}
	}
	return nil, command.Errorf(command.CodeBadValue, "Invalid value for parameter %s: %s", row.name, v)
}

// value is that of a parameter, nil if the version lacks it.
func (p *parameters) value(name string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.values[name]
}

// number is the value of a parameter that is one, 0 if the version lacks it.
func (p *parameters) number(name string) float64 {
	switch v := p.value(name).(type) {
	case int32:
		return float64(v)
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return 0
}

func (p *parameters) isTrue(name string) bool {
	on, _ := p.value(name).(bool)
	return on
}

func (x *exchange) getParameter() (bson.D, error) {
	p := x.conn.server.params
	first := x.request.Body.Index(0).Value()
	text, _ := first.StringValueOK()
	options, _ := first.DocumentOK()
	all, _ := options.Lookup("allParameters").BooleanOK()
	all = all || text == "*"
	asked := func(name string) bool {
		_, err := x.request.Body.LookupErr(name)
		return all || err == nil
	}
	reply := bson.D{}
	for _, row := range p.table {
		if asked(row.name) {
			reply = append(reply, bson.E{Key: row.name, Value: p.value(row.name)})
		}
	}
	for _, name := range failpoint.Names() {
		if shown := "failpoint." + name; asked(shown) {
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
	state := x.conn.server.registry(name).State(name)
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
