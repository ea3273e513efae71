package deployment

import (
	"cmp"
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
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/certificate"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
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
	Lock *lock.Options
	// Secret gets each password before it is used, so that it can be kept
	// out of all outputs; nil drops them.
	Secret func(string)
	// Note gets what happens, a line at a time, from any goroutine; nil
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
	case c.Configuration.LoadBalanced:
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
	o.Serve = cmp.Or(o.Serve, time.Minute)
	self, err := ledger.Self()
	if err != nil {
		return nil, err
	}
	p := newPool(o.Note)
	p.mends = true
	p.cleanUp = cleanUps{func(context.Context) error { client.Close(); return nil }}
	s := &orchestrated{OrchestrationOptions: o, client: client, pool: p, owner: self.Owner()}
	defer func() {
		if err == nil {
			return
		}
		if left := p.Close(); left != nil {
			o.Note(left.Error())
		}
	}()
	if err := client.Check(ctx); err != nil {
		return nil, err
	}
	if err := s.certify(ctx); err != nil {
		return nil, err
	}
	return p, s.open(ctx)
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
	needs := func(c OrchestratedCluster) bool { return c.ID == "" && c.Configuration.NeedsFiles }
	if !slices.ContainsFunc(s.Clusters, needs) {
		return nil
	}
	if !s.client.Local(ctx) {
		return fmt.Errorf("clusters with TLS need certificates on the machine of the service: say where they are (there, DIR/%s/server.pem and ca.pem)", certificateFolder)
	}
	folder, err := s.Ledger.MakeFolder("", "certificates")
	if err != nil {
		return err
	}
	s.pool.cleanUp = append(s.pool.cleanUp, folder.Close)
	below := filepath.Join(folder.Path, filepath.FromSlash(certificateFolder))
	if err := os.MkdirAll(below, 0o700); err != nil {
		return err
	}
	if _, err := certificate.Write(below, "127.0.0.1"); err != nil {
		return fmt.Errorf("certificates for clusters with TLS: %w", err)
	}
	s.Clusters = slices.Clone(s.Clusters)
	for i, c := range s.Clusters {
		if needs(c) {
			s.Clusters[i].Configuration = c.Configuration.With(orchestration.Settings{Files: filepath.ToSlash(folder.Path)})
		}
	}
	return nil
}

// open makes the first of each cluster and finds out what it is.
func (s *orchestrated) open(ctx context.Context) error {
	s.Clusters = slices.DeleteFunc(slices.Clone(s.Clusters), func(c OrchestratedCluster) bool {
		return c.ID == "" && s.Topology != "" && c.topology() != s.Topology
	})
	each := max(1, s.Each)
	made := 0
	var parameters []string // that configurations set
	for _, c := range s.Clusters {
		if c.ID == "" {
			made += each
			parameters = append(parameters, c.Configuration.Parameters...)
		}
	}
	var groups [][]*poolSlot
	var first []*poolSlot
	for _, c := range s.Clusters {
		name := "cluster " + c.String()
		group := slots(each, name, func(ctx context.Context) (*cluster, error) { return s.create(ctx, c.Configuration, made == 1) })
		if c.ID != "" {
			found, err := s.client.Find(ctx, c.ID)
			if err != nil {
				return err
			}
			existing := func(ctx context.Context) (*cluster, error) { return s.existing(ctx, c, found) }
			group = []*poolSlot{{name: name, make: existing, unique: true}}
		}
		groups, first = append(groups, group), append(first, group[0])
	}
	if err := s.pool.fill(ctx, first); err != nil {
		return err
	}
	for _, g := range groups {
		about := g[0].cluster.Description()
		if s.Topology == "" || about.Topology == s.Topology { // one that was there already can be another
			s.pool.add(distinct(about, s.pool.about, parameters), g...)
		}
	}
	if len(s.pool.about) == 0 {
		return fmt.Errorf("none of the clusters is of topology %s", s.Topology)
	}
	return nil
}

// distinct gives a description a name of its own if one with the same name is
// not equal to it in one of some parameters: those that configurations set.
func distinct(about Description, others []Description, parameters []string) Description {
	name := about.Name
	differs := func(o Description) bool {
		return o.Name == about.Name && slices.ContainsFunc(parameters, func(p string) bool {
			return !about.Parameters.Lookup(p).Equal(o.Parameters.Lookup(p))
		})
	}
	for n := 2; slices.ContainsFunc(others, differs); n++ {
		about.Name = fmt.Sprintf("%s #%d", name, n)
	}
	return about
}

// existing opens a cluster that is there already, and stays.
func (s *orchestrated) existing(ctx context.Context, c OrchestratedCluster, found orchestration.Cluster) (*cluster, error) {
	direct, err := s.connectionString(found, false, "")
	if err != nil {
		return nil, err
	}
	o := ClusterOptions{URI: direct.String(), ServerAPI: s.ServerAPI, Lock: s.Lock, Ledger: s.Ledger, Note: s.Note}
	existing, err := openCluster(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c, err)
	}
	existing.right = func(ctx context.Context) error {
		if err := s.right(ctx, existing, direct); err != nil {
			return fmt.Errorf("it is not touched any more: %w", err)
		}
		return nil
	}
	return existing, nil
}

// create makes a cluster and waits until it serves. What was made is taken down
// after an error.
func (s *orchestrated) create(ctx context.Context, c orchestration.Configuration, alone bool) (_ *cluster, err error) {
	hidden := secret.NewKeeper()
	for _, word := range c.Secrets {
		s.Secret(word)
		hidden.Learn(word)
	}
	id := c.NewID(orchestration.Mark{Owner: s.owner, At: time.Now()})
	entry := ledger.Entry{Kind: ledger.Cluster, URL: s.client.URL(), Resource: string(c.Kind), ID: id, Making: true}
	forget, err := s.Ledger.Add(entry)
	if err != nil {
		return nil, err
	}
	unanswered := false // the service may be making it still
	cleanUp := cleanUps{func(ctx context.Context) error {
		if _, err := s.client.Remove(ctx, c.Kind, id); err != nil {
			return fmt.Errorf("cluster %s could not be taken down, utr clean tries again: %w", id, err)
		}
		if unanswered {
			return fmt.Errorf("the service was still making cluster %s: utr clean takes down what comes of it", id)
		}
		return forget()
	}}
	defer func() {
		if err != nil {
			// Whatever ended the wait: what was made has to go.
			err = errors.Join(hidden.Error(fmt.Errorf("cluster %s: %w", c.Name, err)), cleanUp.run(s.pool.ending))
		}
	}()
	body := c.Body(id, alone)
	balanced, err := orchestration.SetBalancerPorts(body, s.ports.Next)
	if err != nil {
		return nil, err
	}
	answer, err := s.client.Create(ctx, c.Kind, id, body)
	var failed *orchestration.Error
	unanswered = errors.As(err, &failed) && failed.Unanswered
	if err != nil {
		return nil, err
	}
	entry.Making = false
	remembered, err := s.Ledger.Add(entry)
	if err == nil {
		err = forget()
		forget = remembered
	}
	if err != nil {
		return nil, err
	}
	direct, err := s.connectionString(answer, c.TLS, c.CAFile)
	if err != nil {
		return nil, err
	}
	if err := s.await(ctx, direct); err != nil {
		return nil, err
	}
	logs, err := s.client.Servers(ctx, c.Kind, id)
	if err != nil {
		return nil, err
	}
	o := ClusterOptions{URI: direct.String(), ServerAPI: s.ServerAPI, Note: s.Note}
	if len(balanced) > 0 {
		balancers, through, err := balance(direct, balanced)
		if err != nil {
			return nil, err
		}
		cleanUp = append(cleanUp, func(context.Context) error { balancers.Close(); return nil })
		o.URI, o.SingleURI = through.at(balancers.All).String(), through.at(balancers.First).String()
	}
	opened, err := openCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	opened.owned, opened.cleanUp = true, cleanUp
	if s.client.Local(ctx) { // its files are those of this machine
		opened.log = func(from, to time.Time) []LogLine { return local.ReadLogs(logs, from, to) }
	}
	// One of which a server has stopped is left to be made anew: to start it again, the
	// service would repair its data first, which takes minutes.
	opened.right = func(ctx context.Context) error {
		for _, host := range slices.Concat(slices.Sorted(maps.Keys(logs)), opened.description.Hosts) {
			if err := refused(ctx, uri{scheme: "mongodb", hosts: []string{host}}); err != nil {
				return err
			}
		}
		return s.right(ctx, opened, direct)
	}
	return opened, nil
}

// balance puts load balancers in front of the routers of a cluster, and gives the
// connection string for their addresses.
func balance(u uri, ports []int) (b *local.Balancers, through uri, err error) {
	if len(ports) < len(u.hosts) {
		return nil, u, fmt.Errorf("its %d routers have %d ports for load balancers", len(u.hosts), len(ports))
	}
	var targets []string
	for i, host := range u.hosts {
		name, _, err := net.SplitHostPort(host)
		if err != nil {
			return nil, u, err
		}
		targets = append(targets, net.JoinHostPort(name, strconv.Itoa(ports[i])))
	}
	b, err = local.NewBalancers(targets)
	return b, u.with("loadBalanced", "true"), err
}

// await waits until a cluster serves.
func (s *orchestrated) await(ctx context.Context, u uri) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.Serve, fmt.Errorf("it does not serve after %s", s.Serve))
	defer cancel()
	err := awaitServing(ctx, u)
	if err != nil && !s.client.Local(context.WithoutCancel(ctx)) && strings.HasPrefix(u.hosts[0], "localhost:") {
		err = fmt.Errorf("%w (the service calls its servers localhost: start it with --bind, and MO_HOST set, for other machines)", err)
	}
	return u.redact(err)
}

// right sees to it that a cluster serves, at a connection string that passes load
// balancers by, and that no fail point is on.
func (s *orchestrated) right(ctx context.Context, c *cluster, direct uri) error {
	if err := s.await(ctx, direct); err != nil {
		return err
	}
	if _, unasked := clearFailPoints(ctx, c.uri, c.description, nil); len(unasked) > 0 {
		return errors.Join(unasked...)
	}
	return c.uri.look(ctx, mendLimit, func(ctx context.Context, run runs) error {
		_, err := run.ask(ctx, "ping", 1)
		return err
	})
}

// connectionString puts together what the service says and what it does not
// say: it neither escapes passwords nor reports TLS.
func (s *orchestrated) connectionString(c orchestration.Cluster, tls bool, caFile string) (uri, error) {
	u, err := parseURI(c.URI)
	if err != nil {
		return u, fmt.Errorf("mongodb_uri of cluster %s: %w", c.ID, err)
	}
	if user, password, found := credentials(c.AuthURI, u.hosts); found {
		s.Secret(password)
		u.userinfo = url.UserPassword(user, password).String() + "@"
		if password == "" {
			u.userinfo = url.User(user).String() + "@"
		}
		if i := strings.LastIndex(c.AuthURI, "?"); i >= 0 {
			for pair := range strings.SplitSeq(c.AuthURI[i+1:], "&") {
				if name, value, found := strings.Cut(pair, "="); found {
					u = u.with(name, value)
				}
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
	u = u.withAll(s.URIOptions)
	u.api = s.ServerAPI
	return u, CheckURI(u.String())
}

// credentials finds user and password in a connection string that has them as
// they are, without escapes: between the scheme and the hosts.
func credentials(uri string, hosts []string) (user, password string, found bool) {
	_, rest, _ := strings.Cut(uri, "://")
	end := strings.LastIndex(rest, "@"+strings.Join(hosts, ","))
	if end < 0 {
		return "", "", false
	}
	user, password, _ = strings.Cut(rest[:end], ":")
	return user, password, true
}
