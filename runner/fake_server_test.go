package runner

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"

	"github.com/unified-test-runner/utr/deployment"
)

// fakeDeployment is a deployment in memory. It writes its commands to the transcript.
type fakeDeployment struct {
	about deployment.Description
	owned bool
	none  error                            // why it cannot be acquired
	say   func(format string, args ...any) // writes to the transcript; may be nil

	mu          sync.Mutex
	collections map[string][]bson.Raw // by namespace
	failures    map[string][]error    // by command name
	services    []bson.ObjectID       // reached by once, in order
	time        uint32
	busy        int // how often $currentOp returns a command, -1 for always
	closed      bool
	sessions    []bson.RawValue // of commands through it
	silent      func() bool     // whether no server answers; may be nil
	readOnly    func() bool     // whether no server is primary; may be nil
	windows     [][2]time.Time  // of calls of Log
}

func (d *fakeDeployment) Description() deployment.Description { return d.about }
func (d *fakeDeployment) Owned() bool                         { return d.owned }
func (d *fakeDeployment) URI() string                         { return "mongodb://all" }
func (d *fakeDeployment) DirectURI(address string) string     { return "mongodb://" + address + "/direct" }

func (d *fakeDeployment) Dead() error               { return nil }
func (d *fakeDeployment) Sessions() []bson.RawValue { return d.sessions }

func (d *fakeDeployment) SingleURI() string {
	if d.about.Topology == deployment.Sharded || d.about.Topology == deployment.LoadBalanced {
		return "mongodb://single"
	}
	return d.URI()
}

// Log returns a hundred lines.
func (d *fakeDeployment) Log(from, to time.Time) (lines []deployment.LogLine) {
	d.windows = append(d.windows, [2]time.Time{from, to})
	for i := range 100 {
		lines = append(lines, deployment.LogLine{Time: from, Server: "a:1", Text: fmt.Sprintf("line %d", i)})
	}
	return lines
}

func (d *fakeDeployment) at(_ context.Context, address, database string, command any) (bson.Raw, error) {
	return d.serve(cmp.Or(address, "primary"), database, command)
}

func (d *fakeDeployment) list(ctx context.Context, address, database string, command any) (all []bson.Raw, err error) {
	reply, err := d.at(ctx, address, database, command)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Cursor struct {
			FirstBatch []bson.Raw `bson:"firstBatch"`
		}
	}
	err = bson.Unmarshal(reply, &answer)
	return answer.Cursor.FirstBatch, err
}

func (d *fakeDeployment) once(_ context.Context, uri, database string, command any) (serviceReply, error) {
	reply, err := d.serve(uri, database, command)
	if len(d.services) == 0 {
		return serviceReply{reply, nil}, err
	}
	service := d.services[0]
	d.services = append(slices.Clone(d.services[1:]), service)
	return serviceReply{reply, &service}, err
}

func (d *fakeDeployment) ask(_ context.Context, _ string, command bson.D) (bson.Raw, error) {
	if d.silent != nil && d.silent() {
		return nil, errors.New("connection refused")
	}
	d.mu.Lock() // the runner sends hello to all members at once
	err := d.fails(command[0].Key)
	d.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if d.readOnly != nil && command[0].Key == "isMaster" {
		return mustRaw(bson.D{{Key: "ismaster", Value: !d.readOnly()}}), nil
	}
	return nil, nil
}

func (d *fakeDeployment) close() { d.closed = true }

// volatile matches values that differ between runs.
var volatile = regexp.MustCompile(`\{"\$oid":\s?"[0-9a-f]{24}"\}`)

func (d *fakeDeployment) serve(where, database string, command any) (bson.Raw, error) {
	raw := mustRaw(command)
	name := must(raw.Elements())[0].Key()
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.say != nil && name != "hello" { // sent concurrently, in any order
		d.say("%-7s %s %s", where, database, volatile.ReplaceAllString(raw.String(), "OID"))
	}
	if err := d.fails(name); err != nil {
		return nil, err
	}
	body, err := d.reply(name, database, raw)
	if err != nil {
		return nil, err
	}
	if d.about.Topology != deployment.Single {
		d.time++
		body = append(body, bson.E{Key: "$clusterTime",
			Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: d.time}}}})
	}
	return mustRaw(append(body, bson.E{Key: "ok", Value: 1})), nil
}

// fails returns the next scripted failure of a command, or nil. It requires that mu is held.
func (d *fakeDeployment) fails(name string) (err error) {
	if f := d.failures[name]; len(f) > 0 {
		d.failures[name], err = f[1:], f[0]
	}
	return err
}

func (d *fakeDeployment) reply(name, database string, raw bson.Raw) (bson.D, error) {
	target, _ := raw.Lookup(name).StringValueOK()
	ns := database + "." + target
	documents, exists := d.collections[ns]
	if !exists && (name == "drop" || name == "listIndexes") {
		return nil, mongo.CommandError{Code: 26, Message: "ns not found"}
	}
	if d.collections == nil {
		d.collections = make(map[string][]bson.Raw)
	}
	switch name {
	case "drop":
		delete(d.collections, ns)
	case "create":
		d.collections[ns] = nil
	case "insert":
		values, _ := raw.Lookup("documents").Array().Values()
		for _, v := range values {
			documents = append(documents, bytes.Clone(v.Document()))
		}
		d.collections[ns] = documents
	case "aggregate": // $currentOp
		if d.busy == 0 {
			return batchReply(), nil
		}
		d.busy = max(d.busy-1, -1)
		return batchReply(mustRaw(bson.D{{Key: "active", Value: true}})), nil
	case "find":
		return batchReply(documents...), nil
	case "listCollections":
		name := raw.Lookup("filter", "name").StringValue()
		if _, exists := d.collections[database+"."+name]; exists {
			return batchReply(mustRaw(bson.D{{Key: "name", Value: name}})), nil
		}
		return batchReply(), nil
	case "listIndexes":
		return batchReply(mustRaw(bson.D{{Key: "name", Value: "_id_"}})), nil
	}
	return bson.D{}, nil
}

func batchReply(documents ...bson.Raw) bson.D {
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)},
		{Key: "firstBatch", Value: append([]bson.Raw{}, documents...)}}}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func mustRaw(d any) bson.Raw { return must(bson.Marshal(d)) }

// fakeSource provides fake deployments, new or released.
type fakeSource struct {
	deployment.Source // the runner does not call its other methods
	offers            []deployment.Description
	start             func(deployment.Description) *fakeDeployment

	mu   sync.Mutex
	idle []*fakeDeployment
	lent map[deployment.Deployment]bool
	most int // lent at once
}

func (s *fakeSource) Offers() []deployment.Description { return s.offers }
func (s *fakeSource) Repairs() bool                    { return false }

func (s *fakeSource) Acquire(ctx context.Context, i int) (deployment.Deployment, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.idle) == 0 {
		s.idle = append(s.idle, s.start(s.offers[i]))
	}
	d := s.idle[0]
	if d.none != nil {
		return nil, d.none
	}
	if s.lent == nil {
		s.lent = make(map[deployment.Deployment]bool)
	}
	s.idle, s.lent[d] = s.idle[1:], true
	s.most = max(s.most, len(s.lent))
	return d, nil
}

func (s *fakeSource) Release(d deployment.Deployment, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.lent[d] {
		panic("a deployment was released twice")
	}
	delete(s.lent, d)
	if !broken {
		s.idle = append(s.idle, d.(*fakeDeployment))
	}
}

// failuresOf parses lines such as "find fails 11600": 0 is a network error, -1 a
// success.
func failuresOf(text string) (map[string][]error, error) {
	out := make(map[string][]error)
	for line := range strings.Lines(text) {
		var name string
		var code int32
		if _, err := fmt.Sscanf(line, "%s fails %d", &name, &code); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		failure := error(mongo.CommandError{Code: code, Message: fmt.Sprint("scripted ", code)})
		if code == 0 {
			failure = mongo.CommandError{Message: "connection reset", Labels: []string{"NetworkError"}}
		} else if code < 0 {
			failure = nil
		}
		out[name] = append(out[name], failure)
	}
	return out, nil
}
