package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment/wire"
)

// greeting is a host's reply to isMaster, or the error.
type greeting struct {
	wire.Hello
	err error
}

// notServing returns what each host still lacks: every host must answer, a member of a replica set must be primary,
// secondary or arbiter, and a replica set must have a primary.
func notServing(hosts []string, replies map[string]greeting) (missing []string) {
	set, primary := "", false
	for _, host := range hosts {
		g, asked := replies[host]
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

// servingPoll is the pause between attempts.
const servingPoll = 50 * time.Millisecond

// awaitServing waits until each host of a connection string, and each member of its replica set, accepts commands. It
// does not authenticate, because arbiters have no users.
func awaitServing(ctx context.Context, u uri) error {
	for hosts := slices.Clone(u.hosts); ; {
		replies := greetings(ctx, u, hosts)
		for _, g := range replies {
			hosts = slices.Concat(hosts, g.Hosts, g.Passives, g.Arbiters)
		}
		slices.Sort(hosts)
		hosts = slices.Compact(hosts)
		missing := notServing(hosts, replies)
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

// greetings sends isMaster to all hosts concurrently.
func greetings(ctx context.Context, u uri, hosts []string) map[string]greeting {
	hellos, errs := concurrently(hosts, func(host string) (wire.Hello, error) {
		return wire.ReadHello(u.bare(host).ask(ctx, "isMaster", 1))
	})
	replies := make(map[string]greeting)
	for i, host := range hosts {
		replies[host] = greeting{hellos[i], errs[i]}
	}
	return replies
}
