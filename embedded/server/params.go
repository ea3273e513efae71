package server

import (
	"slices"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/embedded/failpoint"
)

// parameters are what getParameter tells and setParameter changes.
type parameters struct {
	mu     sync.Mutex
	values map[string]any
	names  []string // sorted
}

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
		"transactionLifetimeLimitSeconds":              int32(60),
		// Suites that need the fail point require it.
		failpoint.FailCommandSequence: true,
	}}
	if version.Wire >= wire49 {
		p.values["requireApiVersion"] = false
		p.values["acceptApiVersion2"] = false
	}
	if c.Kind != Sharded {
		p.values["featureCompatibilityVersion"] = bson.D{{Key: "version", Value: version.Name}}
		p.values["ttlMonitorEnabled"] = true
		p.values["notablescan"] = false
	}
	for name := range p.values {
		p.names = append(p.names, name)
	}
	slices.Sort(p.names)
	return p
}

func (p *parameters) isTrue(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch v := p.values[name].(type) {
	case bool:
		return v
	case bson.RawValue:
		b, _ := v.BooleanOK()
		return b
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
	if len(reply) > 0 {
		return reply, nil
	}
	// Older servers forgot the code.
	failure := refuse(0, "no option found to get")
	if x.view.Wire >= wire50 {
		failure.Code = codeInvalidOptions
	}
	return nil, failure
}

func (x *exchange) setParameter() (bson.D, error) {
	p := x.conn.server.params
	p.mu.Lock()
	defer p.mu.Unlock()
	elements, err := x.request.Body.Elements()
	if err != nil {
		return nil, err
	}
	var reply bson.D
	for _, e := range elements[1:] {
		name := e.Key()
		if generic[name] {
			continue
		}
		old, ok := p.values[name]
		if !ok {
			return nil, refuse(codeInvalidOptions, "attempted to set unrecognized parameter [%s], use help:true to see options ", name)
		}
		if reply == nil {
			reply = bson.D{{Key: "was", Value: old}}
		}
		value := e.Value()
		value.Value = slices.Clone(value.Value)
		p.values[name] = value
	}
	if reply == nil {
		return nil, refuse(codeInvalidOptions, "no option found to set, use help:true to see options ")
	}
	return reply, nil
}
