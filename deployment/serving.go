package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
)

// greeting is what one host said to hello, or why it said nothing.
type greeting struct {
	hello bson.Raw
	err   error
}

// notServing says, for each host that a deployment waits for, what is missing:
// every host has to answer, a member of a replica set has to be primary,
// secondary or arbiter, and a replica set has to have a primary.
func notServing(hosts []string, said map[string]greeting) (missing []string) {
	set, primary := "", false
	for _, host := range hosts {
		g, asked := said[host]
		is := func(key string) bool { b, ok := g.hello.Lookup(key).BooleanOK(); return ok && b }
		name := text(g.hello, "setName")
		switch {
		case g.err != nil:
			missing = append(missing, host+": "+advise(g.err.Error()))
		case !asked:
			missing = append(missing, host+" was not asked yet")
		case text(g.hello, "msg") == "isdbgrid":
		case name == "" && !is("isWritablePrimary") && !is("ismaster"):
			missing = append(missing, host+" is not initiated yet")
		case name == "":
		default:
			set = name
			switch {
			case is("isWritablePrimary") || is("ismaster"):
				primary = true
			case !is("secondary") && !is("arbiterOnly"):
				missing = append(missing, host+" is neither primary nor secondary nor arbiter yet")
			}
		}
	}
	if set != "" && !primary {
		missing = append(missing, "replica set "+set+" has no primary yet")
	}
	return missing
}

// membersOf gives the hosts that a member knows beside itself.
func membersOf(hello bson.Raw) (hosts []string) {
	for _, key := range []string{"hosts", "passives", "arbiters"} {
		hosts = append(hosts, texts(hello, key)...)
	}
	return hosts
}

// servingPoll is how often a host is asked that is not ready.
const servingPoll = 50 * time.Millisecond

// awaitServing waits until each host of a connection string, and each member of its
// replica set, serves. Credentials are not used: an arbiter knows no users.
func awaitServing(ctx context.Context, u uri) error {
	u.userinfo = ""
	u = u.without("authMechanism", "authMechanismProperties", "authSource")
	w := &waiter{uri: u, clients: make(map[string]*mongo.Client), said: make(map[string]greeting)}
	defer w.close(ctx)
	tick := time.NewTicker(servingPoll)
	defer tick.Stop()
	hosts := slices.Clone(u.hosts)
	for {
		for i := 0; i < len(hosts); i++ { // grows
			w.ask(ctx, hosts[i])
			for _, h := range membersOf(w.said[hosts[i]].hello) {
				if !slices.Contains(hosts, h) {
					hosts = append(hosts, h)
				}
			}
		}
		missing := notServing(hosts, w.said)
		if len(missing) == 0 {
			return nil
		}
		if ctx.Err() == nil {
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("%w: %s", context.Cause(ctx), strings.Join(missing, "; "))
		}
		// A secondary that is asked again may be primary now.
		clear(w.said)
	}
}

// waiter asks hosts again and again, on connections that it keeps.
type waiter struct {
	uri     uri
	clients map[string]*mongo.Client
	said    map[string]greeting
}

// hostLimit bounds one question to one host.
const hostLimit = 2 * time.Second

func (w *waiter) ask(ctx context.Context, host string) {
	client := w.clients[host]
	if client == nil {
		var err error
		client, err = mongo.Connect(w.uri.direct(host).client("utr").SetServerSelectionTimeout(hostLimit))
		if err != nil {
			w.said[host] = greeting{err: err}
			return
		}
		w.clients[host] = client
	}
	ctx, cancel := context.WithTimeout(ctx, hostLimit)
	defer cancel()
	hello, err := sayHello(ctx, client)
	w.said[host] = greeting{hello, err}
}

func (w *waiter) close(ctx context.Context) {
	for _, c := range w.clients {
		_ = c.Disconnect(context.WithoutCancel(ctx))
	}
}
