package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/process/ledger"
	"github.com/unified-test-runner/utr/internal/text/secret"
)

func cleanCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "clean",
		Short: "Remove leftovers of killed runs",
		Long: `A run records in a ledger what it creates outside its process: clusters of an
orchestration service, processes, temporary folders. It removes them when it ends,
even if it is interrupted. The next run removes what a killed run left on this machine,
and on the orchestration service that it uses; utr clean removes all of it. It does not
touch what belongs to a live run, or what was created on another machine or in another
container, whose processes it cannot see.

With --orchestration URL --older-than 6h, it removes every cluster on that service that
a run on any machine created more than 6 hours ago; the id of a cluster contains the
time and the run. It keeps the clusters of live runs on this machine. It cannot see runs
on other machines, so choose a time longer than any run takes.

With --uri, it turns off the fail points that suites set on the members of that
deployment, and removes its lock document, unless another run uses it.

The ledger is in $` + ledger.EnvDir + `, or in utr in $` + ledger.EnvParent + `, or in utr in the
user's cache folder. It contains no passwords: pass them in --uri and
--orchestration, or in a file with one argument per line, as utr clean @FILE. $` + envURI + `
is used only for the password of a deployment in the ledger.

Exit codes: 0 nothing is left, 2 bad usage, 3 something is left, with the reason.`,
		Example: `# list the leftovers
utr clean --dry-run
# remove them
utr clean
# clusters of jobs whose machines are gone
utr clean --orchestration http://mo:8889 --older-than 6h
# also fail points and the lock of a deployment
utr clean --uri 'mongodb://localhost:27017/?replicaSet=rs0'`,
	}, func(f *flags) action {
		x := &cleaner{flags: f, services: map[string]service{}}
		f.toggle(&x.dryRun, "dry-run", "list leftovers without removing them")
		f.text(&x.uri, "uri", "URI", "turn off fail points and remove the lock of the deployment at this connection string")
		f.text(&x.service, "orchestration", "URL", "orchestration service, with the credentials for clusters left there")
		f.duration(&x.older, "older-than", "with --orchestration: remove clusters of any run that are older than this")
		f.serverAPI(&x.serverAPI, ", for servers with requireApiVersion")
		f.toggle(&x.forget, "forget", "delete ledger entries that cannot be removed, such as those on a service that no longer exists")
		return x.act
	})
}

type cleaner struct {
	flags                   *flags
	dryRun, forget          bool
	uri, serverAPI, service string
	older                   time.Duration

	c             *invocation
	fullURI       string // a connection string with its password
	client        *orchestration.Client
	services      map[string]service // by URL
	removed, left int                // leftovers
	printErr      error              // the first error of standard output
}

// service is an orchestration service, or the error that makes it unusable.
type service struct {
	*orchestration.Client
	err error
}

func (x *cleaner) act(ctx context.Context, c *invocation) error {
	x.c = c
	x.fullURI = c.env(envURI) // only for its password: that deployment is not cleaned
	if x.flags.Changed("uri") {
		if err := c.checkURI("--uri", x.uri); err != nil {
			return err
		}
		x.fullURI = x.uri
	}
	if x.flags.Changed("orchestration") {
		s, err := openService(x.service)
		if err != nil {
			return err
		}
		defer s.Close()
		x.client = s
	}
	book, err := c.ledger()
	if err != nil {
		return err
	}
	defer func() {
		for _, s := range x.services {
			if s.Client != nil {
				s.Close()
			}
		}
	}()
	if err := x.all(ctx, book); err != nil {
		return err
	}
	switch {
	case x.dryRun:
		x.println("left %d", x.left)
	case x.removed+x.left == 0:
		x.println("nothing was left")
	default:
		x.println("removed %d, left %d", x.removed, x.left)
	}
	if x.printErr == nil && x.left > 0 && !x.dryRun {
		return exit(ExitBroken)
	}
	return x.printErr
}

// all removes what the flags name.
func (x *cleaner) all(ctx context.Context, book *ledger.Ledger) error {
	dead, elsewhere, err := book.Leftovers()
	if err != nil {
		x.failed("read an entry of the ledger", err)
	}
	for _, l := range dead {
		x.entry(ctx, l)
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if x.flags.Changed("older-than") {
		x.sweep(ctx)
	}
	for _, l := range elsewhere {
		x.println("left on %s: %s, created %s: run utr clean there", l.Run.Machine, l.Entry, age(l.At))
	}
	if x.flags.Changed("uri") && !x.dryRun {
		if err := x.release(ctx, x.uri); err != nil {
			x.failed("clean the deployment at "+secret.RedactURL(x.fullURI), err)
		}
	}
	return nil
}

func (x *cleaner) println(format string, args ...any) {
	err := x.c.print(fmt.Sprintf(format, args...) + "\n")
	x.printErr = cmp.Or(x.printErr, err)
}

// failed reports something that is left.
func (x *cleaner) failed(what string, err error) {
	x.left++
	x.c.note(fmt.Sprintf("cannot %s: %s", what, err))
}

// clear removes something, or with --dry-run lists it, and reports whether that failed.
func (x *cleaner) clear(what string, remove func() error) (failed bool) {
	if x.dryRun {
		x.left++
		x.println("%s", what)
		return false
	}
	if err := remove(); err != nil {
		x.failed("remove "+what, err)
		return true
	}
	x.removed++
	x.println("removed: %s", what)
	return false
}

func (x *cleaner) entry(ctx context.Context, l ledger.Leftover) {
	what := fmt.Sprintf("%s, created %s by process %d", l.Entry, age(l.At), l.Run.PID)
	failed := x.clear(what, func() error { return x.attempt(ctx, l) })
	if failed && x.forget && ctx.Err() == nil && l.Forget() == nil {
		x.left--
		x.println("forgotten: %s", what)
	}
}

// leftoversLimit bounds the removal of leftovers before a run. A cluster that is still being created takes half of it.
const leftoversLimit = time.Minute

// removeLeftovers removes what ended runs left on this machine and, at the beginning of a run, on its orchestration
// services, whose credentials it has. The next run on a deployment takes over its lock.
func (c *invocation) removeLeftovers(ctx context.Context, book *ledger.Ledger, services ...string) {
	dead, _, _ := book.Leftovers() // utr clean reports the error
	ctx, cancel := context.WithTimeoutCause(ctx, leftoversLimit, fmt.Errorf("it took longer than %s", leftoversLimit))
	defer cancel()
	x := &cleaner{c: c, services: map[string]service{}}
	for _, url := range services {
		if client, err := orchestration.New(url); err == nil {
			x.services[client.URL()] = service{client, client.Check(ctx)}
			defer client.Close()
		}
	}
	left := 0
	for _, l := range dead {
		_, ours := x.services[l.Entry.URL]
		what := fmt.Sprintf("%s, created %s by process %d", l.Entry, age(l.At), l.Run.PID)
		if l.Entry.Kind == ledger.Lock || l.Entry.Kind == ledger.Cluster && !ours {
			left++
		} else if err := x.attempt(ctx, l); err != nil {
			left++
			c.note(fmt.Sprintf("cannot remove what an earlier run left, %s: %s", what, err))
		} else {
			c.note("removed what an earlier run left: " + what)
		}
	}
	if left > 0 {
		c.note(fmt.Sprintf("leftovers of earlier runs: %d; utr clean removes them", left))
	}
}

// attempt removes a leftover and its entry.
func (x *cleaner) attempt(ctx context.Context, l ledger.Leftover) error {
	if err := x.remove(ctx, l); err != nil {
		return err
	}
	return l.Forget()
}

func age(at time.Time) string {
	return time.Since(at).Round(time.Second).String() + " ago"
}

// killLimit bounds the wait for the end of a killed process.
const killLimit = 10 * time.Second

func (x *cleaner) remove(ctx context.Context, l ledger.Leftover) error {
	switch e := l.Entry; e.Kind {
	case ledger.Cluster:
		return x.cluster(ctx, l)
	case ledger.ChildProcess:
		ctx, cancel := context.WithTimeoutCause(ctx, killLimit, fmt.Errorf("it still exists after %s", killLimit))
		defer cancel()
		return e.Process.Kill(ctx)
	case ledger.Folder:
		return removeFolder(e.Path)
	default:
		return x.ofDeployment(ctx, e)
	}
}

// removeFolder removes a folder, but not the target of a link in its place.
func removeFolder(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("it is no longer a folder")
	}
	return os.RemoveAll(path)
}

// cluster removes a cluster of a service. It checks each service once, since one that does not answer takes long.
func (x *cleaner) cluster(ctx context.Context, l ledger.Leftover) error {
	e := l.Entry
	s, known := x.services[e.URL]
	if !known {
		url := e.URL
		if x.client != nil && x.client.URL() == url {
			url = x.service // the ledger has no credentials
		}
		if s.Client, s.err = orchestration.New(url); s.err == nil {
			s.err = s.Check(ctx)
		}
		x.services[e.URL] = s
	}
	if s.err != nil {
		return fmt.Errorf("%w; if the service no longer exists, utr clean --forget deletes its ledger entries", s.err)
	}
	kind := orchestration.Kind(e.Resource)
	if e.Making {
		return x.awaitAndRemove(ctx, s.Client, kind, l)
	}
	_, err := s.Remove(ctx, kind, e.ID, e.Hosts...)
	return err
}

// sweep removes what runs left on the service, according to the ids there.
func (x *cleaner) sweep(ctx context.Context) {
	all, err := x.client.Made(ctx)
	if err != nil {
		x.failed("list the clusters on the service", err)
	}
	for _, m := range all {
		if time.Since(m.At) < x.older || ledger.Lives(m.Owner) {
			continue
		}
		what := fmt.Sprintf("cluster %s of %s (%s), created %s", m.ID, x.client.URL(), m.Kind, age(m.At))
		x.clear(what, func() error {
			about, _ := x.client.Get(ctx, m.Kind, m.ID)
			_, err := x.client.Remove(ctx, m.Kind, m.ID, deployment.HostsOf(about.URI)...)
			return err
		})
	}
}

// A service continues to create a cluster after its client has gone, and does not list it meanwhile. Removing its
// parts would block the service, so utr clean waits. The creation has failed if nothing changes for a while.
const (
	creationLimit = 5 * time.Minute  // after which no cluster appears
	creationQuiet = 30 * time.Second // a replica set elects for 11 s
	creationPoll  = 200 * time.Millisecond
)

// clusterService is the part of an orchestration service that describes a cluster.
type clusterService interface {
	Get(context.Context, orchestration.Kind, string) (orchestration.Cluster, error)
	Parts(context.Context, string) ([]orchestration.Part, error)
	Remove(context.Context, orchestration.Kind, string, ...string) (bool, error)
}

func (x *cleaner) awaitAndRemove(ctx context.Context, s clusterService, kind orchestration.Kind,
	l ledger.Leftover) error {
	x.c.note(fmt.Sprintf("waiting for the service, which may still be creating %s", l.Entry))
	last, before := time.Now(), 0
	for {
		_, err := s.Get(ctx, kind, l.Entry.ID)
		if err != nil && !errors.Is(err, orchestration.ErrNotFound) {
			return err
		}
		whole := err == nil
		parts, err := s.Parts(ctx, l.Entry.ID)
		if err != nil {
			return err
		}
		if len(parts) != before {
			last, before = time.Now(), len(parts)
		}
		if whole || time.Since(l.At) > creationLimit || time.Since(last) > creationQuiet {
			_, err := s.Remove(ctx, kind, l.Entry.ID)
			return err
		}
		select {
		case <-time.After(creationPoll):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (x *cleaner) ofDeployment(ctx context.Context, e ledger.Entry) error {
	uri := e.URI
	switch {
	case x.fullURI != "" && secret.RedactURL(x.fullURI) == e.URI:
		uri = x.fullURI
	case strings.Contains(e.URI, secret.Mark):
		return fmt.Errorf("it requires a password: utr clean --uri '%s', with the password in it", e.URI)
	}
	return x.release(ctx, uri)
}

// release turns off fail points and removes the lock of a dead run, unless another run uses the deployment.
func (x *cleaner) release(ctx context.Context, uri string) error {
	return deployment.Clean(ctx, uri, x.serverAPI, func(what string) {
		x.removed++
		x.println("%s", x.c.secrets.Redact(what))
	})
}

// ledger opens the ledger of what runs create outside their process.
func (c *invocation) ledger() (*ledger.Ledger, error) {
	dir, err := ledger.Dir(c.env)
	if err != nil {
		return nil, err
	}
	return ledger.Open(dir)
}
