package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/process/parallel"
)

// notServing returns what each host still lacks, according to its reply to isMaster or the error: every host must
// answer, a member of a replica set must be primary, secondary or arbiter, and a replica set must have a primary.
func notServing(hosts []string, replies []direct.Hello, errs []error) (missing []string) {
	set, primary := "", false
	for i, h := range replies {
		switch {
		case errs[i] != nil:
			missing = append(missing, hosts[i]+": "+advise(errs[i].Error()))
		case h.Mongos():
		case h.SetName == "" && !h.Writable:
			missing = append(missing, hosts[i]+" is not initiated yet")
		case h.SetName != "" && !h.Writable && !h.Secondary && !h.Arbiter:
			missing = append(missing, hosts[i]+" is neither primary nor secondary nor arbiter yet")
		}
		if h.SetName != "" {
			set, primary = h.SetName, primary || h.Writable
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
		replies, errs := make([]direct.Hello, len(hosts)), make([]error, len(hosts))
		_ = parallel.Each(len(hosts), hosts, func(i int, host string) error {
			replies[i], errs[i] = direct.ReadHello(u.bare(host).ask(ctx, "isMaster", 1))
			return nil
		})
		known := slices.Clone(hosts)
		for _, h := range replies {
			known = slices.Concat(known, h.Hosts, h.Passives, h.Arbiters)
		}
		slices.Sort(known)
		if known = slices.Compact(known); !slices.Equal(known, hosts) {
			hosts = known // the other members must answer, too
			continue
		}
		missing := notServing(hosts, replies, errs)
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
