package deployment

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"go.mongodb.org/mongo-driver/v2/x/mongo/driver/connstring"

	"github.com/unified-test-runner/utr/internal/secret"
)

// uri is a connection string taken apart just far enough to aim it at other
// hosts. Nothing else of it is interpreted: options and credentials pass
// through as they were written.
type uri struct {
	scheme   string // mongodb or mongodb+srv
	userinfo string // escaped, with the @; "" if there is none
	hosts    []string
	database string // escaped, without the slash
	options  []option
	// api is the version of the Stable API that clients of ours declare; "" none.
	// It is no part of the string: there is no option for it.
	api string
}

// client gives the options of a client of ours. One that streams hello can miss
// that it is disconnected, and then waits for the next heartbeat, 10 s: ours
// poll.
func (u uri) client(appName string) *options.ClientOptions {
	o := options.Client().ApplyURI(u.String()).SetAppName(appName).SetServerMonitoringMode(options.ServerMonitoringModePoll)
	if u.api != "" {
		o.SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion(u.api)))
	}
	return o
}

// option is one key=value of the query, still escaped.
type option struct{ key, value string }

// parseURI splits a connection string. Its errors never repeat the string,
// which may hold a password.
func parseURI(s string) (uri, error) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found || (scheme != "mongodb" && scheme != "mongodb+srv") {
		return uri{}, errors.New("connection string must start with mongodb:// or mongodb+srv://")
	}
	u := uri{scheme: scheme}
	rest, query, _ := strings.Cut(rest, "?")
	// A user name or password may hold an unescaped slash no more than a host
	// may, but a socket path in a host is escaped: the last @ ends the user.
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		u.userinfo, rest = rest[:i+1], rest[i+1:]
	}
	authority, database, _ := strings.Cut(rest, "/")
	u.database = database
	if u.hosts = strings.Split(authority, ","); slices.Contains(u.hosts, "") {
		return uri{}, errors.New("connection string has an empty host")
	}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return uri{}, fmt.Errorf("option %q of the connection string has no value", key)
		}
		u.options = append(u.options, option{key, value})
	}
	return u, nil
}

// String puts the connection string together again.
func (u uri) String() string {
	text, before := u.scheme+"://"+u.userinfo+u.names()+"/"+u.database, "?"
	for _, o := range u.options {
		text, before = text+before+o.key+"="+o.value, "&"
	}
	return text
}

// names gives the hosts for people.
func (u uri) names() string { return strings.Join(u.hosts, ",") }

// HostsOf gives the hosts that a connection string names, each with its port, or
// the name that DNS knows them by; nil if it is none.
func HostsOf(text string) (hosts []string) {
	u, err := parseURI(text)
	if err != nil {
		return nil
	}
	for _, h := range u.hosts {
		if u.scheme == "mongodb" {
			h = withPort(h)
		}
		hosts = append(hosts, strings.ToLower(h))
	}
	return hosts
}

// withPort adds the port of servers to a host that says none.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), "27017")
	}
	return host
}

// authenticates reports whether clients say who they are. Some mechanisms take the
// name from elsewhere, such as a certificate.
func (u uri) authenticates() bool { return u.userinfo != "" || u.get("authMechanism") != "" }

// get gives the unescaped value of an option, whose name matches whatever its
// case (URI Options, "Connection String Options").
func (u uri) get(key string) string {
	for _, o := range u.options {
		if strings.EqualFold(o.key, key) {
			if v, err := url.QueryUnescape(o.value); err == nil {
				return v
			}
			return o.value
		}
	}
	return ""
}

// at gives the same connection string for other hosts. An SRV name is
// replaced by hosts, so that what it implies has to be said: TLS.
func (u uri) at(hosts ...string) uri {
	u.hosts = hosts
	if u.scheme == "mongodb+srv" {
		u.scheme = "mongodb"
		if u.get("tls") == "" && u.get("ssl") == "" {
			u = u.with("tls", "true")
		}
		u = u.without("srvMaxHosts", "srvServiceName")
	}
	return u
}

// resolved gives a connection string that names hosts, where an SRV name stands
// for them: with the options that its TXT record adds (Initial DNS Seedlist
// Discovery, "Default Connection String Options"). Any other one stays as it is. The
// look-up of the driver takes no context: it goes on when nobody waits any more.
func (u uri) resolved(ctx context.Context) (uri, error) {
	if u.scheme != "mongodb+srv" {
		return u, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("its name was not looked up within %s", lookTimeout))
	defer cancel()
	var found *connstring.ConnString
	var err error
	over := make(chan struct{})
	go func() { found, err = connstring.ParseAndValidate(u.String()); close(over) }()
	select {
	case <-over:
	case <-ctx.Done():
		return u, context.Cause(ctx)
	}
	if err != nil {
		return u, err
	}
	u = u.at(found.Hosts...)
	if found.AuthSourceSet && u.authenticates() {
		u = u.with("authSource", found.AuthSource)
	}
	if found.ReplicaSet != "" {
		u = u.with("replicaSet", found.ReplicaSet)
	}
	if found.LoadBalanced {
		u = u.with("loadBalanced", "true")
	}
	return u, nil
}

// with gives a copy with an option set.
func (u uri) with(key, value string) uri {
	u = u.without(key)
	u.options = append(u.options, option{key, url.QueryEscape(value)})
	return u
}

// withAll gives a copy with options set.
func (u uri) withAll(options []URIOption) uri {
	for _, o := range options {
		u = u.with(o.Name, o.Value)
	}
	return u
}

// without gives a copy that lacks options.
func (u uri) without(keys ...string) uri {
	u.options = slices.DeleteFunc(slices.Clone(u.options), func(o option) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(o.key, key) })
	})
	return u
}

// direct gives the connection string of one host alone. Options that speak of
// more than one host would be refused beside it (URI Options,
// "directConnection").
func (u uri) direct(host string) uri {
	return u.at(host).without("replicaSet", "loadBalanced").with("directConnection", "true")
}

// URIOption is an option that is added to connection strings, such as
// compressors=zlib. Value is as it is meant, without escapes.
type URIOption struct{ Name, Value string }

// String is NAME=VALUE, to be shown: without a secret.
func (o URIOption) String() string {
	if secret.IsOption(o.Name) {
		return o.Name + "=" + secret.Mark
	}
	return o.Name + "=" + o.Value
}

// GoString shows no secret either.
func (o URIOption) GoString() string { return o.String() }

// ParseURIOption reads NAME=VALUE, and says what is wrong with the option by itself: no
// driver knows it, or it cannot have that value.
func ParseURIOption(text string) (o URIOption, err error) {
	name, value, found := strings.Cut(text, "=")
	if !found || name == "" || value == "" || strings.ContainsAny(name, "&;?/@ ") {
		return o, errors.New("it must be NAME=VALUE, such as compressors=zlib")
	}
	o = URIOption{name, value}
	alone := uri{scheme: "mongodb", hosts: []string{"localhost"}}.withAll([]URIOption{o})
	if err := CheckURI(alone.String()); err != nil {
		return o, fmt.Errorf("it makes no connection string: %w", err)
	}
	return o, nil
}
