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

	"github.com/unified-test-runner/utr/deployment/wire"
	"github.com/unified-test-runner/utr/internal/secret"
)

// advice says what people can do about an error of a connection, by a part of
// its text: what the operating system, TLS and the server say has no type that
// reaches us. The first row that fits counts.
var advice = []struct{ part, what string }{
	{"connection refused", "nothing listens there: is it running, and is this its port?"},
	{"no such host", "there is no host of that name"},
	{"unknown authority", "the certificate is not trusted: name that of its authority by tlsCAFile"},
	{"certificate is not valid", "the certificate is for another name"},
	{"first record does not look like a TLS handshake", "it does not speak TLS: leave tls=true out"},
	{"connection closed unexpectedly", "it hung up at once: if it requires TLS, add tls=true"},
	{"connection reset by peer", "it hung up at once: if it requires TLS, add tls=true"},
	{"EOF", "it hung up at once: does it speak TLS?"},
	{"i/o timeout", "something listens there and does not answer"},
	{"deadline exceeded", "something listens there and does not answer"},
	{"AuthenticationFailed", "user or password is wrong, or authSource is another database"},
	{"apiVersion parameter is required", "the server runs with requireApiVersion: declare a version with --server-api 1"},
}

// advise adds what can be done to a text about an error.
func advise(text string) string {
	for _, a := range advice {
		if strings.Contains(text, a.part) {
			return text + " (" + a.what + ")"
		}
	}
	return text
}

// reached is resolved, for hosts of which at least one listens.
func (u uri) reached(ctx context.Context) (uri, error) {
	out, err := u.resolved(ctx)
	if err == nil {
		err = refused(ctx, out)
	}
	return out, u.redact(err)
}

// refusedLimit bounds the wait for the first host to answer a connection.
const refusedLimit = time.Second

// refused gives an error if each host refuses a connection at once: what does not
// listen is not waited for. Whatever else there is to say, a client finds out.
func refused(ctx context.Context, u uri) error {
	if u.scheme != "mongodb" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, refusedLimit)
	defer cancel()
	said := make(chan error, len(u.hosts))
	for _, host := range u.hosts {
		go func() {
			conn, err := new(net.Dialer).DialContext(ctx, "tcp", withPort(host))
			if err == nil {
				_ = conn.Close()
				said <- nil
				return
			}
			said <- fmt.Errorf("\n  %s: %w", host, err)
		}()
	}
	why := "no server can be used"
	for range u.hosts {
		err := <-said
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil
		}
		why += advise(err.Error())
	}
	return errors.New(why)
}

// redact keeps credentials out of an error.
func (u uri) redact(err error) error {
	if err == nil {
		return nil
	}
	return errors.New(secret.NewKeeper(u.String()).Hide(err.Error()))
}

// plain says in a person's words why a look at a deployment failed, without
// credentials. An error that is about something else keeps its words.
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
		said := "it is of type " + s.Kind.String()
		switch {
		case s.LastError != nil:
			said = advise(s.LastError.Error())
		case s.Kind == description.Unknown:
			said = "it does not answer"
		}
		why += fmt.Sprintf("\n  %s: %s", s.Addr, said)
	}
	return u.redact(errors.New(why))
}

// The error codes that a look at a deployment distinguishes.
const (
	codeUnauthorized    = 13
	codeCommandNotFound = 59
)

// isUnauthorized reports whether the user may not do something.
func isUnauthorized(err error) bool { return wire.CodeOf(err) == codeUnauthorized }
