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

	"github.com/unified-test-runner/utr/internal/wire/replies"
)

// uri is a connection string, parsed just far enough to address other hosts. Credentials and options are kept as
// written, except that a question mark in credentials is escaped.
type uri struct {
	scheme   string // mongodb or mongodb+srv
	userinfo string // escaped, with the @, or ""
	hosts    []string
	database string   // escaped, without the slash
	options  []option // that apply
	given    []option // as written
	// api is the Stable API version that our own clients declare, or "". It is not an option of the string.
	api string
}

// client returns options for a client of ours.
func (u uri) client(appName string) *options.ClientOptions {
	o := replies.Own(options.Client().ApplyURI(u.String()).SetAppName(appName))
	if u.api != "" {
		o.SetServerAPIOptions(options.ServerAPI(options.ServerAPIVersion(u.api)))
	}
	return o
}

// option is one key=value of the query, still escaped.
type option struct{ key, value string }

// parseURI splits a connection string. Errors never repeat a part of the string, because it may belong to a password.
func parseURI(s string) (uri, error) {
	scheme, rest, found := strings.Cut(s, "://")
	if !found || (scheme != "mongodb" && scheme != "mongodb+srv") {
		return uri{}, errors.New("connection string must start with mongodb:// or mongodb+srv://")
	}
	u := uri{scheme: scheme}
	// The last @ before the first slash ends the credentials. They may contain a question mark (Connection String,
	// "Userinfo (optional)").
	authority, _, _ := strings.Cut(rest, "/")
	at := strings.LastIndex(authority, "@") + 1
	u.userinfo = strings.ReplaceAll(rest[:at], "?", "%3F") // not all parsers accept it
	rest, query, _ := strings.Cut(rest[at:], "?")
	authority, u.database, _ = strings.Cut(rest, "/")
	if strings.Contains(u.database, "@") || at == 0 && strings.Contains(query, "@") {
		return uri{}, errors.New("a slash in a user name or password of the connection string must be written %2F, and an at sign %40")
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(u.userinfo, "@"), ":") {
		if _, err := url.PathUnescape(part); err != nil {
			return uri{}, errors.New("a percent sign in a user name or password of the connection string must be written %25")
		}
	}
	if u.hosts = strings.Split(authority, ","); slices.Contains(u.hosts, "") {
		return uri{}, errors.New("connection string has an empty host")
	}
	for _, pair := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		key, value, found := strings.Cut(pair, "=")
		if !found {
			return uri{}, errors.New("an option of the connection string has no value")
		}
		u.options = append(u.options, option{key, value})
	}
	u.given, u.options = u.options, settled(u.options)
	return u, nil
}

// settled returns the options that apply: the last of repeated ones, so that all drivers have the same (Connection
// String, "Repeated Keys").
func settled(given []option) (apply []option) {
	for i, o := range given {
		again := slices.ContainsFunc(given[i+1:], func(later option) bool { return strings.EqualFold(later.key, o.key) })
		if !again || (URIOption{Name: o.key}).List() {
			apply = append(apply, o)
		}
	}
	return apply
}

func (u uri) String() string {
	text, before := u.scheme+"://"+u.userinfo+u.names()+"/"+u.database, "?"
	for _, o := range u.options {
		text, before = text+before+o.key+"="+o.value, "&"
	}
	return text
}

// NormalURI returns a valid connection string with each option that applies once, and with the slash before its options
// that the Go driver requires. It returns an invalid one unchanged.
func NormalURI(s string) string {
	u, err := parseURI(s)
	if err != nil {
		return s
	}
	return u.String()
}

// names returns the hosts for messages.
func (u uri) names() string { return strings.Join(u.hosts, ",") }

// HostsOf returns the hosts of a connection string with ports, or its SRV name; nil if the string is invalid.
func HostsOf(text string) (hosts []string) {
	u, _ := parseURI(text)
	for _, h := range u.hosts {
		if u.scheme == "mongodb" {
			h = withPort(h)
		}
		hosts = append(hosts, strings.ToLower(h))
	}
	return hosts
}

// withPort adds the default port to a host without one.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err != nil {
		return net.JoinHostPort(strings.Trim(host, "[]"), "27017")
	}
	return host
}

// authenticates reports whether clients authenticate. Some mechanisms get the user name from elsewhere, such as a
// certificate.
func (u uri) authenticates() bool { return u.userinfo != "" || u.get("authMechanism") != "" }

// get returns the unescaped value of an option, or "". Names are case-insensitive (URI Options, "List of specified
// options").
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

// at returns the connection string for other hosts. If they replace an SRV name, it enables TLS, because SRV implies
// it.
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

// resolved replaces an SRV name by its hosts and the options of its TXT record (Initial DNS Seedlist Discovery,
// "Default Connection String Options"). The driver's lookup does not accept a context: it continues in the background
// after ctx ends.
func (u uri) resolved(ctx context.Context) (uri, error) {
	if u.scheme != "mongodb+srv" {
		return u, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, lookTimeout, fmt.Errorf("the DNS lookup took more than %s", lookTimeout))
	defer cancel()
	var found *connstring.ConnString
	var err error
	done := make(chan struct{})
	go func() { found, err = connstring.ParseAndValidate(u.String()); close(done) }()
	select {
	case <-done:
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

// with returns a copy with an option set.
func (u uri) with(key, value string) uri {
	u = u.without(key)
	u.options = append(u.options, option{key, url.QueryEscape(value)})
	return u
}

// withAll returns a copy with options set.
func (u uri) withAll(options []URIOption) uri {
	for _, o := range options {
		u = u.without(o.Name)
	}
	for _, o := range options {
		u.options = append(u.options, option{o.Name, url.QueryEscape(o.Value)})
	}
	u.options = settled(u.options)
	return u
}

// without returns a copy without some options.
func (u uri) without(keys ...string) uri {
	u.options = slices.DeleteFunc(slices.Clone(u.options), func(o option) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return strings.EqualFold(o.key, key) })
	})
	return u
}

// direct returns the connection string of one host. Options that require several hosts would conflict with
// directConnection (URI Options, "directConnection URI option with multiple seeds or SRV URI").
func (u uri) direct(host string) uri {
	return u.at(host).without("replicaSet", "loadBalanced").with("directConnection", "true")
}
