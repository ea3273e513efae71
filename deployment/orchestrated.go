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

	"github.com/unified-test-runner/utr/deployment/internal/local"
	"github.com/unified-test-runner/utr/deployment/lock"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/net/certificate"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/text/secret"
)

// OrchestrationOptions describes the clusters of an orchestration service.
type OrchestrationOptions struct {
	// URL of the service, such as http://localhost:8889/v1.
	URL string
	// Clusters, in order of preference; at least one. Clusters with the same topology, version and access control share
	// the tests.
	Clusters []OrchestratedCluster
	// Each is how many clusters to create of each configuration; less than 1 means 1. The first is created immediately,
	// others on demand.
	Each int
	// Jobs is how many workers use each cluster at the same time: see ClusterOptions.
	Jobs int
	// Topology selects clusters; "" selects all.
	Topology Topology
	// URIOptions are added to the connection strings of all clusters.
	URIOptions []URIOption
	// ServerAPI and FailPointMode are as in ClusterOptions.
	ServerAPI     string
	FailPointMode FailPointMode
	// Ledger records what is created. It may be nil.
	Ledger *ledger.Ledger
	// Lock, if not nil, keeps other runs away from existing clusters. Created ones are used by this run alone.
	Lock *lock.Options
	// Secret receives each password before it is used, so that no output contains it. It may be nil.
	Secret func(string)
	// Note receives messages, a line at a time, from any goroutine. It may be nil.
	Note func(string)
	// create and serve bound creating a cluster, and the wait until it accepts commands; 0 means orchestration's default,
	// and one minute. Tests set them.
	create, serve time.Duration
}

// OrchestratedCluster is a cluster to create, or an existing one.
type OrchestratedCluster struct {
	// Configuration of clusters to create, with its settings applied.
	Configuration orchestration.Configuration
	// ID of an existing cluster; "" creates one. An existing cluster is never removed.
	ID string
}

// String names the cluster as command lines do.
func (c OrchestratedCluster) String() string {
	if c.ID != "" {
		return "id:" + c.ID
	}
	return c.Configuration.Name
}

func (c OrchestratedCluster) topology() Topology {
	if c.Configuration.LoadBalanced {
		return LoadBalanced
	}
	return map[orchestration.Kind]Topology{
		orchestration.Server: Single, orchestration.ReplicaSet: ReplicaSet,
		orchestration.ShardedCluster: Sharded}[c.Configuration.Kind]
}

// OpenOrchestration returns a source of clusters of an orchestration service. Errors never contain credentials. Close
// removes the clusters that were created. After an error OpenOrchestration has removed them, and has reported to Note
// what it could not remove.
func OpenOrchestration(ctx context.Context, o OrchestrationOptions) (_ Source, err error) {
	client, err := orchestration.New(o.URL)
	if err != nil {
		return nil, fmt.Errorf("the URL of the orchestration service: %w", err)
	}
	client.CreateLimit = cmp.Or(o.create, client.CreateLimit)
	o.Secret, o.Note, o.serve = orIgnore(o.Secret), orIgnore(o.Note), cmp.Or(o.serve, time.Minute)
	o.Clusters = slices.Clone(o.Clusters)
	self, err := ledger.Self()
	if err != nil {
		return nil, err
	}
	p := newPool(o.Note)
	p.repairs = true
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

// orchestrated creates the clusters of a pool.
type orchestrated struct {
	OrchestrationOptions
	client *orchestration.Client
	pool   *pool
	ports  local.Ports // for load balancers
	owner  string      // in the ids of created clusters
}

// certificateFolder is the folder of certificates in drivers-evergreen-tools, relative to the folder that FilesToken
// stands for. Our certificates are at the same place.
const certificateFolder = ".evergreen/x509gen"

// certify creates certificates for TLS presets that do not name any. The service must be on this machine to read them.
func (s *orchestrated) certify(ctx context.Context) error {
	var needed []*orchestration.Configuration
	for i := range s.Clusters {
		if c := &s.Clusters[i]; c.ID == "" && c.Configuration.NeedsFiles {
			needed = append(needed, &c.Configuration)
		}
	}
	if len(needed) == 0 {
		return nil
	}
	if !s.client.Local(ctx) {
		return fmt.Errorf("clusters with TLS require certificates on the machine of the service: DIR/%s/server.pem and "+
			"ca.pem (--orchestration-files DIR)", certificateFolder)
	}
	folder, err := s.Ledger.MakeFolder("certificates")
	if err != nil {
		return err
	}
	s.pool.cleanUp = append(s.pool.cleanUp, folder.Close)
	if _, err := certificate.Write(filepath.Join(folder.Path, filepath.FromSlash(certificateFolder))); err != nil {
		return fmt.Errorf("certificates for clusters with TLS: %w", err)
	}
	for _, c := range needed {
		*c = c.With(orchestration.Settings{Files: filepath.ToSlash(folder.Path)})
	}
	return nil
}

// open creates the first of each group of equal clusters and derives the offers from them.
func (s *orchestrated) open(ctx context.Context) error {
	s.Clusters = slices.DeleteFunc(s.Clusters, func(c OrchestratedCluster) bool {
		return c.ID == "" && s.Topology != "" && c.topology() != s.Topology
	})
	each := max(1, s.Each)
	created := 0
	var parameters []string // set by configurations
	var groups [][]*poolSlot
	var first []*poolSlot
	for _, c := range s.Clusters {
		name := "cluster " + c.String()
		var group []*poolSlot
		if c.ID == "" {
			created += each
			parameters = append(parameters, c.Configuration.Parameters...)
			group = slots(each, name, func(ctx context.Context) (*cluster, error) {
				return s.create(ctx, c.Configuration,
					created == 1)
			})
		} else {
			found, err := s.client.Find(ctx, c.ID)
			if err != nil {
				return err
			}
			existing := func(ctx context.Context) (*cluster, error) { return s.existing(ctx, c, found) }
			group = []*poolSlot{{name: name, make: existing, unique: true}}
		}
		groups, first = append(groups, group), append(first, group[0])
	}
	err := s.pool.fill(ctx, first)
	usable := slices.IndexFunc(first, func(s *poolSlot) bool { return s.cluster != nil })
	lost := func(s *poolSlot) bool { return s.cluster == nil && s.unique }
	if err != nil && (ctx.Err() != nil || usable < 0 || slices.ContainsFunc(first, lost)) {
		return err
	}
	for i, g := range groups {
		var about Description
		if g[0].cluster != nil {
			about = g[0].cluster.Description()
		} else { // the tests for a kind that cannot be created are broken, not skipped
			about = s.undescribed(s.Clusters[i], first[usable].cluster.Description())
			s.Note(fmt.Sprintf("%s is given up: %s", g[0].name, g[0].fault))
		}
		if s.Topology == "" || about.Topology == s.Topology { // only created clusters were selected before
			s.pool.add(distinct(about, s.pool.about, parameters), g...)
		}
	}
	if len(s.pool.about) == 0 {
		return fmt.Errorf("no cluster has topology %s", s.Topology)
	}
	return nil
}

// undescribed describes a cluster that could not be created, by its configuration and by another one of the service.
func (s *orchestrated) undescribed(c OrchestratedCluster, other Description) Description {
	about := Description{Topology: c.topology(), Version: other.Version, Parameters: other.Parameters,
		AuthMechanisms: other.AuthMechanisms,
		Lacks:          other.Lacks, Auth: c.Configuration.Auth}
	about.ReplicaSetShards = about.Topology == Sharded || about.Topology == LoadBalanced
	about.Shared = s.FailPointMode.shares(s.Jobs)
	return about.named()
}

// distinct makes the name of a description unique if another one has the same name but different values of the given
// parameters.
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

// existing opens an existing cluster. It is never removed.
func (s *orchestrated) existing(ctx context.Context, c OrchestratedCluster,
	found orchestration.Cluster) (*cluster, error) {
	direct, err := s.connectionString(found, false, "")
	if err != nil {
		return nil, err
	}
	o := ClusterOptions{URI: direct.String(), ServerAPI: s.ServerAPI, Lock: s.Lock, Ledger: s.Ledger, Note: s.Note,
		FailPointMode: s.FailPointMode, Jobs: s.Jobs}
	existing, err := openCluster(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c, err)
	}
	if err := existing.share(ctx, s.Jobs); err != nil {
		return nil, err
	}
	reroute := existing.repair
	existing.repair = func(ctx context.Context) error {
		if reroute != nil {
			if err := reroute(ctx); err != nil {
				return fmt.Errorf("it is not used again: %w", err)
			}
			direct = direct.at(existing.description.Hosts...)
		}
		if err := s.repair(ctx, existing, direct); err != nil {
			return fmt.Errorf("it is not used again: %w", err)
		}
		return nil
	}
	return existing, nil
}

// creation is a cluster that is being created.
type creation struct {
	*orchestrated
	configuration orchestration.Configuration
	id            string
	body          map[string]any // of the request
	hosts         []string       // of its servers, as far as they are known
	unanswered    bool           // the service may create the cluster later
	forget        func() error   // removes the entry in the ledger
	cleanUp       cleanUps
}

// create creates a cluster and waits until it accepts commands. On an error it removes the cluster.
func (s *orchestrated) create(ctx context.Context, c orchestration.Configuration, alone bool) (_ *cluster, err error) {
	hidden := secret.NewKeeper()
	for _, word := range c.Secrets {
		s.Secret(word)
		hidden.Learn(word)
	}
	n := &creation{orchestrated: s, configuration: c, id: c.NewID(orchestration.Mark{Owner: s.owner, At: time.Now()})}
	if n.forget, err = n.record(true); err != nil {
		return nil, err
	}
	n.cleanUp = cleanUps{n.remove}
	defer func() {
		if err != nil { // the cluster must be removed even if ctx has ended
			err = errors.Join(hidden.Error(fmt.Errorf("cluster %s: %w", c.Name, err)), n.cleanUp.run(s.pool.ending))
		}
	}()
	answer, balanced, err := n.request(ctx, alone)
	if err != nil {
		return nil, err
	}
	direct, err := s.connectionString(answer, c.TLS, c.CAFile)
	if err == nil {
		err = s.await(ctx, direct)
	}
	if err != nil {
		return nil, err
	}
	return n.connect(ctx, direct, balanced)
}

// record adds the cluster to the ledger.
func (n *creation) record(making bool) (forget func() error, err error) {
	return n.Ledger.Add(ledger.Entry{Kind: ledger.Cluster, URL: n.client.URL(), Resource: string(n.configuration.Kind),
		ID: n.id, Making: making, Hosts: n.hosts})
}

// remove removes the cluster and its entry in the ledger.
func (n *creation) remove(ctx context.Context) error {
	if _, err := n.client.Remove(ctx, n.configuration.Kind, n.id, n.hosts...); err != nil {
		return fmt.Errorf("cannot remove cluster %s; utr clean will try again: %w", n.id, err)
	}
	if n.unanswered {
		return fmt.Errorf("the service may still create cluster %s: utr clean removes it then", n.id)
	}
	return n.forget()
}

// request makes the service create the cluster. It also returns the mongoses' ports for load balancers.
func (n *creation) request(ctx context.Context, alone bool) (answer orchestration.Cluster, balanced []int, err error) {
	n.body = n.configuration.Body(n.id, alone)
	if balanced, err = orchestration.SetBalancerPorts(n.body, n.ports.Next); err != nil {
		return answer, nil, err
	}
	answer, err = n.client.Create(ctx, n.configuration.Kind, n.id, n.body)
	var failed *orchestration.Error
	n.unanswered = errors.As(err, &failed) && failed.Unanswered
	if err != nil {
		return answer, nil, err
	}
	return answer, balanced, n.created(HostsOf(answer.URI))
}

// created records that the cluster exists, with the hosts that are known.
func (n *creation) created(hosts []string) error {
	n.hosts = hosts
	created, err := n.record(false)
	if err == nil {
		err = n.forget()
		n.forget = created
	}
	return err
}

// connect connects to the cluster, through load balancers if it has ports for them.
func (n *creation) connect(ctx context.Context, direct uri, balanced []int) (*cluster, error) {
	servers, err := n.client.Servers(ctx, n.configuration.Kind, n.id)
	if err == nil {
		err = orchestration.CheckReleases(n.configuration.Kind, n.body, servers)
	}
	if err != nil {
		return nil, err
	}
	logs := make(map[string]string)
	for _, s := range servers {
		logs[s.Host] = s.Log
	}
	if err := n.created(slices.Compact(slices.Sorted(maps.Keys(logs)))); err != nil {
		return nil, err
	}
	o := ClusterOptions{URI: direct.String(), ServerAPI: n.ServerAPI, Note: n.Note, FailPointMode: n.FailPointMode,
		Jobs: n.Jobs}
	if len(balanced) > 0 {
		balancers, u, err := balance(direct, balanced)
		if err != nil {
			return nil, err
		}
		n.cleanUp = append(n.cleanUp, func(context.Context) error { balancers.Close(); return nil })
		o.URI, o.SingleURI = u.at(balancers.All).String(), u.at(balancers.First).String()
	}
	c, err := openCluster(ctx, o)
	if err != nil {
		return nil, err
	}
	c.owned, c.cleanUp = true, append(n.cleanUp, c.cleanUp...)
	if n.client.Local(ctx) { // the log files are on this machine
		c.log = func(from, to time.Time) []LogLine { return local.ReadLogs(logs, from, to) }
	}
	// A cluster with a stopped server is replaced. To restart the server, the service would repair its data for
	// minutes.
	c.repair = func(ctx context.Context) error {
		for _, host := range slices.Concat(slices.Sorted(maps.Keys(logs)), c.description.Hosts) {
			if err := refused(ctx, uri{scheme: "mongodb", hosts: []string{host}}); err != nil {
				return err
			}
		}
		return n.repair(ctx, c, direct)
	}
	return c, c.share(ctx, n.Jobs)
}

// balance starts load balancers for the mongoses of a cluster, and returns the connection string for them.
func balance(u uri, ports []int) (b *local.Balancers, balanced uri, err error) {
	if len(ports) < len(u.hosts) {
		return nil, u, fmt.Errorf("it has %s, but %s for load balancers",
			plural.Of(len(u.hosts), "router"), plural.Of(len(ports), "port"))
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

// await waits until a cluster accepts commands.
func (s *orchestrated) await(ctx context.Context, u uri) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.serve, fmt.Errorf("it is not ready after %s", s.serve))
	defer cancel()
	err := awaitServing(ctx, u)
	if err != nil && !s.client.Local(context.WithoutCancel(ctx)) && strings.HasPrefix(u.hosts[0], "localhost:") {
		err = fmt.Errorf("%w (the service reports its servers as localhost: start it with --bind and MO_HOST for other machines)", err)
	}
	return u.redact(err)
}

// repair waits until a cluster accepts commands, with a connection string that bypasses load balancers, and turns off
// all fail points, of the proxy if there is one.
func (s *orchestrated) repair(ctx context.Context, c *cluster, direct uri) error {
	if err := s.await(ctx, direct); err != nil {
		return err
	}
	var failed []error
	for _, view := range c.views() {
		_, errs := clearFailPoints(ctx, view.seen(view.uri), view.Description(), nil)
		failed = append(failed, errs...)
	}
	if c.inside {
		_, errs := clearFailPoints(ctx, c.uri, c.description, nil)
		failed = append(failed, errs...)
	}
	if len(failed) > 0 {
		return errors.Join(failed...)
	}
	return c.uri.look(ctx, repairLimit, func(ctx context.Context, run runFunc) error {
		_, err := run.ask(ctx, "ping", 1)
		return err
	})
}

// connectionString completes what the service reports: it does not escape passwords and does not mention TLS.
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
		// The file is on the service's machine. That may be this machine.
		if _, err := os.Stat(caFile); caFile != "" && err == nil {
			u = u.with("tlsCAFile", caFile)
		}
	}
	u = u.withAll(s.URIOptions)
	u.api = s.ServerAPI
	return u, CheckURI(u.String())
}

// credentials returns the unescaped user and password in a connection string: what is between the scheme and the hosts.
func credentials(uri string, hosts []string) (user, password string, found bool) {
	_, rest, _ := strings.Cut(uri, "://")
	end := strings.LastIndex(rest, "@"+strings.Join(hosts, ","))
	if end < 0 {
		return "", "", false
	}
	user, password, _ = strings.Cut(rest[:end], ":")
	return user, password, true
}
