package runner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// site is a deployment with the runner's own clients, kept between tests. One test
// at a time uses it, but possibly concurrently.
type site struct {
	*servers
	deployment deployment.Deployment
	about      deployment.Description
	commands   commands
	before     map[string]member // by host, as last checked, or nil
	opened     bool
	inUse      bool // by a test. The run's mutex guards this
}

// servers is the state of the servers of a site, or of several sites (deployment.Description, Shared).
type servers struct {
	gone bool // no further test may use them as they are. The run's mutex guards this

	opening sync.Mutex // guards swept
	swept   bool       // open transactions of earlier runs are terminated

	filling sync.Mutex // held while a test fills collections that others read

	mu          sync.Mutex
	seeded      map[string]*collection // by namespace
	clusterTime bson.Raw               // the newest $clusterTime
}

// sweep terminates the transactions that others have left open, before the first test on the servers.
func (s *site) sweep(ctx context.Context) error {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.swept {
		return nil
	}
	err := s.killAllSessions(ctx)
	s.swept = err == nil
	return err
}

// open requires test commands and terminates open transactions.
func (s *site) open(ctx context.Context) error {
	if err := s.requireTestCommands(ctx); err != nil {
		return err
	}
	if err := s.sweep(ctx); err != nil {
		return err
	}
	if !s.deployment.Owned() { // servers of an owned deployment are all running
		s.before = s.ask(ctx, whoAreYou)
	}
	s.opened = true
	return nil
}

// diagnose checks a deployment after a test that could not be cleaned up or had mismatches: lost is why it can no
// longer be used, died which servers ended. It sends nothing if the run was interrupted.
func (s *site) diagnose(ctx context.Context, cleanupFailed, differs bool) (lost, died error) {
	if lost = lostDuring(ctx); lost != nil {
		return lost, nil
	}
	if !differs && (!cleanupFailed || ctx.Err() != nil) {
		return nil, nil
	}
	if dead := s.deployment.Dead(); dead != nil {
		return &lostError{stopped, dead.Error()}, nil
	}
	if ctx.Err() != nil {
		return nil, nil
	}
	if died = s.died(ctx); cleanupFailed || died != nil { // the last server may have ended
		lost = s.lost(context.WithoutCancel(ctx))
	}
	return lost, died
}

// sharded reports whether clients connect to mongoses.
func (s *site) sharded() bool {
	return s.about.Topology == deployment.Sharded || s.about.Topology == deployment.ShardedReplicaSet
}

// run runs a command on a server and gossips the cluster time ("MigrationConflict Errors on Sharded Clusters").
func (s *site) run(ctx context.Context, address, database string, command bson.D) (bson.Raw, error) {
	reply, err := s.commands.at(ctx, address, database, command)
	if err != nil {
		return reply, fmt.Errorf("%s: %w", strings.TrimSuffix(command[0].Key+" on "+address, " on "), err)
	}
	s.gossip(reply)
	return reply, nil
}

// documents reads a collection from the primary with local read concern, sorted by _id.
func (s *site) documents(ctx context.Context, database, collection string) ([]bson.Raw, error) {
	return s.commands.list(ctx, defaultServer, database, bson.D{{Key: "find", Value: collection},
		{Key: "sort", Value: bson.D{{Key: "_id", Value: 1}}}, {Key: "readConcern",
			Value: bson.D{{Key: "level", Value: "local"}}}})
}

// gossip advances the cluster time to a reply's.
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

// sessionTime returns the initial cluster time of sessions, or nil unless there are mongoses.
func (s *site) sessionTime() bson.Raw {
	if !s.sharded() && s.about.Topology != deployment.LoadBalanced {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.clusterTime
}

// killAllSessions terminates open transactions ("Terminating Open Transactions"). A server without the command has no
// transactions.
func (s *site) killAllSessions(ctx context.Context) error {
	return s.killSessions(ctx, bson.D{{Key: "killAllSessions", Value: bson.A{}}})
}

func (s *site) killSessions(ctx context.Context, command bson.D) error {
	// The first two errors are described in SERVER-38335 and SERVER-54216.
	return s.everywhere(ctx, "admin", command, codes.Interrupted, codes.Unauthorized, codes.CommandNotFound)
}

// endSessions terminates what a test has left open: transactions, commands and cursors. If other tests use the servers,
// it ends only the test's own sessions. The deployment reports them.
func (s *site) endSessions(ctx context.Context) error {
	if !s.about.Shared {
		return s.killAllSessions(ctx)
	}
	var all bson.A
	for _, id := range s.deployment.Sessions() {
		all = append(all, bson.D{{Key: "id", Value: id}})
	}
	if len(all) == 0 { // without a session, the command kills all
		return nil
	}
	return s.killSessions(ctx, bson.D{{Key: "killSessions", Value: all}})
}

// everywhere runs a command on the primary, or on each mongos. It retries it after
// transient errors and ignores some error codes.
func (s *site) everywhere(ctx context.Context, database string, command bson.D, ignored ...int32) error {
	hosts := []string{defaultServer}
	if s.sharded() {
		hosts = s.about.Hosts
	}
	for _, host := range hosts {
		_, err := retried(ctx, func() (bson.Raw, error) { return s.run(ctx, host, database, command) })
		if err != nil && !slices.Contains(ignored, direct.CodeOf(err)) {
			return err
		}
	}
	return nil
}

// requireTestCommands rejects a deployment without enableTestCommands ("Server
// Compatibility"), unless the deployment is owned and its parameters are unknown.
func (s *site) requireTestCommands(ctx context.Context) error {
	if s.about.FailPoints != nil { // the proxy sets them
		return nil
	}
	enabled := s.about.TestCommands()
	if enabled != nil && !*enabled {
		return noTestCommands(s.about.Name)
	}
	if enabled != nil || s.deployment.Owned() {
		return nil
	}
	parameter := bson.D{{Key: "getParameter", Value: 1}, {Key: "enableTestCommands", Value: 1}}
	reply, err := s.run(ctx, defaultServer, "admin", parameter)
	if err != nil && !direct.Refused(err) {
		return err
	}
	if direct.CodeOf(err) == codes.Unauthorized {
		return fmt.Errorf("the user of the connection string is not authorized to read enableTestCommands; "+
			"suites set fail points and drop collections, which requires a role such as root: %w", err)
	}
	if enabled = (deployment.Description{Parameters: reply}).TestCommands(); enabled == nil || !*enabled {
		return noTestCommands(s.about.Name)
	}
	return nil
}
