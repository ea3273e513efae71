package reference

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/unified-test-runner/utr/engine/enginekit"
	"github.com/unified-test-runner/utr/reference/retry"
	"github.com/unified-test-runner/utr/reference/selection"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// settings are the client options that the engine serves itself. Those of the
// connection (hosts, TLS, authentication, pool, …) stay in the connection
// string for the topology.
type settings struct {
	retryReads, retryWrites bool
	readPreference          selection.Preference
	readConcern             bson.D // nil: the server's default
	writeConcern            bson.D // nil: the server's default
	timeout                 *time.Duration
	serverSelectionTimeout  time.Duration
	waitQueueTimeout        time.Duration // 0: none
	localThreshold          time.Duration
	heartbeat               time.Duration // 0: not set
	socketTimeout           time.Duration // 0: none
	maxAdaptiveRetries      *int
	overloadRetargeting     bool
	monitoring              string // serverMonitoringMode, "" if not set
}

// defaultSettings are those of drivers that follow the policy.
func defaultSettings(p *retry.Policy) settings {
	return settings{
		retryReads: true, retryWrites: !p.RetryWritesOff,
		serverSelectionTimeout: 30 * time.Second,
		localThreshold:         selection.DefaultLocalThreshold,
	}
}

// ownOptions are the URI options that settings take, by lower-case name. A
// function gets the values in the order in which they were given.
func ownOptions() map[string]func(*settings, []string) error {
	millis := func(set func(*settings, time.Duration)) func(*settings, []string) error {
		return func(s *settings, v []string) error {
			n, err := strconv.ParseInt(v[len(v)-1], 10, 64)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is no number of milliseconds", v[len(v)-1])
			}
			set(s, time.Duration(n)*time.Millisecond)
			return nil
		}
	}
	boolean := func(set func(*settings, bool)) func(*settings, []string) error {
		return func(s *settings, v []string) error {
			last := v[len(v)-1]
			if last != "true" && last != "false" { // ParseBool takes more
				return fmt.Errorf("%q is neither true nor false", last)
			}
			set(s, last == "true")
			return nil
		}
	}
	concern := func(s *settings, key string, value any) {
		s.writeConcern = append(slices.Clip(s.writeConcern), bson.E{Key: key, Value: value})
	}
	return map[string]func(*settings, []string) error{
		"retryreads":                boolean(func(s *settings, b bool) { s.retryReads = b }),
		"retrywrites":               boolean(func(s *settings, b bool) { s.retryWrites = b }),
		"enableoverloadretargeting": boolean(func(s *settings, b bool) { s.overloadRetargeting = b }),
		"timeoutms":                 millis(func(s *settings, d time.Duration) { s.timeout = &d }),
		"serverselectiontimeoutms":  millis(func(s *settings, d time.Duration) { s.serverSelectionTimeout = d }),
		"waitqueuetimeoutms":        millis(func(s *settings, d time.Duration) { s.waitQueueTimeout = d }),
		"localthresholdms":          millis(func(s *settings, d time.Duration) { s.localThreshold = d }),
		"heartbeatfrequencyms":      millis(func(s *settings, d time.Duration) { s.heartbeat = d }),
		"sockettimeoutms":           millis(func(s *settings, d time.Duration) { s.socketTimeout = d }),
		"maxadaptiveretries": func(s *settings, v []string) error {
			n, err := strconv.Atoi(v[len(v)-1])
			if err != nil || n < 0 {
				return fmt.Errorf("%q is no number of retries", v[len(v)-1])
			}
			s.maxAdaptiveRetries = &n
			return nil
		},
		"readconcernlevel": func(s *settings, v []string) error {
			s.readConcern = bson.D{{Key: "level", Value: v[len(v)-1]}}
			return nil
		},
		"w": func(s *settings, v []string) error {
			if n, err := strconv.ParseInt(v[len(v)-1], 10, 32); err == nil {
				concern(s, "w", int32(n))
			} else {
				concern(s, "w", v[len(v)-1])
			}
			return nil
		},
		"journal": boolean(func(s *settings, b bool) { concern(s, "j", b) }),
		"wtimeoutms": millis(func(s *settings, d time.Duration) {
			concern(s, "wtimeout", d.Milliseconds())
		}),
		"readpreference": func(s *settings, v []string) error {
			s.readPreference.Mode = selection.Mode(v[len(v)-1])
			return nil
		},
		"maxstalenessseconds": func(s *settings, v []string) error {
			n, err := strconv.ParseInt(v[len(v)-1], 10, 64)
			if err != nil {
				return fmt.Errorf("%q is no number of seconds", v[len(v)-1])
			}
			s.readPreference.MaxStalenessSeconds = &n
			return nil
		},
		"readpreferencetags": func(s *settings, v []string) error {
			s.readPreference.TagSets = nil
			for _, one := range v {
				set := map[string]string{}
				for _, pair := range strings.FieldsFunc(one, func(r rune) bool { return r == ',' }) {
					name, value, ok := strings.Cut(pair, ":")
					if !ok {
						return fmt.Errorf("tag %q has no value", pair)
					}
					set[name] = value
				}
				s.readPreference.TagSets = append(s.readPreference.TagSets, set)
			}
			return nil
		},
		"servermonitoringmode": func(s *settings, v []string) error {
			switch s.monitoring = v[len(v)-1]; s.monitoring {
			case "auto", "poll", "stream":
				return nil
			}
			return fmt.Errorf("there is no mode %q", s.monitoring)
		},
		"waitqueuesize": func(*settings, []string) error {
			return unsupported("uriOptions.waitQueueSize")
		},
	}
}

// pair is one option of a connection string, unescaped.
type pair struct{ key, value string }

// resolve applies uriOptions on top of a connection string, and both on top of
// the defaults. It gives the engine's settings, and the connection string with
// what is left for the topology. Errors never repeat the string, which may hold
// a password.
func resolve(uri string, options bson.Raw, s settings) (settings, string, error) {
	base, query, _ := strings.Cut(uri, "?")
	var pairs []pair
	for _, p := range strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' }) {
		k, v, _ := strings.Cut(p, "=")
		value, err := url.QueryUnescape(v)
		if err != nil {
			return s, "", fmt.Errorf("option %s of the connection string: %w", k, err)
		}
		pairs = append(pairs, pair{k, value})
	}
	if options != nil {
		elements, err := options.Elements()
		if err != nil {
			return s, "", fmt.Errorf("uriOptions: %w", err)
		}
		for _, e := range elements {
			pairs = slices.DeleteFunc(pairs, func(p pair) bool { return enginekit.SameOption(p.key, e.Key()) })
			values, err := enginekit.OptionValues(e.Key(), e.Value())
			if err != nil {
				return s, "", fmt.Errorf("uriOptions.%s: %w", e.Key(), err)
			}
			for _, v := range values {
				pairs = append(pairs, pair{e.Key(), v})
			}
		}
	}
	own := ownOptions()
	values := map[string][]string{}
	var order, rest []string
	for _, p := range pairs {
		key := strings.ToLower(p.key)
		if own[key] == nil {
			rest = append(rest, p.key+"="+url.QueryEscape(p.value))
			continue
		}
		if values[key] == nil {
			order = append(order, key)
		}
		values[key] = append(values[key], p.value)
	}
	for _, key := range order {
		if err := own[key](&s, values[key]); err != nil {
			return s, "", fmt.Errorf("URI option %s: %w", key, err)
		}
	}
	if err := s.readPreference.Validate(); err != nil {
		return s, "", err
	}
	if direct(pairs) {
		// A direct connection has one seed and no set name (Unified Test
		// Format, "entity").
		rest = slices.DeleteFunc(rest, func(o string) bool { return strings.HasPrefix(strings.ToLower(o), "replicaset=") })
		base = firstHost(base)
	}
	if _, authority, _ := strings.Cut(base, "://"); !strings.Contains(authority, "/") {
		base += "/"
	}
	if len(rest) > 0 {
		base += "?" + strings.Join(rest, "&")
	}
	return s, base, nil
}

func direct(pairs []pair) bool {
	return slices.ContainsFunc(pairs, func(p pair) bool { return enginekit.SameOption(p.key, "directConnection") && p.value == "true" })
}

// firstHost leaves one host in a connection string without options.
func firstHost(base string) string {
	scheme, rest, _ := strings.Cut(base, "://")
	user := ""
	if i := strings.LastIndex(rest, "@"); i >= 0 {
		user, rest = rest[:i+1], rest[i+1:]
	}
	hosts, database, _ := strings.Cut(rest, "/")
	host, _, _ := strings.Cut(hosts, ",")
	return scheme + "://" + user + host + "/" + database
}
