package server

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/commands"
	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
	"github.com/unified-test-runner/utr/embedded/internal/version"
)

// parameter is a server parameter. The type of its value never changes.
type parameter struct {
	value   any
	minimum float64 // of a number
	since   string  // first release; "" for all
	mongod  bool    // clients of a mongos do not see it
	startup bool    // cannot be changed at runtime
}

// Names of parameters.
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

// parameterTable returns the parameters of all versions. For rate limiters and overload errors see Client Backpressure,
// "Terms".
func parameterTable(v *version.Version) map[string]*parameter {
	return map[string]*parameter{
		"authenticationMechanisms":    {startup: true, value: []string{"MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"}},
		"enableLocalhostAuthBypass":   {value: true, startup: true},
		"featureCompatibilityVersion": {startup: true, value: value.Encode(value.Doc("version", v.Name)), mongod: true},

		"internalQueryMaxBlockingSortMemoryUsageBytes": {value: int32(100 << 20), minimum: 1},
		"localLogicalSessionTimeoutMinutes":            {value: int32(logicalSessionTimeout), startup: true},
		"logComponentVerbosity":                        {value: value.Encode(verbosity(components))},
		"maxTransactionLockRequestTimeoutMillis":       {value: int32(5), minimum: -1, mongod: true},
		"logLevel":                                     {value: int32(0)},
		"notablescan":                                  {value: false},
		"cursorTimeoutMillis":                          {value: int64(600000)},
		testCommands:                                   {value: true, startup: true},
		baseBackoff:                                    {value: int64(0), since: "9.0"},
		acceptAPI2:                                     {value: false, since: "4.9"},
		requireAPI:                                     {value: false, since: "4.9"},
		transactionLifetime:                            {value: int32(60), minimum: 1, mongod: true},
		failpoint.FailCommandSequence:                  {value: true}, // suites that need the fail point require it

		connectionBurst:      {value: math.MaxFloat64, minimum: math.SmallestNonzeroFloat64, since: "7.0"},
		connectionLimit:      {value: false, since: "7.0"},
		connectionQueue:      {value: int32(0), since: "7.0"},
		connectionRate:       {value: int32(math.MaxInt32), minimum: 1, since: "7.0"},
		requestAppExemptions: {value: value.Encode(value.Doc("appNames", bson.A{})), since: "8.2"},
		requestBurst:         {value: math.MaxFloat64, minimum: math.SmallestNonzeroFloat64, since: "8.2"},
		requestLimit:         {value: v.Has.LimiterLabels, since: "8.2"},
		requestQueue:         {value: int64(0), since: "9.0"},
		requestRate:          {value: int32(math.MaxInt32), minimum: 1, since: "8.2"},
		requestRetries:       {value: true, since: "9.0"},
	}
}

// components are the components of the log, for logComponentVerbosity, with their parts.
var components = value.Doc("accessControl", nil, "command", nil, "control", nil, "executor", nil, "geo", nil,
	"index", nil, "network", value.Doc("asio", nil, "bridge", nil, "connectionPool", nil), "query", nil,
	"replication", value.Doc("election", nil, "heartbeats", nil, "initialSync", nil, "rollback", nil),
	"sharding", value.Doc("rangeDeleter", nil, "shardingCatalogRefresh", nil, "migration", nil, "reshard", nil,
		"migrationPerf", nil), "storage", value.Doc("recovery", nil, "journal", nil), "write", nil, "ftdc", nil,
	"tracking", nil, "transaction", nil, "tenantMigration", nil, "test", nil)

// verbosity returns the default verbosity of components: 0 for all, and for each -1, the same as its parent.
func verbosity(parts bson.D) bson.D {
	out := value.Doc("verbosity", int32(0))
	for _, e := range parts {
		nested, _ := e.Value.(bson.D)
		of := verbosity(nested)
		of[0].Value = int32(-1)
		out = value.Append(out, e.Key, of)
	}
	return out
}

type parameters struct {
	mu    sync.Mutex
	table map[string]*parameter // the values are guarded by mu, the names never change
}

// newParameters returns the parameters of a version, changed by startup options.
func newParameters(v *version.Version, start Process) (*parameters, error) {
	p := &parameters{table: parameterTable(v)}
	maps.DeleteFunc(p.table, func(_ string, row *parameter) bool { return !version.Range{Since: row.since}.Has(v.Wire) })
	for _, e := range start.Parameters {
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

func (p *parameters) set(name string, value bson.RawValue) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	row := p.table[name]
	if row == nil {
		return nil, fault.Errorf(fault.InvalidOptions,
			"attempted to set unrecognized parameter [%s], use help:true to see options ", name)
	}
	typed, err := row.typed(name, value)
	if err != nil {
		return nil, err
	}
	old := row.value
	row.value = typed
	return old, nil
}

// typed converts a value to the type of the parameter. A number for a boolean is true unless 0.
func (row *parameter) typed(name string, v bson.RawValue) (any, error) {
	number, isNumber := v.AsFloat64OK()
	_, isSwitch := row.value.(bool)
	switch {
	case isNumber && isSwitch:
		return number != 0, nil
	case isNumber && !(number >= row.minimum): // NaN is not
		return nil, fault.Errorf(fault.BadValue,
			"Invalid value for parameter %s: %v is not greater than or equal to %v", name, number, row.minimum)
	}
	typed := reflect.New(reflect.TypeOf(row.value))
	if err := v.Unmarshal(typed.Interface()); err != nil {
		return nil, fault.Errorf(fault.BadValue, "Invalid value for %s: %s: %s", name, name, shown(v))
	}
	return typed.Elem().Interface(), nil
}

// value returns the value of a parameter, nil if the version does not have it.
func (p *parameters) value(name string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	if row := p.table[name]; row != nil {
		return row.value
	}
	return nil
}

// number returns the value of a numeric parameter, 0 if the version does not have it.
func (p *parameters) number(name string) float64 { return value.Float(p.value(name)) }

func (p *parameters) isTrue(name string) bool {
	on, _ := p.value(name).(bool)
	return on
}

// Parameters returns the parameters of a mongod of a version that starts with the options.
func Parameters(v *version.Version, start Process) (bson.Raw, error) {
	all, err := newParameters(v, start)
	if err != nil {
		return nil, err
	}
	return value.Encode(all.selected(func(string) bool { return true })), nil
}

// selected returns the parameters whose names are selected, in order.
func (p *parameters) selected(by func(name string) bool) bson.D {
	out := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(p.table)) {
		out = value.AddIf(out, by(name), name, p.value(name))
	}
	return out
}

func (x *exchange) getParameter() (bson.D, error) {
	requested := func(name string) bool { return x.firstText() == "*" || value.Has(x.request.Body, name) }
	reply := x.server.params.selected(func(name string) bool { return requested(name) && x.sees(name) })
	for _, name := range failpoint.Names() {
		if shown := "failpoint." + name; requested(shown) {
			state := x.server.failPoints.State(name)
			if !x.view.Has.HitCounts {
				state = state[:2]
			}
			reply = value.Append(reply, shown, state)
		}
	}
	if len(reply) > 0 {
		return reply, nil
	}
	return nil, x.noOption("no option found to get")
}

// sees reports whether clients of the server see a parameter.
func (x *exchange) sees(name string) bool {
	row := x.server.params.table[name]
	return row != nil && !(row.mongod && x.view.isMongos())
}

// noOption returns an error about the name of a parameter. Older servers return no code.
func (x *exchange) noOption(format string, args ...any) error {
	failure := fault.Errorf(0, format, args...)
	if x.view.Has.ParameterCode {
		failure.Code = fault.InvalidOptions
	}
	return failure
}

func (x *exchange) setParameter() (bson.D, error) {
	elements, _ := x.request.Body.Elements() // a validated document cannot cause an error
	var reply bson.D
	defer x.server.ingress.reload()
	for _, e := range elements[1:] {
		name := e.Key()
		if commands.Generic(name) {
			continue
		}
		switch p := x.server.params; {
		case !x.sees(name):
			return nil, x.noOption("attempted to set unrecognized parameter [%s], use help:true to see options ", name)
		case p.table[name].startup:
			return nil, x.noOption("not allowed to change [%s] at runtime", name)
		}
		old, err := x.server.params.set(name, e.Value())
		if err != nil {
			return nil, err
		}
		if reply == nil {
			reply = value.Doc("was", old)
		}
	}
	if reply == nil {
		return nil, x.noOption("no option found to set, use help:true to see options ")
	}
	return reply, nil
}
