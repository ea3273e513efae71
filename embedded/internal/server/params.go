package server

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/internal/failpoint"
	"github.com/unified-test-runner/utr/embedded/internal/fault"
	"github.com/unified-test-runner/utr/embedded/internal/value"
)

// parameter is a server parameter. The type of its value never changes.
type parameter struct {
	value   any
	minimum float64 // of a number
	since   int     // first wire version
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
func parameterTable(p Profile) map[string]*parameter {
	return map[string]*parameter{
		"authenticationMechanisms":    {value: []string{"MONGODB-X509", "SCRAM-SHA-1", "SCRAM-SHA-256"}},
		"logLevel":                    {value: int32(0)},
		"notablescan":                 {value: false},
		"cursorTimeoutMillis":         {value: int64(600000)},
		testCommands:                  {value: true},
		baseBackoff:                   {value: int64(0), since: limiterLabels.since},
		acceptAPI2:                    {value: false, since: stableAPI.since},
		requireAPI:                    {value: false, since: stableAPI.since},
		failpoint.FailCommandSequence: {value: true}, // suites that need the fail point require it
		connectionBurst:               {value: math.MaxFloat64, minimum: math.SmallestNonzeroFloat64, since: overload.since},
		connectionLimit:               {value: false, since: overload.since},
		connectionQueue:               {value: int32(0), since: overload.since},
		connectionRate:                {value: int32(math.MaxInt32), minimum: 1, since: overload.since},
		requestAppExemptions:          {value: marshal(bson.D{{Key: "appNames", Value: bson.A{}}}), since: overload.since},
		requestBurst:                  {value: math.MaxFloat64, minimum: math.SmallestNonzeroFloat64, since: overload.since},
		requestLimit:                  {value: p.has(limiterLabels), since: overload.since},
		requestQueue:                  {value: int64(0), since: limiterLabels.since},
		requestRate:                   {value: int32(math.MaxInt32), minimum: 1, since: overload.since},
		requestRetries:                {value: true, since: limiterLabels.since},
		transactionLifetime:           {value: int32(60), minimum: 1},
	}
}

type parameters struct {
	mu    sync.Mutex
	table map[string]*parameter // the values are guarded by mu, the names never change
}

// newParameters returns the parameters of a version, changed by startup options.
func newParameters(profile Profile, start Process) (*parameters, error) {
	p := &parameters{table: parameterTable(profile)}
	maps.DeleteFunc(p.table, func(_ string, row *parameter) bool { return row.since > profile.Wire })
	for _, e := range start.Parameters {
		if start.AnyParameter && p.value(e.Key) == nil {
			p.table[e.Key] = &parameter{value: e.Value}
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

func (p *parameters) set(name string, value bson.RawValue) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	row := p.table[name]
	if row == nil || row.value == nil {
		return nil, fault.Errorf(fault.InvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", name)
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
		return nil, fault.Errorf(fault.BadValue, "Invalid value for parameter %s: %s", name, v)
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

func (x *exchange) getParameter() (bson.D, error) {
	p := x.conn.server.params
	first, _ := x.request.Body.Index(0).Value().StringValueOK()
	requested := func(name string) bool {
		_, err := x.request.Body.LookupErr(name)
		return first == "*" || err == nil
	}
	reply := bson.D{}
	for _, name := range slices.Sorted(maps.Keys(p.table)) {
		reply = value.AddIf(reply, requested(name), name, p.value(name))
	}
	for _, name := range failpoint.Names() {
		if shown := "failpoint." + name; requested(shown) {
			state := x.conn.server.registry(name).State(name)
			if !x.has(timesEntered) {
				state = state[:2]
			}
			reply = append(reply, bson.E{Key: shown, Value: state})
		}
	}
	if len(reply) > 0 {
		return reply, nil
	}
	// Older servers return no code.
	failure := fault.Errorf(0, "no option found to get")
	if x.has(codeNoOption) {
		failure.Code = fault.InvalidOptions
	}
	return nil, failure
}

// notParameters are fields that every command accepts.
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
		return nil, fault.Errorf(fault.InvalidOptions, "no option found to set, use help:true to see options ")
	}
	return reply, nil
}
