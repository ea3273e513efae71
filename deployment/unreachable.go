package deployment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/description"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/topology"

	"github.com/unified-test-runner/utr/deployment/direct"
	"github.com/unified-test-runner/utr/internal/text/secret"
	"github.com/unified-test-runner/utr/internal/wire/codes"
)

// advice explains connection errors by a part of their text, because the driver does not keep the types of errors of
// the operating system, TLS and the server. The first match counts.
var advice = []struct{ part, what string }{
	{"connection refused", "nothing listens there: is it running, and is this its port?"},
	{"no such host", "no host has that name"},
	{"unknown authority", "the certificate is not trusted: name its authority's certificate with tlsCAFile"},
	{"certificate is not valid", "the certificate is for another name"},
	{"first record does not look like a TLS handshake", "it does not speak TLS: remove tls=true"},
	{"connection closed unexpectedly", "it closed the connection: if it requires TLS, add tls=true"},
	{"connection reset by peer", "it closed the connection: if it requires TLS, add tls=true"},
	{"EOF", "it closed the connection: does it speak TLS?"},
	{"i/o timeout", "something listens there and does not answer"},
	{"deadline exceeded", "something listens there and does not answer"},
	{"AuthenticationFailed", "user or password is wrong, or authSource is another database"},
	{"apiVersion parameter is required", "the server runs with requireApiVersion: declare a version with --server-api 1"},
}

// advise adds the explanation to an error text.
func advise(text string) string {
	for _, a := range advice {
		if strings.Contains(text, a.part) {
			return text + " (" + a.what + ")"
		}
	}
	return text
}

// reached returns u.resolved. It fails if every host refuses connections.
func (u uri) reached(ctx context.Context) (uri, error) {
	out, err := u.resolved(ctx)
	if err == nil {
		err = refused(ctx, out)
	}
	return out, u.redact(err)
}

// refusedLimit bounds the wait for the first host that accepts a connection.
const refusedLimit = time.Second

// refused returns an error if every host refuses connections, so that a run does not wait for server selection. A
// client reports all other errors.
func refused(ctx context.Context, u uri) error {
	if u.scheme != "mongodb" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refusedLimit)
	defer cancel()
	results := make(chan error, len(u.hosts))
	for _, host := range u.hosts {
		go func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", withPort(host))
			if err == nil {
				_ = conn.Close()
				results <- nil
				return
			}
			results <- fmt.Errorf("\n  %s: %w", host, err)
		}()
	}
	why := "no server can be used"
	for range u.hosts {
		err := <-results
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		why += advise(err.Error())
	}
	return errors.New(why)
}

// redact removes credentials from an error.
func (u uri) redact(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(secret.NewKeeper(u.String()).Redact(err.Error()))
}

// plain explains why connecting to a deployment failed, without credentials. It does not reword other errors.
func (u uri) plain(ctx context.Context, err error) error {
	var selection topology.ServerSelectionError
	switch {
	case err == nil:
		return nil
	case isUnauthorized(err) && !u.authenticates():
		return u.redact(fmt.Errorf("it requires authentication, and the connection string names no user: %w", err))
	case !errors.As(err, &selection):
		return u.redact(errors.New(advise(err.Error())))
	}
	why := "no server can be used"
	if ctx.Err() != nil {
		why = context.Cause(ctx).Error()
	}
	if name := u.get("replicaSet"); len(selection.Desc.Servers) == 0 && name != "" {
		why += fmt.Sprintf(": no host is a member of a replica set named %q", name)
	}
	for _, s := range selection.Desc.Servers {
		state := "it is of type " + s.Kind.String()
		switch {
		case s.LastError != nil:
			state = advise(s.LastError.Error())
		case s.Kind == description.Unknown:
			state = "it does not answer"
		}
		why += fmt.Sprintf("\n  %s: %s", s.Addr, state)
	}
	return u.redact(errors.New(why))
}

func isUnauthorized(err error) bool { return direct.CodeOf(err) == codes.Unauthorized }
