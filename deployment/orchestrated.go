package deployment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment/local"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// OrchestrationOptions says which clusters of an orchestration service to use.
type OrchestrationOptions struct {
	// URL of the service, such as http://localhost:8889/v1.
	URL string
	// Clusters to use, in order of preference; at least one. Those that have
	// the same topology, version and access control share the tests.
	Clusters []OrchestratedCluster
	// Each is how many clusters are made of each configuration; less than 1
	// means 1. The first of each is made at once, others when they are needed.
	Each int
	// Topology chooses among the clusters; "" takes all.
	Topology Topology
	// URIOptions are added to the connection strings of all clusters.
	URIOptions []URIOption
	// ServerAPI is what ClusterOptions have of the same name.
	ServerAPI string
	// Ledger remembers what is made; nil remembers nothing.
	Ledger *ledger.Ledger
	// Lock, if not nil, keeps other runs away from clusters that are there
	// already. A run has those that it makes to itself.
	Lock *LockOptions
	// Secret is told each password before it is used, so that it can be kept
	// out of all outputs; nil drops them.
	Secret func(string)
	// Note tells people what happens, a line at a time, from any goroutine; nil
	// drops it.
	Note func(string)
	// Limits bound requests to the service.
	Limits orchestration.Limits
	// Serve bounds the wait until a cluster that was made serves; 0 means one
	// minute.
	Serve time.Duration
}

// OrchestratedCluster is a cluster to be made, or one that is there already.
type OrchestratedCluster struct {
	// Configuration of clusters to be made, with its settings filled in.
	Configuration orchestration.Configuration
	// ID of a cluster that is there already, which is never taken down; ""
	// makes one.
	ID string
}

// String names the cluster as command lines do.
func (c OrchestratedCluster) String() string {
	if c.ID != "" {
		return "id:" + c.ID
	}
	return c.Configuration.Name
}

// topology is what the configuration will give.
func (c OrchestratedCluster) topology() Topology {
	switch {
	case c.Configuration.LoadBalanced():
		return LoadBalanced
	case c.Configuration.Kind == orchestration.ShardedCluster:
		return Sharded
	case c.Configuration.Kind == orchestration.ReplicaSet:
		return ReplicaSet
	default:
		return Single
	}
}

// OpenOrchestration gives a source of clusters that an orchestration service
// runs. Errors never hold credentials. Close takes down what was made; after an
// error everything is taken down already, and Note was told of what could not
// be.
func OpenOrchestration(ctx context.Context, o OrchestrationOptions) (_ Source, err error) {
	client, err := orchestration.New(o.URL, o.Limits)
	if err != nil {
		return nil, fmt.Errorf("the URL of the orchestration service: %w", err)
	}
	if o.Secret == nil {
		o.Secret = func(string) {}
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if o.Serve <= 0 {
		o.Serve = time.Minute
	}
	self, err := ledger.Self()
	if err != nil {
		return nil, err
	}
	pool := newPool(o.Note)
	pool.cleanUp = append(pool.cleanUp, func() error { client.Close(); return nil })
	s := &orchestrated{OrchestrationOptions: o, client: client, pool: pool, owner: self.Owner()}
	defer func() {
		if err == nil {
			return
		}
		if left := pool.Close(); left != nil {
			o.Note(left.Error())
		}
	}()
	if err := client.Check(ctx); err != nil {
		return nil, err
	}
	if err := s.certify(ctx); err != nil {
		return nil, err
	}
	return pool, s.open(ctx)
}

// orchestrated makes the clusters of a pool.
type orchestrated struct {
	OrchestrationOptions
	client *orchestration.Client
	pool   *pool
	ports  local.Ports // for load balancers
	owner  string      // of what is made
}

// certificateFolder is where drivers-evergreen-tools has its certificates, and
// where ours are below what orchestration.FilesToken stands for.
const certificateFolder = ".evergreen/x509gen"

// certify makes certificates for presets with TLS where nobody has said which
// there are, and the service can read ours: on this machine.
func (s *orchestrated) certify(ctx context.Context) error {
	needs := func(c OrchestratedCluster) bool { return c.ID == "" && c.Configuration.NeedsFiles() }
	if !slices.ContainsFunc(s.Clusters, needs) {
		return nil
	}
	if !s.client.Local(ctx) {
		return fmt.Errorf("clusters with TLS need certificates on the machine of the service: say where they are (there, DIR/%s/server.pem and ca.pem)", certificateFolder)
	}
	folder, forget, err := s.Ledger.MakeFolder("", "certificates")
	if err != nil {
		return err
	}
	s.pool.cleanUp = append(s.pool.cleanUp, func() error {
		if err := os.RemoveAll(folder); err != nil {
			return err
		}
		return forget()
	})
	below := filepath.Join(folder, filepath.FromSlash(certificateFolder))
	if err := os.MkdirAll(below, 0o700); err != nil {
		return err
	}
	if err := local.WriteCertificates(below); err != nil {
		return fmt.Errorf("certificates for clusters with TLS: %w", err)
	}
	s.Clusters = slices.Clone(s.Clusters)
	for i, c := range s.Clusters {
		if needs(c) {
			s.Clusters[i].Configuration = c.Configuration.With(orchestration.Settings{Files: filepath.ToSlash(folder)})
		}
	}
	return nil
}

// open makes the first of each cluster and finds out what it is.
func (s *orchestrated) open(ctx context.Context) error {
	groups, err := s.slots(ctx)
	if err != nil {
		return err
	}
	var first []*poolSlot
	for _, g := range groups {
		first = append(first, g.slots[0])
	}
	if err := s.pool.fill(ctx, first); err != nil {
		return err
	}
	var offers []Description
	var parameters []string
	for _, g := range groups {
		parameters = append(parameters, g.parameters...)
	}
	for _, g := range groups {
		about := g.slots[0].cluster.Description()
		if s.Topology != "" && about.Topology != s.Topology {
			continue // one that was there already
		}
		about = distinct(about, offers, parameters)
		offers = append(offers, about)
		s.pool.add(about, g.slots...)
	}
	if len(offers) == 0 {
		return fmt.Errorf("none of the clusters is of topology %s", s.Topology)
	}
	return nil
}

// group is the slots of one entry of the command line.
type group struct {
	slots      []*poolSlot
	parameters []string // that its configuration sets
}

func (s *orchestrated) slots(ctx context.Context) (groups []group, err error) {
	made := 0
	for _, c := range s.Clusters {
		if c.ID == "" && (s.Topology == "" || c.topology() == s.Topology) {
			made += max(1, s.Each)
		}
	}
	for _, c := range s.Clusters {
		switch {
		case c.ID != "":
			slot, err := s.existing(ctx, c)
			if err != nil {
				return nil, err
			}
			groups = append(groups, group{slots: []*poolSlot{slot}})
		case s.Topology == "" || c.topology() == s.Topology:
			g := group{parameters: c.Configuration.Parameters()}
			for n := range max(1, s.Each) {
				name := fmt.Sprintf("cluster %s number %d", c, n+1)
				g.slots = append(g.slots, &poolSlot{name: name, make: func(ctx context.Context) (pooled, error) {
					return s.create(ctx, c.Configuration, made == 1)
				}})
			}
			groups = append(groups, g)
		}
	}
	if len(groups) == 0 {
		return nil, fmt.Errorf("none of the clusters is of topology %s", s.Topology)
	}
	return groups, nil
}

// distinct gives a description a name of its own if one with the same name is
// not equal to it in one of some parameters: those that configurations set.
func distinct(about Description, others []Description, parameters []string) Description {
	differs := func(o Description) bool {
		for _, name := range parameters {
			a, errA := about.Parameters.LookupErr(name)
			b, errB := o.Parameters.LookupErr(name)
			if (errA == nil) != (errB == nil) || errA == nil && !a.Equal(b) {
				return true
			}
		}
		return false
	}
	name := about.Name
	for n := 2; ; n++ {
		taken := false
		for _, o := range others {
			taken = taken || o.Name == about.Name && differs(o)
		}
		if !taken {
			return about
		}
		about.Name = fmt.Sprintf("%s #%d", name, n)
	}
}

// existing finds a cluster that is there already. Its slot cannot be made anew
// once it was given up.
func (s *orchestrated) existing(ctx context.Context, c OrchestratedCluster) (*poolSlot, error) {
	found, err := s.client.Find(ctx, c.ID)
	if err != nil {
		return nil, err
	}
	slot := &poolSlot{name: "cluster " + c.String()}
	slot.make = func(ctx context.Context) (pooled, error) {
		slot.make = nil
		uri, err := s.connectionString(found, false, "")
		if err != nil {
			return nil, err
		}
		// A run that is killed leaves its lock and its fail points there.
		forget, err := s.Ledger.Add(ledger.Entry{Kind: ledger.Lock, URI: secret.Hide(uri), Name: LockDatabase + "." + LockCollection})
		if err != nil {
			return nil, err
		}
		source, err := OpenCluster(ctx, ClusterOptions{URI: uri, ServerAPI: s.ServerAPI, Lock: s.Lock, Note: s.Note})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cluster %s: %w", c, err), forget())
		}
		existing := source.(*clusterSource)
		return &foreignCluster{clusterSource: existing, cluster: existing.cluster, options: s, forget: forget}, nil
	}
	return slot, nil
}

// create makes a cluster and waits until it serves. What was made is taken down
// after an error.
func (s *orchestrated) create(ctx context.Context, c orchestration.Configuration, alone bool) (pooled, error) {
	hidden := secret.NewKeeper()
	for _, word := range c.Secrets() {
		s.Secret(word)
		hidden.Learn(word)
	}
	id := c.NewID(orchestration.Mark{Owner: s.owner, At: time.Now()})
	made := &ownCluster{options: s, kind: c.Kind, id: id}
	entry := ledger.Entry{Kind: ledger.Cluster, URL: s.client.URL(), Resource: string(c.Kind), ID: id, Making: true}
	var err error
	if made.forget, err = s.Ledger.Add(entry); err != nil {
		return nil, err
	}
	fail := func(err error) (pooled, error) {
		err = fmt.Errorf("cluster %s: %w", c.Name, err)
		err = hidden.Error(err)
		// Whatever ended the wait: what was made has to go.
		return nil, errors.Join(err, made.close(s.pool.ending))
	}
	body := c.Body(id, alone)
	balanced, err := orchestration.SetBalancerPorts(body, s.ports.Next)
	if err != nil {
		return fail(err)
	}
	answer, err := s.client.Create(ctx, c.Kind, id, body)
	var failed *orchestration.Error
	made.unanswered = errors.As(err, &failed) && failed.Unanswered
	if err != nil {
		return fail(err)
	}
	if err := made.remember(entry); err != nil {
		return fail(err)
	}
	uri, err := s.connectionString(answer, c.TLS(), c.CAFile())
	if err != nil {
		return fail(err)
	}
	if err := s.await(ctx, uri); err != nil {
		return fail(err)
	}
	made.direct, made.local = uri, s.client.Local(ctx)
	if made.logs, err = s.client.Servers(ctx, c.Kind, id); err != nil {
		return fail(err)
	}
	o := ClusterOptions{URI: uri, ServerAPI: s.ServerAPI, Note: s.Note}
	if len(balanced) > 0 {
		if o.URI, o.SingleURI, err = made.balance(uri, balanced); err != nil {
			return fail(err)
		}
	}
	source, err := OpenCluster(ctx, o)
	if err != nil {
		return fail(err)
	}
	made.cluster = source.(*clusterSource).cluster
	return made, nil
}

// balance puts load balancers in front of the routers of a cluster: one in
// front of all, and one in front of a single one.
func (o *ownCluster) balance(uri string, ports []int) (all, one string, err error) {
	u, err := parseURI(uri)
	if err != nil {
		return "", "", err
	}
	var targets []string
	for i, host := range u.hosts {
		name, _, err := net.SplitHostPort(host)
		if err != nil || i >= len(ports) {
			return "", "", fmt.Errorf("its %d routers have %d ports for load balancers", len(u.hosts), len(ports))
		}
		targets = append(targets, net.JoinHostPort(name, strconv.Itoa(ports[i])))
	}
	for _, t := range [][]string{targets, targets[:1]} {
		b, err := local.NewBalancer(t)
		if err != nil {
			return "", "", fmt.Errorf("a load balancer: %w", err)
		}
		o.balancers = append(o.balancers, b)
	}
	u = u.with("loadBalanced", "true")
	return u.at(o.balancers[0].Address()).String(), u.at(o.balancers[1].Address()).String(), nil
}

// await waits until a cluster serves.
func (s *orchestrated) await(ctx context.Context, uri string) error {
	u, err := parseURI(uri)
	if err != nil {
		return err
	}
	u.api = s.ServerAPI
	ctx, cancel := context.WithTimeoutCause(ctx, s.Serve, fmt.Errorf("it does not serve after %s", s.Serve))
	defer cancel()
	if err := awaitServing(ctx, u); err != nil {
		if !s.client.Local(context.WithoutCancel(ctx)) && strings.HasPrefix(u.hosts[0], "localhost:") {
			err = fmt.Errorf("%w (the service calls its servers localhost: start it with --bind, and MO_HOST set, for other machines)", err)
		}
		return redact(context.WithoutCancel(ctx), err, uri)
	}
	return nil
}

// connectionString puts together what the service says and what it does not
// say: it neither escapes passwords nor tells of TLS.
func (s *orchestrated) connectionString(c orchestration.Cluster, tls bool, caFile string) (string, error) {
	u, err := parseURI(c.URI)
	if err != nil {
		return "", fmt.Errorf("mongodb_uri of cluster %s: %w", c.ID, err)
	}
	if user, password, found := credentials(c.AuthURI, u.hosts); found {
		s.Secret(password)
		u.userinfo = url.UserPassword(user, password).String() + "@"
		if password == "" {
			u.userinfo = url.User(user).String() + "@"
		}
		_, query, _ := cutLast(c.AuthURI, "?")
		for _, pair := range strings.Split(query, "&") {
			if name, value, found := strings.Cut(pair, "="); found {
				u = u.with(name, value)
			}
		}
	}
	if tls {
		u = u.with("tls", "true")
		// A file of the service's machine: ours as well if it is there.
		if _, err := os.Stat(caFile); caFile != "" && err == nil {
			u = u.with("tlsCAFile", caFile)
		}
	}
	for _, o := range s.URIOptions {
		u = u.with(o.Name, o.Value)
	}
	text := u.String()
	return text, redact(context.Background(), CheckURI(text), text)
}

// credentials finds user and password in a connection string that has them as
// they are, without escapes: between the scheme and the hosts.
func credentials(uri string, hosts []string) (user, password string, found bool) {
	_, rest, _ := strings.Cut(uri, "://")
	userinfo, _, found := cutLast(rest, "@"+strings.Join(hosts, ","))
	if !found {
		return "", "", false
	}
	user, password, _ = strings.Cut(userinfo, ":")
	return user, password, true
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// right puts a cluster right after a test that broke it: it serves, and no
// fail point is on.
func (s *orchestrated) right(ctx context.Context, c *cluster, direct string) error {
	if err := s.await(ctx, direct); err != nil {
		return err
	}
	swept := clearFailPoints(ctx, c.uri, c.description, nil)
	if len(swept.Unasked) > 0 {
		return errors.Join(swept.Unasked...)
	}
	client, err := lookingClient(c.uri)
	if err != nil {
		return redact(ctx, err, c.raw)
	}
	defer func() { _ = client.Disconnect(context.WithoutCancel(ctx)) }()
	_, err = ask(ctx, client, bson.D{{Key: "ping", Value: 1}})
	return redact(ctx, err, c.raw)
}

// foreignCluster was there before us and stays.
type foreignCluster struct {
	*clusterSource // holds the lock
	*cluster
	options *orchestrated
	forget  func() error
}

func (f *foreignCluster) mend(ctx context.Context) error {
	err := f.options.right(ctx, f.cluster, f.cluster.raw)
	if err != nil {
		return fmt.Errorf("it is not touched any more: %w", err)
	}
	return nil
}

// close gives the lock up. One that could not be removed stays in the ledger.
func (f *foreignCluster) close(context.Context) error {
	if err := f.Close(); err != nil {
		return err
	}
	return f.forget()
}

// lent is called when a worker gets it, where no fail point is on.
func (f *foreignCluster) lent(ctx context.Context) {
	if f.lock != nil {
		f.lock.Renew(ctx)
	}
}

// ownCluster was made by us.
type ownCluster struct {
	*cluster
	options    *orchestrated
	kind       orchestration.Kind
	id         string
	direct     string // connection string that passes load balancers by
	balancers  []*local.Balancer
	local      bool // its files are on this machine
	unanswered bool // the service may be making it still
	forget     func() error

	logs map[string]string // of each server: paths by host:port
}

// Log makes it a Logger, where the service's files are those of this machine.
func (o *ownCluster) Log(from, to time.Time) (lines []LogLine) {
	if !o.local {
		return nil
	}
	for _, l := range local.ReadLogs(o.logs, from, to) {
		lines = append(lines, LogLine(l))
	}
	return lines
}

func (o *ownCluster) Owned() bool { return true }

// remember notes that the making is over.
func (o *ownCluster) remember(e ledger.Entry) error {
	e.Making = false
	forget, err := o.options.Ledger.Add(e)
	if err != nil {
		return err
	}
	before := o.forget
	o.forget = forget
	return before()
}

// mend leaves a cluster of which a server has stopped to be made anew: to start it
// again, the service would repair its data first, which takes minutes.
func (o *ownCluster) mend(ctx context.Context) error {
	for _, host := range slices.Concat(slices.Sorted(maps.Keys(o.logs)), o.description.Hosts) {
		if err := refused(ctx, uri{scheme: "mongodb", hosts: []string{host}}); err != nil {
			return err
		}
	}
	return o.options.right(ctx, o.cluster, o.direct)
}

// close takes the cluster down. It stays in the ledger if that fails.
func (o *ownCluster) close(ctx context.Context) error {
	for _, b := range o.balancers {
		b.Close()
	}
	if _, err := o.options.client.Remove(ctx, o.kind, o.id); err != nil {
		return fmt.Errorf("cluster %s could not be taken down, utr clean tries again: %w", o.id, err)
	}
	if o.unanswered {
		return fmt.Errorf("the service was still making cluster %s: utr clean takes down what comes of it", o.id)
	}
	return o.forget()
}
