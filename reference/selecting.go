package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"
)

// server is a selected server with the picture in which it was selected.
type server struct {
	*topology.SelectedServer
	address  string
	kind     selection.ServerType
	topology selection.TopologyType
	desc     description.Server
	begun    time.Time // when its selection was
	// preference is what it was selected by.
	preference selection.Preference
}

// unknown reports whether the server is Unknown by now.
func (s *server) unknown() bool { return s.Server.Description().Kind == description.Unknown }

// describe translates the topology's picture.
func (c *client) describe() selection.Topology {
	t, _ := describe(c.topology.Description())
	return t
}

func describe(d description.Topology) (selection.Topology, map[string]description.Server) {
	t := selection.Topology{Type: selection.TopologyType(d.Kind.String())}
	by := make(map[string]description.Server, len(d.Servers))
	for _, s := range d.Servers {
		v := selection.Server{
			Address:    s.Addr.String(),
			Type:       selection.ServerType(s.Kind.String()),
			RTT:        s.AverageRTT,
			LastWrite:  s.LastWriteTime,
			LastUpdate: s.LastUpdateTime,
		}
		if len(s.Tags) > 0 {
			v.Tags = make(map[string]string, len(s.Tags))
			for _, tag := range s.Tags {
				v.Tags[tag.Name] = tag.Value
			}
		}
		t.Servers = append(t.Servers, v)
		by[v.Address] = s
	}
	return t, by
}

// want says what a server is selected for.
type want struct {
	write         bool
	preference    selection.Preference
	pinned        string // address; "" selects freely
	deprioritized []string
	// stage reports a pipeline that writes: see writesAnywhere.
	stage bool

	// For log messages: the command, and its operation. A quiet selection has
	// none.
	operation   string
	operationID int64
	quiet       bool
}

// selectServer waits until a suitable server is there, and wakes on every
// change of the topology. The error is a *result.Error.
func (c *client) selectServer(ctx context.Context, w want) (*server, *result.Error) {
	say := func(level, message string, more bson.D) { c.saySelection(w, level, message, more) }
	say("debug", "Server selection started", nil)
	srv, err := c.awaitServer(ctx, w, func(remaining time.Duration) {
		say("info", "Waiting for suitable server to become available",
			bson.D{{Key: "remainingTimeMS", Value: remaining.Milliseconds()}})
	})
	if err != nil {
		say("debug", "Server selection failed", bson.D{{Key: "failure", Value: err.Error()}})
		return nil, err
	}
	say("debug", "Server selection succeeded", place(srv.address))
	return srv, nil
}

// awaitServer is the waiting of selectServer. It calls waiting, once, if no
// server is suitable at first, with the time that is left.
func (c *client) awaitServer(ctx context.Context, w want, waiting func(time.Duration)) (*server, *result.Error) {
	begun := time.Now()
	waited := false
	timer := time.NewTimer(c.settings.serverSelectionTimeout)
	defer timer.Stop()
	patience := time.Now().Add(discovering)
	var updates <-chan description.Topology
	over := func(picture description.Topology) *result.Error {
		return selectionError(errors.Is(ctx.Err(), context.DeadlineExceeded), "no suitable server: %v: %v", ctx.Err(), picture)
	}
	for {
		picture := c.topology.Description()
		if errors.Is(ctx.Err(), context.Canceled) { // what was given up is not sent again
			return nil, over(picture)
		}
		found, err := c.suitable(picture, w)
		if err != nil {
			return nil, selectionError(false, "%v", err)
		}
		if found != nil {
			found.begun = begun
		}
		if found != nil && !(slices.Contains(w.deprioritized, found.address) && undiscovered(picture) && time.Now().Before(patience)) {
			return found, nil
		}
		if found == nil && !waited {
			waited = true
			defer c.sockets.seek()()
			waiting(min(c.settings.serverSelectionTimeout-time.Since(begun), c.driver.options.left(ctx)))
		}
		if updates == nil {
			sub, err := c.topology.Subscribe()
			if err != nil {
				return nil, selectionError(false, "client is closed: %v", err)
			}
			defer func() { _ = c.topology.Unsubscribe(sub) }()
			updates = sub.Updates
			continue // the picture may have changed before the subscription
		}
		var brief <-chan time.Time
		if found == nil {
			c.checkAgain(picture)
		} else {
			brief = time.After(time.Until(patience))
		}
		select {
		case <-brief:
		case _, ok := <-updates:
			if !ok {
				return nil, selectionError(false, "client was closed during server selection")
			}
		case <-timer.C:
			return nil, selectionError(true, "no suitable server within %v: %v", c.settings.serverSelectionTimeout, picture)
		case <-ctx.Done():
			return nil, over(picture)
		}
	}
}

func selectionError(timeout bool, format string, args ...any) *result.Error {
	return &result.Error{Message: fmt.Sprintf(format, args...), Client: true, Kind: "server selection", Timeout: timeout}
}

// discovering is how long a retry waits for servers that were never checked,
// when all it could use else are deprioritized ones: a client that has just
// been opened may know one mongos of two.
const discovering = 200 * time.Millisecond

func undiscovered(d description.Topology) bool { return slices.ContainsFunc(d.Servers, neverChecked) }

func neverChecked(s description.Server) bool {
	return s.Kind == description.Unknown && s.LastError == nil && s.LastUpdateTime.IsZero()
}

// checkAgain requests an immediate check of the servers that were checked
// before. The first check of the others is under way: one more would follow it
// after minHeartbeat for nothing.
func (c *client) checkAgain(picture description.Topology) {
	for _, d := range picture.Servers {
		if neverChecked(d) {
			continue
		}
		if s, err := c.topology.FindServer(d); err == nil && s != nil {
			s.RequestImmediateCheck()
		}
	}
}

// writesAnywhere reports whether all servers that are known run pipelines with a write
// stage as secondaries, too: those before 5.0 do not (CRUD, "Read preferences and
// server selection" of aggregate).
func writesAnywhere(picture description.Topology) bool {
	return !slices.ContainsFunc(picture.Servers, func(s description.Server) bool {
		return s.WireVersion != nil && s.WireVersion.Max < wire50
	})
}

// suitable picks a server from a picture, nil if there is none now.
func (c *client) suitable(picture description.Topology, w want) (*server, error) {
	if picture.CompatibilityErr != nil {
		return nil, picture.CompatibilityErr
	}
	t, by := describe(picture)
	var candidates []selection.Server
	if w.pinned != "" {
		for _, s := range t.Servers {
			if s.Address == w.pinned && s.Available() {
				candidates = append(candidates, s)
			}
		}
	} else {
		o := selection.Options{LocalThreshold: c.settings.localThreshold, HeartbeatFrequency: c.settings.heartbeat}
		if w.write {
			o.Operation = selection.Write
		}
		if w.stage && !writesAnywhere(picture) {
			w.preference = selection.Preference{}
		}
		var err error
		if candidates, err = selection.Select(t, w.preference, w.deprioritized, o); err != nil {
			return nil, err
		}
	}
	servers := map[string]*topology.SelectedServer{}
	var failed error
	candidates = slices.DeleteFunc(candidates, func(v selection.Server) bool {
		s, err := c.topology.FindServer(by[v.Address])
		failed = cmp.Or(failed, err)
		servers[v.Address] = s
		return s == nil // it has left the topology meanwhile
	})
	if failed != nil || len(candidates) == 0 {
		return nil, failed
	}
	picked := selection.Pick(candidates,
		func(a string) int { return int(servers[a].OperationCount()) },
		func(n int) int { return min(int(c.driver.options.Random()*float64(n)), n-1) })
	return &server{SelectedServer: servers[picked.Address], address: picked.Address,
		kind: picked.Type, topology: t.Type, desc: by[picked.Address], preference: w.preference}, nil
}
