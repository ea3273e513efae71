package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/deployment"
	"github.com/unified-test-runner/utr/embedded"
	"github.com/unified-test-runner/utr/internal/text/plural"
	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/program/internal/report/reportfile"
)

// Server is an embedded deployment for other programs.
type Server interface {
	// URI is the connection string. It may contain a password.
	URI() string
	// SingleURI is the connection string of a single mongos or the load balancer in front of one, or else URI.
	SingleURI() string
	// CA is the certificate that clients must trust, in PEM; nil without TLS.
	CA() []byte
	Close() error
}

const maxPort = 65535

type serveFlags struct {
	deployment           deploymentFlags
	options              embedded.Options
	user                 string
	port                 int
	certificate, uriFile string
}

func serveCommand(c *invocation) *cobra.Command {
	return c.command(&cobra.Command{
		Use:   "serve",
		Short: "Start an embedded deployment for other programs",
		Long: `Starts a deployment inside this process, prints its connection string, and runs until it
is interrupted. For deployments with several mongos servers, a second line, "single
URI", is the connection string of one of them.

With --user, clients must authenticate with SCRAM-SHA-256. The password is read from
$` + envPassword + ` and is not printed: --uri-file writes the whole connection string to
a file that only its owner can read.

With --tls and --ca-file, the connection strings name the certificate as tlsCAFile.`,
		Example: `# a replica set of three on ports 27017 to 27019
utr serve --topology replicaset --port 27017
# a replica set with a tag, a hidden member and a slow one
utr serve --member '{"tags": {"dc": "east"}}' --member '{"hidden": true, "priority": 0}' \
  --member '{"latencyMS": 30}'
# a server that rejects more than 20 connections per second
utr serve --topology single --server-version 8.2 \
  --set-parameter ingressConnectionEstablishmentRateLimiterEnabled=true \
  --set-parameter ingressConnectionEstablishmentRatePerSec=20 \
  --set-parameter ingressConnectionEstablishmentBurstCapacitySecs=1
# a sharded cluster that acts as server 4.2, on free ports
utr serve --topology sharded --mongoses 2 --server-version 4.2`,
	}, func(f *flags) action {
		s := &serveFlags{options: embedded.Options{Host: "127.0.0.1"}}
		f.deployment(&s.deployment, string(deployment.ReplicaSet))
		list(f, &s.options.MemberConfigs, "member", "DOCUMENT",
			"configuration of the next replica set member, as in replSetInitiate plus latencyMS", embedded.ParseMember)
		f.text(&s.options.Host, "host", "ADDRESS", "address to listen on")
		f.within(&s.port, "port", "N", 0, maxPort, "first of consecutive ports (default free ports)")
		f.text(&s.user, "user", "NAME", "require SCRAM-SHA-256 with this user and the password in $"+envPassword)
		f.toggle(&s.options.TLS, "tls", "require TLS, with a new certificate")
		f.file(&s.certificate, "ca-file", "with --tls: write the certificate that clients must trust")
		f.file(&s.uriFile, "uri-file", "write the connection string, including the password")
		list(f, (*[]bson.E)(&s.options.Parameters), "set-parameter", "NAME=VALUE",
			"server parameter, as for mongod --setParameter", serverParameter)
		return s.act
	})
}

// complete returns the options of the deployment.
func (s *serveFlags) complete(c *invocation) (embedded.Options, error) {
	o, d := s.options, &s.deployment
	o.Topology, o.Version, o.Members, o.Mongoses = embedded.Topology(d.topology), d.Version, d.Members, d.Mongoses
	ports := map[embedded.Topology]int{
		embedded.Standalone: 1, embedded.ReplicaSet: d.Members,
		embedded.Sharded: d.Mongoses, embedded.LoadBalanced: d.Mongoses + 2, // with two load balancers
	}[o.Topology]
	if s.user != "" {
		password := c.env(envPassword)
		if password == "" {
			return o, usage("--user requires a password in $%s", envPassword)
		}
		o.Users = []embedded.User{{Name: s.user, Password: password}}
	}
	if s.port > 0 {
		if s.port+ports-1 > maxPort {
			return o, usage("--port %d: %s required, but the highest port is %d", s.port, plural.Of(ports, "port"), maxPort)
		}
		for i := range ports {
			o.Ports = append(o.Ports, s.port+i)
		}
	}
	return o, nil
}

func (s *serveFlags) act(ctx context.Context, c *invocation) (err error) {
	o, err := s.complete(c)
	if err != nil {
		return err
	}
	start := time.Now()
	server, err := c.program.Serve(ctx, o)
	if errors.Is(err, embedded.ErrParameter) {
		return usage("%w", err)
	}
	if err != nil {
		return err
	}
	defer func() {
		if closing := server.Close(); err == nil && closing != nil {
			err = fmt.Errorf("stopping the deployment: %w", closing)
		}
	}()
	text, err := s.write(server)
	if err != nil {
		return err
	}
	if err := c.print(text); err != nil {
		return err
	}
	if o.TLS && s.certificate == "" {
		_, _ = io.WriteString(c.errors, "clients must trust the certificate: --ca-file FILE writes it\n")
	}
	_, _ = fmt.Fprintf(c.errors, "ready after %s; interrupt to stop\n", time.Since(start).Round(time.Millisecond))
	<-ctx.Done()
	return nil
}

// write writes the files for clients, and returns the connection strings without secrets. They name the certificate.
func (s *serveFlags) write(server Server) (text string, err error) {
	caFile := s.certificate
	if caFile != "" {
		if caFile, err = filepath.Abs(caFile); err != nil {
			return "", fmt.Errorf("cannot resolve the path of the certificate: %w", err)
		}
	}
	uri, single := trusting(server.URI(), caFile), trusting(server.SingleURI(), caFile)
	for _, file := range []struct {
		name string
		text []byte
	}{{caFile, server.CA()}, {s.uriFile, []byte(uri + "\n")}} {
		if file.name == "" {
			continue
		}
		if err := writeForClients(file.name, file.text); err != nil {
			return "", fmt.Errorf("cannot write a file for clients: %w", err)
		}
	}
	secrets := secret.NewKeeper(uri, single)
	text = secrets.Redact(uri) + "\n"
	if single != uri {
		text += "single " + secrets.Redact(single) + "\n"
	}
	return text, nil
}

// writeForClients writes a file that only its owner can read. Programs wait for it, so it appears with its text.
func writeForClients(name string, text []byte) error {
	if about, err := os.Stat(name); err == nil && !about.Mode().IsRegular() { // a pipe
		return os.WriteFile(name, text, 0o600)
	}
	whole := name + reportfile.Partial
	_ = os.Remove(whole) // it may have other permissions
	err := os.WriteFile(whole, text, 0o600)
	if err == nil {
		err = os.Rename(whole, name)
	}
	return err
}

func trusting(uri, caFile string) string {
	if caFile == "" {
		return uri
	}
	separator := "?"
	if strings.Contains(uri, "?") {
		separator = "&"
	}
	// A slash needs no escaping; some drivers do not decode a plus as a space.
	return uri + separator + "tlsCAFile=" + strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(caFile))
}
