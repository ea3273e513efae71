package reference

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// server is a selected server.
type server struct {
	*topology.SelectedServer
	address    string
	kind       selection.ServerType
	topology   selection.TopologyType
	desc       description.Server   // at the time of its selection
	minRTT     time.Duration        // at the time of its selection (Client Side Operations Timeout, "Command Execution")
	begun      time.Time            // start of the selection
	preference selection.Preference // of the selection
}

// unknown reports whether the server is now Unknown.
func (s *server) unknown() bool { return s.Server.Description().Kind == description.Unknown }

// describe converts the current topology description.
func (c *client) describe() selection.Topology {
	t, _ := describe(c.topology.Description())
	return t
}

// describe converts a topology description. It also returns the server descriptions by address.
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

// want describes the server to select.
type want struct {
	write         bool
	preference    selection.Preference
	pinned        string // address; "" selects
	deprioritized []string
	stage         bool // the pipeline has a write stage: see writesAnywhere

	// For log messages.
	operation   string // name of the command
	operationID int64
	quiet       bool // no messages
}

// selectServer waits for a suitable server, and writes the log messages.
func (c *client) selectServer(ctx context.Context, w want) (srv *server, failed *result.Error) {
	c.logSelection(w, "debug", "Server selection started", nil)
	defer func() {
		if failed != nil {
			c.logSelection(w, "debug", "Server selection failed", document("failure", failed.Error()))
		} else {
			c.logSelection(w, "debug", "Server selection succeeded", serverFields(srv.address))
		}
	}()
	begun := time.Now()
	waited := false
	timeout := c.settings.ServerSelectionTimeout
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	var updates <-chan description.Topology
	ended := func(topology description.Topology) *result.Error {
		return selectionError(errors.Is(ctx.Err(), context.DeadlineExceeded), "no suitable server: %v: %v",
			ctx.Err(), topology)
	}
	for {
		current := c.topology.Description()
		if errors.Is(ctx.Err(), context.Canceled) { // a canceled operation is not sent again
			return nil, ended(current)
		}
		found, err := c.suitable(current, w)
		if err != nil {
			return nil, selectionError(false, "%v", err)
		}
		if found != nil {
			found.begun = begun
			return found, nil
		}
		if !waited {
			waited = true
			defer c.sockets.addWaiter()()
			remaining := min(timeout-time.Since(begun), c.driver.options.left(ctx))
			c.logSelection(w, "info", "Waiting for suitable server to become available",
				document("remainingTimeMS", remaining.Milliseconds()))
		}
		if updates == nil {
			sub, err := c.topology.Subscribe()
			if err != nil {
				return nil, selectionError(false, "client is closed: %v", err)
			}
			defer func() { _ = c.topology.Unsubscribe(sub) }()
			updates = sub.Updates
			continue // the topology may have changed before the subscription
		}
		c.checkAgain(current)
		select {
		case _, ok := <-updates:
			if !ok {
				return nil, selectionError(false, "client was closed during server selection")
			}
		case <-timer.C:
			return nil, selectionError(true, "no suitable server within %v: %v", timeout, current)
		case <-ctx.Done():
			return nil, ended(current)
		}
	}
}

func selectionError(timeout bool, format string, args ...any) *result.Error {
	return &result.Error{Message: fmt.Sprintf(format, args...), Client: true, Kind: "server selection", Timeout: timeout}
}

func neverChecked(s description.Server) bool {
	return s.Kind == description.Unknown && s.LastError == nil && s.LastUpdateTime.IsZero()
}

// checkAgain requests an immediate check of all servers except those whose first check is in progress, because it would
// cause a useless second check after minHeartbeat.
func (c *client) checkAgain(current description.Topology) {
	for _, d := range current.Servers {
		if neverChecked(d) {
			continue
		}
		if s, err := c.topology.FindServer(d); err == nil && s != nil {
			s.RequestImmediateCheck()
		}
	}
}

// writesAnywhere reports whether secondaries support pipelines with a write stage, which requires that all known
// servers are 5.0 or later (CRUD, "Read preferences and server selection" of aggregate).
func writesAnywhere(current description.Topology) bool {
	return !slices.ContainsFunc(current.Servers, func(s description.Server) bool {
		return s.WireVersion != nil && s.WireVersion.Max < wire50
	})
}

// suitable picks a suitable server from a topology description, or returns nil.
func (c *client) suitable(current description.Topology, w want) (*server, error) {
	if current.CompatibilityErr != nil {
		return nil, current.CompatibilityErr
	}
	t, by := describe(current)
	var candidates []selection.Server
	if w.pinned != "" {
		candidates = selection.Filter(t.Servers,
			func(s selection.Server) bool { return s.Address == w.pinned && s.Available() })
	} else {
		o := selection.Options{Write: w.write, LocalThreshold: c.settings.LocalThreshold,
			HeartbeatFrequency: c.settings.HeartbeatInterval}
		if w.stage && !writesAnywhere(current) {
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
		return s == nil // it has left the topology
	})
	if failed != nil || len(candidates) == 0 {
		return nil, failed
	}
	picked := selection.Pick(candidates,
		func(a string) int { return int(servers[a].OperationCount()) },
		func(n int) int { return min(int(c.driver.options.Random()*float64(n)), n-1) })
	return &server{SelectedServer: servers[picked.Address], address: picked.Address,
		kind: picked.Type, topology: t.Type, desc: by[picked.Address], minRTT: servers[picked.Address].RTTMonitor().Min(),
		preference: w.preference}, nil
}
