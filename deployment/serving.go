package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment/wire"
)

// greeting is what one host said of itself, or why it said nothing.
type greeting struct {
	wire.Hello
	err error
}

// notServing says what is missing in each host that a deployment waits for, by what
// it said: every host has to answer, a member of a replica set has to be primary,
// secondary or arbiter, and a replica set has to have a primary.
func notServing(hosts []string, said map[string]greeting) (missing []string) {
	set, primary := "", false
	for _, host := range hosts {
		g, asked := said[host]
		switch {
		case g.err != nil:
			missing = append(missing, host+": "+advise(g.err.Error()))
		case !asked:
			missing = append(missing, host+" was not asked yet")
		case g.Mongos():
		case g.SetName == "" && !g.Writable:
			missing = append(missing, host+" is not initiated yet")
		case g.SetName != "" && !g.Writable && !g.Secondary && !g.Arbiter:
			missing = append(missing, host+" is neither primary nor secondary nor arbiter yet")
		}
		if g.SetName != "" {
			set, primary = g.SetName, primary || g.Writable
		}
	}
	if set != "" && !primary {
		missing = append(missing, "replica set "+set+" has no primary yet")
	}
	return missing
}

// servingPoll is how often hosts are asked that are not ready.
const servingPoll = 50 * time.Millisecond

// awaitServing waits until each host of a connection string, and each member of its
// replica set, serves. Nobody signs in: an arbiter knows no users.
func awaitServing(ctx context.Context, u uri) error {
	for hosts := slices.Clone(u.hosts); ; {
		said := greetings(ctx, u, hosts)
		for _, g := range said {
			hosts = slices.Concat(hosts, g.Hosts, g.Passives, g.Arbiters)
		}
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		missing := notServing(hosts, said)
		if len(missing) == 0 {
			return nil
		}
		select {
		case <-time.After(servingPoll):
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", context.Cause(ctx), strings.Join(missing, "; "))
		}
	}
}

// greetings asks hosts at once. A secondary that is asked again may be primary now.
func greetings(ctx context.Context, u uri, hosts []string) map[string]greeting {
	said := make(map[string]greeting)
	var all sync.WaitGroup
	var mu sync.Mutex
	for _, host := range hosts {
		all.Go(func() {
			hello, err := wire.ReadHello(u.bare(host).ask(ctx, "isMaster", 1))
			mu.Lock()
			defer mu.Unlock()
			said[host] = greeting{hello, err}
		})
	}
	all.Wait()
	return said
}
