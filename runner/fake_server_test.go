package runner

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// fakeDeployment is a deployment that keeps collections in memory and plays
// commands. What is run on it goes to the transcript.
type fakeDeployment struct {
	about deployment.Description
	owned bool
	say   func(format string, args ...any) // nil for no transcript

	mu          sync.Mutex
	collections map[string]*fakeCollection // by namespace
	created     byte                       // numbers UUIDs
	failures    map[string][]error         // by command name
	services    []bson.ObjectID            // in the order in which once meets them
	time        uint32
	closed      bool
	asked       [][2]time.Time // windows of the log that were asked for
}

type fakeCollection struct {
	uuid      byte
	documents []bson.Raw
	indexes   []string
}

func (d *fakeDeployment) Description() deployment.Description { return d.about }

// Log has a hundred lines, whatever time is asked about.
func (d *fakeDeployment) Log(from, to time.Time) (lines []deployment.LogLine) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, [2]time.Time{from, to})
	for i := range 100 {
		lines = append(lines, deployment.LogLine{Time: from, Server: "a:1", Text: fmt.Sprintf("line %d", i)})
	}
	return lines
}

func (d *fakeDeployment) Owned() bool                     { return d.owned }
func (d *fakeDeployment) URI() string                     { return "mongodb://all" }
func (d *fakeDeployment) DirectURI(address string) string { return "mongodb://" + address + "/direct" }

func (d *fakeDeployment) SingleURI() string {
	if d.about.Topology == deployment.Sharded || d.about.Topology == deployment.LoadBalanced {
		return "mongodb://single"
	}
	return d.URI()
}

func (d *fakeDeployment) primary(_ context.Context, database string, command any) (bson.Raw, error) {
	return d.serve("primary", database, command)
}

func (d *fakeDeployment) at(_ context.Context, address, database string, command any) (bson.Raw, error) {
	return d.serve(address, database, command)
}

func (d *fakeDeployment) once(_ context.Context, uri, database string, command any) (bson.Raw, *bson.ObjectID, error) {
	d.mu.Lock()
	var service *bson.ObjectID
	if len(d.services) > 0 {
		service = &d.services[0]
		d.services = append(slices.Clone(d.services[1:]), d.services[0])
	}
	d.mu.Unlock()
	reply, err := d.serve(uri, database, command)
	return reply, service, err
}

// again finds no connection: stories show how one is found.
func (d *fakeDeployment) again(context.Context, bson.ObjectID, string, any) bool { return false }

func (d *fakeDeployment) documents(_ context.Context, database, collection string) ([]bson.Raw, error) {
	d.note("primary read %s.%s", database, collection)
	d.mu.Lock()
	defer d.mu.Unlock()
	if c := d.collections[database+"."+collection]; c != nil {
		return slices.Clone(c.documents), nil
	}
	return nil, nil
}

func (d *fakeDeployment) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

func (d *fakeDeployment) note(format string, args ...any) {
	if d.say != nil {
		d.say(format, args...)
	}
}

// volatile hides what differs from run to run in a transcript.
var volatile = regexp.MustCompile(`\{"\$oid":\s?"[0-9a-f]{24}"\}`)

func (d *fakeDeployment) serve(where, database string, command any) (bson.Raw, error) {
	raw := mustRaw(command)
	elements, err := raw.Elements()
	if err != nil {
		return nil, err
	}
	name := elements[0].Key()
	if name == "hello" { // of all members at once, in no order that a transcript could show
		return mustRaw(bson.D{{Key: "ok", Value: 1}}), nil
	}
	d.note("%-7s %s %s", where, database, volatile.ReplaceAllString(raw.String(), "OID"))
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.failures[name]; len(f) > 0 {
		d.failures[name] = f[1:]
		if f[0] != nil {
			return nil, f[0]
		}
	}
	body, err := d.reply(name, database, raw)
	if err != nil {
		return nil, err
	}
	if d.about.Topology != deployment.Single {
		d.time++
		body = append(body, bson.E{Key: "$clusterTime", Value: bson.D{{Key: "clusterTime", Value: bson.Timestamp{T: d.time}}}})
	}
	return bson.Marshal(append(body, bson.E{Key: "ok", Value: 1}))
}

func (d *fakeDeployment) reply(name, database string, raw bson.Raw) (bson.D, error) {
	target, _ := raw.Lookup(name).StringValueOK()
	ns := database + "." + target
	c := d.collections[ns]
	switch name {
	case "drop":
		if c == nil {
			return nil, mongo.CommandError{Code: 26, Message: "ns not found"}
		}
		delete(d.collections, ns)
	case "create":
		d.make(ns)
	case "insert":
		if c == nil {
			c = d.make(ns)
		}
		values, _ := raw.Lookup("documents").Array().Values()
		for _, v := range values {
			c.documents = append(c.documents, bytes.Clone(v.Document()))
		}
	case "find":
		return batchReply(c.documents), nil
	case "listCollections":
		var found []bson.Raw
		for ns, c := range d.collections {
			one := strings.TrimPrefix(ns, database+".")
			names := raw.Lookup("filter", "name")
			if s, ok := names.StringValueOK(); ok && s == one || bytes.Contains(names.Value, append([]byte(one), 0)) {
				found = append(found, mustRaw(bson.D{{Key: "name", Value: one}, {Key: "info", Value: bson.D{{Key: "uuid", Value: bson.Binary{Subtype: 4, Data: []byte{c.uuid}}}}}}))
			}
		}
		return batchReply(found), nil
	case "listIndexes":
		if c == nil {
			return nil, mongo.CommandError{Code: 26, Message: "ns not found"}
		}
		var found []bson.Raw
		for _, i := range c.indexes {
			found = append(found, mustRaw(bson.D{{Key: "name", Value: i}}))
		}
		return batchReply(found), nil
	}
	return bson.D{}, nil
}

func (d *fakeDeployment) make(ns string) *fakeCollection {
	if d.collections == nil {
		d.collections = make(map[string]*fakeCollection)
	}
	d.created++
	c := &fakeCollection{uuid: d.created, indexes: []string{"_id_"}}
	d.collections[ns] = c
	return c
}

func batchReply(documents []bson.Raw) bson.D {
	batch := append([]bson.Raw{}, documents...)
	return bson.D{{Key: "cursor", Value: bson.D{{Key: "id", Value: int64(0)}, {Key: "firstBatch", Value: batch}}}}
}

func mustRaw(d any) bson.Raw {
	raw, err := bson.Marshal(d)
	if err != nil {
		panic(err)
	}
	return raw
}

// fakeSource lends fake deployments: new ones, or those that were given back.
type fakeSource struct {
	offers []deployment.Description
	start  func(deployment.Description) *fakeDeployment
	fails  error

	mu   sync.Mutex
	idle map[int][]deployment.Deployment
	lent map[deployment.Deployment]int
	most int // lent at the same time
}

func (s *fakeSource) Offers() []deployment.Description { return s.offers }
func (s *fakeSource) Close() error                     { return nil }

func (s *fakeSource) Acquire(ctx context.Context, i int) (deployment.Deployment, error) {
	if s.fails != nil {
		return nil, s.fails
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent == nil {
		s.lent, s.idle = make(map[deployment.Deployment]int), make(map[int][]deployment.Deployment)
	}
	var d deployment.Deployment
	if idle := s.idle[i]; len(idle) > 0 {
		d, s.idle[i] = idle[0], idle[1:]
	} else {
		d = s.start(s.offers[i])
	}
	s.lent[d] = i
	s.most = max(s.most, len(s.lent))
	return d, nil
}

func (s *fakeSource) Release(d deployment.Deployment, broken bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, found := s.lent[d]
	if !found {
		panic("a deployment was given back twice")
	}
	delete(s.lent, d)
	if !broken {
		s.idle[i] = append(s.idle[i], d)
	}
}

// failuresOf reads lines such as "find fails 11600": 0 is a network error, -1 a success.
func failuresOf(text string) (map[string][]error, error) {
	out := make(map[string][]error)
	for line := range strings.Lines(text) {
		var name string
		var code int32
		if _, err := fmt.Sscanf(line, "%s fails %d", &name, &code); err != nil {
			return nil, fmt.Errorf("%q: %w", line, err)
		}
		var failure error
		switch {
		case code == 0:
			failure = mongo.CommandError{Message: "connection reset", Labels: []string{"NetworkError"}}
		case code > 0:
			failure = mongo.CommandError{Code: code, Message: fmt.Sprint("scripted ", code)}
		}
		out[name] = append(out[name], failure)
	}
	return out, nil
}
