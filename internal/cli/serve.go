package cli

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ServeOptions say which deployment to start, and where.
type ServeOptions struct {
	EmbeddedOptions
	// Host is the address to listen on.
	Host string
	// Port is the first of as many consecutive ports as the deployment has
	// servers; 0 lets the system choose each.
	Port int
	// User and Password switch SCRAM-SHA-256 on.
	User, Password string
	// CertificateFile and KeyFile switch TLS on.
	CertificateFile, KeyFile string
}

// Server is a deployment that serves other programs.
type Server interface {
	// URI is the connection string. It may hold a password.
	URI() string
	// SingleURI is that of a single mongos, or of the load balancer in front
	// of one; elsewhere it equals URI.
	SingleURI() string
	// Close stops it.
	Close() error
}

// NewServer starts a deployment.
type NewServer func(context.Context, ServeOptions) (Server, error)

// envPassword holds the password of serve, so that it stands in no list of
// processes.
const envPassword = "UTR_PASSWORD"

func serveCommand() *command {
	return &command{
		name:    "serve",
		summary: "start an embedded deployment for any other program",
		details: `Starts a deployment inside this process, prints its connection string, and
serves until it is interrupted. A line "single URI" follows where one server of
several can be addressed alone. With --user the server wants SCRAM-SHA-256; the
password is read from $` + envPassword + ` and is not printed.`,
		examples: []example{
			{"utr serve --topology replicaset --port 27017", "a replica set of three on ports 27017 to 27019"},
			{"utr serve --topology sharded --mongoses 2 --server-version 4.2", "a sharded cluster that plays server 4.2, on free ports"},
		},
		declare: func(f *flags) action {
			d := f.deployment("replicaset")
			var (
				host        = f.text("host", "ADDRESS", "127.0.0.1", "address to listen on (default 127.0.0.1)")
				port        = f.number("port", "N", 0, 0, "first port; servers get consecutive ones (default free ports)")
				user        = f.text("user", "NAME", "", "want SCRAM-SHA-256 with this user and $"+envPassword)
				certificate = f.text("tls-certificate", "FILE", "", "want TLS with this certificate (PEM)")
				key         = f.text("tls-key", "FILE", "", "private key of the certificate (PEM)")
			)
			return func(ctx context.Context, c *call) error {
				if len(c.paths) > 0 {
					return usage("serve: it takes no arguments")
				}
				if err := d.check(); err != nil {
					return err
				}
				if (*certificate == "") != (*key == "") {
					return usage("serve: --tls-certificate and --tls-key belong together")
				}
				if *user != "" && c.env(envPassword) == "" {
					return usage("serve: --user needs a password in $%s", envPassword)
				}
				o := ServeOptions{
					EmbeddedOptions: d.options(), Host: *host, Port: *port,
					User: *user, Password: c.env(envPassword), CertificateFile: *certificate, KeyFile: *key,
				}
				return c.serve(ctx, o)
			}
		},
	}
}

func (c *call) serve(ctx context.Context, o ServeOptions) (err error) {
	if c.program.Serve == nil {
		return errors.New("this build has no embedded deployments")
	}
	start := time.Now()
	server, err := c.program.Serve(ctx, o)
	if err != nil {
		return err
	}
	defer func() {
		if closing := server.Close(); err == nil && closing != nil {
			err = fmt.Errorf("stopping the deployment: %w", closing)
		}
	}()
	secrets := newRedactor(server.URI(), server.SingleURI())
	text := secrets.text(server.URI()) + "\n"
	if server.SingleURI() != server.URI() {
		text += "single " + secrets.text(server.SingleURI()) + "\n"
	}
	if err := c.print(text); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(c.errors, "ready after %s; interrupt to stop\n", time.Since(start).Round(time.Millisecond))
	<-ctx.Done()
	return nil
}
