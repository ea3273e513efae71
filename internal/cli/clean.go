package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/deployment/orchestration"
	"github.com/unified-test-runner/utr/internal/ledger"
	"github.com/unified-test-runner/utr/internal/secret"
)

func cleanCommand() *command {
	return &command{
		name:    "clean",
		summary: "take away what runs left that were killed",
		details: `A run remembers what it makes outside itself: clusters of an orchestration
service, processes, temporary folders. It takes all of that away when it ends, also
when it is interrupted; what a run leaves that was killed is taken away by utr
clean. What belongs to a run that is still there is not touched, nor what was made
on another machine or in another container, of whose processes nothing is known.

With --orchestration URL --older-than 6h, clusters that any run has made on that
service are taken down, wherever it ran, if they are older: their ids say when they
were made, and by which run. Those of a run that is seen to be there stay; runs on
other machines are not seen, so that the time must be longer than any run takes.

With --uri, fail points that suites set are turned off on every member of that
deployment, and its lock document is removed, unless another run uses it.

The ledger is in $` + ledger.EnvDir + `, else in utr in $XDG_STATE_HOME, else in utr in the
user's cache directory. It holds no passwords: --uri and --orchestration give them,
or a file that does: utr clean @FILE, with one argument a line. $` + envURI + ` gives the
password of a deployment that is in the ledger; no other one is touched for it.

Exit codes: 0 nothing is left, 2 bad usage, 3 something is left, and why.`,
		examples: []example{
			{"utr clean --dry-run", "what is left"},
			{"utr clean", "take it away"},
			{"utr clean --orchestration http://mo:8889 --older-than 6h", "what jobs left there, whose machines are gone"},
			{"utr clean --uri mongodb://localhost:27017/?replicaSet=rs0", "fail points and the lock of a deployment as well"},
		},
		declare: func(f *flags) action {
			x := &cleaner{flags: f}
			x.dryRun = f.toggle("dry-run", "say what is left, and touch nothing")
			x.uri = f.text("uri", "URI", "", "turn fail points off and remove the lock of the deployment of this connection string")
			x.service = f.text("orchestration", "URL", "", "credentials for the orchestration service at this URL, for clusters that are left there")
			x.older = f.duration("older-than", "with --orchestration: take down clusters there that any run made longer ago than this")
			x.serverAPI = f.choice("server-api", "", "declare this version of the Stable API to deployments: for servers with requireApiVersion", "1")
			x.forget = f.toggle("forget", "take what cannot be taken away off the ledger: what is on a service that is gone for good")
			return x.act
		},
	}
}

// cleaner is one invocation of clean.
type cleaner struct {
	flags          *flags
	dryRun, forget *bool
	uri, serverAPI *string
	service        *string
	older          *time.Duration

	c        *call
	known    secret.Text        // a connection string with its password
	services map[string]service // by URL
	gone     int                // things that were taken away
	left     int
}

// service is an orchestration service, or why it cannot be used.
type service struct {
	*orchestration.Client
	err error
}

func (x *cleaner) act(ctx context.Context, c *call) error {
	x.c, x.services = c, make(map[string]service)
	if len(c.paths) > 0 {
		return usage("clean: %q is one word too many", c.paths[0])
	}
	x.known = secret.New(c.env(envURI)) // says a password, and no more: nobody asked to clean that deployment
	if x.flags.given("uri") {
		if err := deployment.CheckURI(*x.uri); err != nil {
			return usage("clean: --uri: %w", err)
		}
		x.known = secret.New(*x.uri)
	}
	if x.flags.given("older-than") && !x.flags.given("orchestration") {
		return usage("clean: --older-than goes with --orchestration, which is not there")
	}
	if x.flags.given("orchestration") {
		if _, err := orchestration.New(*x.service, orchestration.Limits{}); err != nil {
			return usage("clean: --orchestration: %w", err)
		}
	}
	book, err := c.ledger()
	if err != nil {
		return err
	}
	dead, elsewhere, err := book.Leftovers()
	if err != nil {
		x.failed("an entry of the ledger cannot be read", err)
	}
	defer func() {
		for _, s := range x.services {
			if s.Client != nil {
				s.Close()
			}
		}
	}()
	for _, l := range dead {
		if err := x.entry(ctx, l); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
	if x.flags.given("older-than") {
		if err := x.sweep(ctx); err != nil {
			return err
		}
	}
	for _, l := range elsewhere {
		if err := c.print(fmt.Sprintf("on %s: %s, made %s: run utr clean there\n", l.Run.Machine, l.Entry, age(l.At))); err != nil {
			return err
		}
	}
	if x.flags.given("uri") {
		x.deployment(ctx)
	}
	if err := c.print(x.summary()); err != nil {
		return err
	}
	if x.left > 0 && !*x.dryRun {
		return exit(ExitBroken)
	}
	return nil
}

func (x *cleaner) summary() string {
	switch {
	case *x.dryRun:
		return fmt.Sprintf("%d things are left\n", x.left)
	case x.gone+x.left == 0:
		return "nothing was left\n"
	}
	return fmt.Sprintf("%d things were taken away, %d are left\n", x.gone, x.left)
}

// failed tells of something that is left.
func (x *cleaner) failed(what string, err error) {
	x.left++
	_, _ = fmt.Fprintf(x.c.errors, "utr: %s is left: %s\n", what, err)
}

// entry takes one thing away. The error is that nobody reads what is said.
func (x *cleaner) entry(ctx context.Context, l ledger.Leftover) error {
	what := fmt.Sprintf("%s, made %s by process %d", l.Entry, age(l.At), l.Run.PID)
	if *x.dryRun {
		x.left++
		return x.c.print(what + "\n")
	}
	err := x.takeAway(ctx, l)
	if err == nil {
		err = l.Forget()
	}
	if err == nil {
		x.gone++
		return x.c.print("taken away: " + what + "\n")
	}
	x.failed(what, err)
	if *x.forget && ctx.Err() == nil {
		x.left--
		if err := l.Forget(); err != nil {
			x.failed(what, err)
			return nil
		}
		return x.c.print("off the ledger: " + what + "\n")
	}
	return nil
}

// age tells how long ago something was.
func age(at time.Time) string {
	return time.Since(at).Round(time.Second).String() + " ago"
}

// killLimit bounds the wait for the end of a process that was killed.
const killLimit = 10 * time.Second

func (x *cleaner) takeAway(ctx context.Context, l ledger.Leftover) error {
	switch e := l.Entry; e.Kind {
	case ledger.Cluster:
		return x.cluster(ctx, l)
	case ledger.ChildProcess:
		ctx, cancel := context.WithTimeoutCause(ctx, killLimit, fmt.Errorf("it is there %s later", killLimit))
		defer cancel()
		return e.Process.Kill(ctx)
	case ledger.Folder:
		return removeFolder(e.Path)
	default:
		return x.ofDeployment(ctx, e)
	}
}

// removeFolder removes a folder, and not what a link in its place leads to.
func removeFolder(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("it is no folder any more")
	}
	return os.RemoveAll(path)
}

// cluster takes down a cluster of an orchestration service. Each service is
// asked once whether it is there: one that does not answer holds up nothing
// twice.
func (x *cleaner) cluster(ctx context.Context, l ledger.Leftover) error {
	e := l.Entry
	s, known := x.services[e.URL]
	if !known {
		if s.Client, s.err = orchestration.New(x.address(e.URL), orchestration.Limits{}); s.err == nil {
			s.err = s.Check(ctx)
		}
		x.services[e.URL] = s
	}
	if s.err != nil {
		return fmt.Errorf("%w; utr clean --forget takes what is on a service that is gone for good off the ledger", s.err)
	}
	kind := orchestration.Kind(e.Resource)
	if e.Making {
		return x.turnsUp(ctx, s.Client, kind, l)
	}
	_, err := s.Remove(ctx, kind, e.ID)
	return err
}

// sweep takes down what runs left on the service, as far as the ids there tell. The
// error is that nobody reads what is said.
func (x *cleaner) sweep(ctx context.Context) error {
	s, err := orchestration.New(*x.service, orchestration.Limits{})
	if err != nil {
		return err
	}
	defer s.Close()
	all, err := s.Made(ctx)
	if err != nil {
		x.failed("what runs made there", err)
	}
	for _, m := range all {
		if time.Since(m.At) < *x.older || ledger.Lives(m.Owner) {
			continue
		}
		what := fmt.Sprintf("cluster %s of %s (%s), made %s", m.ID, s.URL(), m.Kind, age(m.At))
		if *x.dryRun {
			x.left++
		} else if _, err := s.Remove(ctx, m.Kind, m.ID); err != nil {
			x.failed(what, err)
			continue
		} else {
			x.gone++
			what = "taken away: " + what
		}
		if err := x.c.print(what + "\n"); err != nil {
			return err
		}
	}
	return nil
}

// address gives the URL of a service with the credentials that --orchestration
// says: none are on the ledger.
func (x *cleaner) address(known string) string {
	if s, err := orchestration.New(*x.service, orchestration.Limits{}); err == nil && s.URL() == known {
		return *x.service
	}
	return known
}

// A service goes on making a cluster when nobody waits for it any more, and
// tells nobody. One that was asked for shortly before is waited for: taking its
// parts away meanwhile would hold the service up. It has failed if nothing of it
// changes for a while.
const (
	makingLimit = 5 * time.Minute  // after which nothing turns up
	makingQuiet = 30 * time.Second // a replica set elects for 11 s
	makingPoll  = 200 * time.Millisecond
)

// maker is the part of an orchestration service that tells of a cluster.
type maker interface {
	Get(context.Context, orchestration.Kind, string) (orchestration.Cluster, error)
	Parts(context.Context, string) ([]orchestration.Part, error)
	Remove(context.Context, orchestration.Kind, string) (bool, error)
}

func (x *cleaner) turnsUp(ctx context.Context, s maker, kind orchestration.Kind, l ledger.Leftover) error {
	x.c.note(fmt.Sprintf("waiting for the service, which may be making %s still", l.Entry))
	tick := time.NewTicker(makingPoll)
	defer tick.Stop()
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
		if whole || time.Since(l.At) > makingLimit || time.Since(last) > makingQuiet {
			_, err := s.Remove(ctx, kind, l.Entry.ID)
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// ofDeployment turns off a fail point, or removes the lock, of a deployment
// that was not ours. What needs a password is not on the ledger.
func (x *cleaner) ofDeployment(ctx context.Context, e ledger.Entry) error {
	uri := e.URI
	switch {
	case x.known.Reveal() != "" && secret.Hide(x.known.Reveal()) == e.URI:
		uri = x.known.Reveal()
	case strings.Contains(e.URI, secret.Mark):
		return fmt.Errorf("its password is needed: utr clean --uri '%s', with the password in it", e.URI)
	}
	if e.Kind == ledger.FailPoint {
		return x.free(ctx, uri, e.Name)
	}
	return x.free(ctx, uri)
}

// deployment cleans the deployment of --uri.
func (x *cleaner) deployment(ctx context.Context) {
	hosts := x.known.String()
	if *x.dryRun {
		return
	}
	if err := x.free(ctx, x.known.Reveal()); err != nil {
		x.failed("something in the deployment at "+hosts, err)
	}
}

// free removes the lock of a run that is no more, and turns fail points off.
// It touches nothing while another run uses the deployment.
func (x *cleaner) free(ctx context.Context, uri string, failPoints ...string) error {
	target := deployment.Target{URI: uri, ServerAPI: *x.serverAPI}
	off, err := deployment.Unblock(ctx, target)
	if err := x.tellOff(off); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	holder, removed, err := deployment.ClearLock(ctx, target)
	switch {
	case err != nil:
		return err
	case holder != nil && !removed:
		return fmt.Errorf("it is in use by %s", holder)
	case removed:
		x.gone++
		if err := x.c.print(fmt.Sprintf("taken away: the lock of %s\n", holder)); err != nil {
			return err
		}
	}
	swept, err := deployment.ClearFailPoints(ctx, target, failPoints...)
	if err != nil {
		return err
	}
	if err := x.tellOff(swept.Off); err != nil {
		return err
	}
	return errors.Join(swept.Unasked...)
}

// tellOff tells of fail points that were turned off.
func (x *cleaner) tellOff(off []deployment.LeftFailPoint) error {
	for _, f := range off {
		x.gone++
		if err := x.c.print("turned off: " + x.c.secrets.Hide(f.String()) + "\n"); err != nil {
			return err
		}
	}
	return nil
}
