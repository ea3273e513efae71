package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/net/processtime"
	"github.com/unified-test-runner/utr/internal/process/parallel"
)

// routerLimit bounds the check whether a mongos answers.
const routerLimit = 3 * time.Second

// answering returns the connection string of the mongoses that answer, and why each of the others is left out. A driver
// might choose a mongos that does not answer, and commands for every mongos would fail. If none answers, answering
// returns an error.
func (u uri) answering(ctx context.Context) (_ uri, left map[string]error, err error) {
	ctx, cancel := processtime.Limit(ctx, routerLimit, fmt.Errorf("no answer within %s", routerLimit))
	defer cancel()
	errs := make([]error, len(u.hosts))
	_ = parallel.Each(len(u.hosts), u.hosts, func(i int, host string) error {
		_, errs[i] = Ask(ctx, u.direct(host).String(), bson.D{{Key: "whatsmyuri", Value: 1}})
		return nil
	})
	var hosts []string
	left = make(map[string]error)
	for i, err := range errs {
		if err == nil {
			hosts = append(hosts, u.hosts[i])
		} else {
			left[u.hosts[i]] = fmt.Errorf("the mongos %s is left out, and the run continues with the others: %w",
				u.hosts[i], err)
		}
	}
	switch {
	case len(hosts) == 0:
		return u, left, errors.Join(errs...)
	case len(left) > 0:
		u = u.at(hosts...)
	}
	return u, left, nil
}

// routes makes tests use the mongoses that answer when a test found one that does not. all has every mongos: one that
// answers again is used again.
func (c *cluster) routes(all uri, note func(string)) func(context.Context) error {
	return func(ctx context.Context) error {
		now, left, err := all.answering(ctx)
		if err != nil || slices.Equal(now.hosts, c.description.Hosts) {
			return err
		}
		for _, host := range c.description.Hosts {
			if left[host] != nil {
				note(left[host].Error())
			}
		}
		for _, view := range c.views() {
			view.uri, view.all, view.single, view.description.Hosts = now, now, now.at(now.hosts[0]), now.hosts
		}
		return nil
	}
}
