package reference

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/unified-test-runner/utr/entities"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"github.com/unified-test-runner/utr/result"
)

// clientRows lists other operations of clients, and the runner's internal operations.
func clientRows() []row {
	return []row{
		noResult(entities.Client, "appendMetadata", "", appendMetadata),
		noResult(entities.Client, "close", "", func(c *call) *result.Error { c.client.close(); return nil }),
		{entities.Client, "$topology", "", func(c *call) (any, *result.Error) {
			t := c.client.describe()
			s := result.TopologyState{Type: string(t.Type), Servers: []result.ServerState{}}
			for _, v := range t.Servers {
				s.Servers = append(s.Servers, result.ServerState{Address: v.Address, Type: string(v.Type)})
			}
			return s, nil
		}},
		{entities.Client, "$configureFailPoint", "", func(c *call) (any, *result.Error) {
			cmd, err := c.generic()
			if err != nil {
				return nil, err
			}
			cmd.op = retry.Operation{Name: "configureFailPoint"}
			cmd.address, cmd.hidden, cmd.timeout = c.Text("server"), true, false
			r, err := c.run(cmd)
			return r.doc, err
		}},
	}
}

// endSessions ends the pooled server sessions if a server is known (Driver Sessions, "endSessions").
func (c *client) endSessions() {
	const most = 10_000 // ids in one command
	primary := selection.Preference{Mode: selection.PrimaryPreferred}
	for ids := range slices.Chunk(c.sessions.drain(), most) {
		srv, err := c.suitable(c.topology.Description(), want{preference: primary})
		if err != nil || srv == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		cmd := &command{body: document("endSessions", ids), db: "admin", op: retry.Lookup("endSessions"),
			preference: primary, closing: true, session: c.newSession(true)}
		_, failed := c.execute(ctx, cmd, &trace{})
		cancel()
		if failed != nil {
			return
		}
	}
}

// awaitPool waits until the pools of all data-bearing servers have minPoolSize connections, and then clears the event
// log.
func (c *client) awaitPool(ctx context.Context, limit time.Duration) error {
	if c.minPool == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ready := map[string]uint64{}
	for seen := int64(0); !c.populated(ready); {
		events, err := c.log.After(ctx, seen, limit)
		if err != nil || len(events) == 0 {
			return fmt.Errorf("pools did not reach minPoolSize %d within %v: %v", c.minPool, limit, ready)
		}
		for _, e := range events {
			seen = e.Sequence
			switch e.Type {
			case result.ConnectionReady:
				ready[e.Address]++
			case result.ConnectionClosed:
				ready[e.Address] -= min(1, ready[e.Address])
			}
		}
	}
	c.log.Reset()
	return nil
}

// populated reports whether all servers are known, and data-bearing servers have minPoolSize ready connections.
func (c *client) populated(ready map[string]uint64) bool {
	t := c.describe()
	return len(t.Servers) > 0 && t.Type != selection.Unknown && t.Type != selection.ReplicaSetNoPrimary &&
		!slices.ContainsFunc(t.Servers, func(s selection.Server) bool {
			switch s.Type {
			case selection.Standalone, selection.RSPrimary, selection.RSSecondary, selection.Mongos, selection.LoadBalancer:
				return ready[s.Address] < c.minPool
			}
			return s.Type == selection.UnknownServer
		})
}
