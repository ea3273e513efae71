package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/wire"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// A site is a deployment with the runner's own clients on it, kept between
// tests. It belongs to one test at a time, whose threads may use it
// concurrently.
type site struct {
	deployment deployment.Deployment
	about      deployment.Description
	commands   commands
	seeded     map[string]*collection // by namespace
	before     map[string]member      // by host, when they were last asked; nil if never

	mu          sync.Mutex
	clusterTime bson.Raw // the newest $clusterTime of a reply
}

// openSite connects to a deployment, refuses it if it has no test commands,
// and terminates transactions that somebody left open.
func openSite(ctx context.Context, d deployment.Deployment, dial func(deployment.Deployment) (commands, error)) (*site, error) {
	c, err := dial(d)
	if err != nil {
		return nil, err
	}
	s := &site{deployment: d, about: d.Description(), commands: c, seeded: make(map[string]*collection)}
	if err := s.demandTestCommands(ctx); err != nil {
		s.close()
		return nil, err
	}
	if err := retried(ctx, func() error { return s.killAllSessions(ctx) }); err != nil {
		s.close()
		return nil, err
	}
	if !d.Owned() { // what we start ourselves is all there
		s.before = s.members(ctx)
	}
	return s, nil
}

// condition is what a test leaves a site in.
type condition uint8

const (
	fit      condition = iota
	doubtful           // something could not be put right
	gone               // the deployment does not answer
)

// answerLimit bounds the question whether a deployment is still there.
const answerLimit = 5 * time.Second

// gone says why a deployment does not answer any more, nil if it does. That
// it refuses a command is an answer.
func (s *site) gone(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerLimit)
	defer cancel()
	err := retried(ctx, func() error { return s.everywhere(ctx, "admin", bson.D{{Key: "ping", Value: 1}}) })
	if wire.CodeOf(err) != 0 {
		return nil
	}
	return err
}

// ill says what has become of a deployment after a test that could not be tidied
// up or in which something differed: why it is not to be used any more, or which
// servers fell. A server of ours that died says so itself, all others are asked,
// unless the run must end soon.
func (s *site) ill(ctx context.Context, untidy, differs bool) (lost, fallen error) {
	if !untidy && !differs || ctx.Err() != nil && !differs {
		return nil, nil
	}
	if lost = s.deployment.Dead(); lost != nil || ctx.Err() != nil {
		return lost, nil
	}
	if untidy {
		lost = s.gone(ctx)
	}
	if lost == nil && differs {
		if fallen = s.fallen(ctx); fallen != nil {
			lost = s.gone(ctx) // it may have been the last one
		}
	}
	return lost, fallen
}

func (s *site) close() { s.commands.close() }

// sharded reports whether the deployment is reached through mongoses.
func (s *site) sharded() bool {
	return s.about.Topology == deployment.Sharded || s.about.Topology == deployment.ShardedReplicaSet
}

// run runs a command on the primary, and runAt on one server. Both remember the
// cluster time of the reply ("MigrationConflict Errors on Sharded Clusters").
func (s *site) run(ctx context.Context, database string, command bson.D) (bson.Raw, error) {
	return s.runAt(ctx, byDefault, database, command)
}

func (s *site) runAt(ctx context.Context, address, database string, command bson.D) (bson.Raw, error) {
	reply, err := s.commands.at(ctx, address, database, command)
	if err != nil {
		return reply, fmt.Errorf("%s: %w", strings.TrimSuffix(command[0].Key+" on "+address, " on "), err)
	}
	s.gossip(reply)
	return reply, nil
}

// documents reads a collection from the primary, with local read concern,
// sorted by _id.
func (s *site) documents(ctx context.Context, database, collection string) ([]bson.Raw, error) {
	return s.commands.list(ctx, byDefault, database, bson.D{{Key: "find", Value: collection},
		{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "readConcern", Value: bson.D{{Key: "level", Value: "local"}}}})
}

// gossip remembers the cluster time of a reply.
func (s *site) gossip(reply bson.Raw) {
	t, ok := reply.Lookup("$clusterTime").DocumentOK()
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.clusterTime == nil || newer(t, s.clusterTime) {
		s.clusterTime = slices.Clone(t)
	}
}

func newer(a, b bson.Raw) bool {
	at, ai, _ := a.Lookup("clusterTime").TimestampOK()
	bt, bi, _ := b.Lookup("clusterTime").TimestampOK()
	return at > bt || at == bt && ai > bi
}

// sessionTime is the cluster time that sessions of a test start from: none
// but where mongoses could disagree.
func (s *site) sessionTime() bson.Raw {
	if !s.sharded() && s.about.Topology != deployment.LoadBalanced {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusterTime
}

// Codes of the server that the format lets the runner pass over.
const (
	codeUnauthorized      = 13 // SERVER-54216
	codeNamespaceNotFound = 26
	codeNamespaceExists   = 48    // seen while initial data is made
	codeInterrupted       = 11601 // SERVER-38335
)

// killAllSessions terminates open transactions on the primary, or on each
// mongos ("Terminating Open Transactions").
func (s *site) killAllSessions(ctx context.Context) error {
	return s.everywhere(ctx, "admin", bson.D{{Key: "killAllSessions", Value: bson.A{}}}, codeInterrupted, codeUnauthorized)
}

// everywhere runs a command on the primary, or on each mongos. An error of one
// of the codes counts as an answer.
func (s *site) everywhere(ctx context.Context, database string, command bson.D, codes ...int32) error {
	hosts := []string{byDefault}
	if s.sharded() {
		hosts = s.about.Hosts
	}
	for _, host := range hosts {
		if _, err := s.runAt(ctx, host, database, command); err != nil && !slices.Contains(codes, wire.CodeOf(err)) {
			return err
		}
	}
	return nil
}

// demandTestCommands refuses a deployment without enableTestCommands
// ("Server Compatibility"). One that we started ourselves is trusted if it
// does not say.
func (s *site) demandTestCommands(ctx context.Context) error {
	enabled := TestCommands(s.about.Parameters)
	if enabled != nil && !*enabled {
		return noTestCommands(s.about.Name)
	}
	if enabled != nil || s.deployment.Owned() {
		return nil
	}
	reply, err := s.run(ctx, "admin", bson.D{{Key: "getParameter", Value: 1}, {Key: "enableTestCommands", Value: 1}})
	if err != nil && wire.CodeOf(err) == 0 {
		return err
	}
	if wire.CodeOf(err) == codeUnauthorized {
		return fmt.Errorf("the user of the connection string may not ask whether the servers run with enableTestCommands; "+
			"suites set fail points and drop collections, for which it needs a role such as root: %w", err)
	}
	if enabled = TestCommands(reply); enabled == nil || !*enabled {
		return noTestCommands(s.about.Name)
	}
	return nil
}

// TestCommands reads enableTestCommands among server parameters, where it is
// a boolean or a number; nil if it is not there.
func TestCommands(parameters bson.Raw) *bool {
	v, err := parameters.LookupErr("enableTestCommands")
	if err != nil {
		return nil
	}
	enabled, _ := v.BooleanOK()
	if n, ok := v.AsInt64OK(); ok && n != 0 {
		enabled = true
	}
	return &enabled
}
