package process

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.mongodb.org/mongo-driver/v2/bson"
)

// words splits a command line.
func words(s string) []string { return strings.Fields(s) }

func TestCommandLines(t *testing.T) {
	for _, row := range []struct {
		reason, line string
		mongos       bool
		want         func(*Options) (got, want any)
	}{
		{"the default port", "", false, func(o *Options) (any, any) { return o.Port, 27017 }},
		{"that of a shard's member", "--shardsvr --replSet s", false, func(o *Options) (any, any) { return o.Port, 27018 }},
		{"that of a config server", "--configsvr --replSet c", false, func(o *Options) (any, any) { return o.Port, 27019 }},
		{"a value in the next word", "--port 1025", false, func(o *Options) (any, any) { return o.Port, 1025 }},
		{"a value in the same word", "--port=1025", false, func(o *Options) (any, any) { return o.Port, 1025 }},
		{"only this machine by default", "", false, func(o *Options) (any, any) { return o.Bind, []string{"localhost"} }},
		{"several addresses", "--bind_ip 127.0.0.1,::1", false, func(o *Options) (any, any) { return o.Bind, []string{"127.0.0.1", "::1"} }},
		{"an address, twice", "--bind_ip 127.0.0.1 --bind_ip ::1", false, func(o *Options) (any, any) { return o.Bind, []string{"127.0.0.1", "::1"} }},
		{"a star", "--bind_ip *", false, func(o *Options) (any, any) { return o.Bind, []string{"0.0.0.0"} }},
		{"all addresses", "--bind_ip_all --ipv6", false, func(o *Options) (any, any) { return o.Bind, []string{"0.0.0.0", "::"} }},
		{"one v", "-v", false, func(o *Options) (any, any) { return o.Verbosity, 1 }},
		{"more v's", "-vvv", false, func(o *Options) (any, any) { return o.Verbosity, 3 }},
		{"a long v", "--verbose", false, func(o *Options) (any, any) { return o.Verbosity, 1 }},
		{"a long v with a value", "--verbose=vv", false, func(o *Options) (any, any) { return o.Verbosity, 2 }},
		{"an option after a bare verbose", "--verbose --port 3", false, func(o *Options) (any, any) { return o.Port, 3 }},
		{"the seeds behind the name are of old", "--replSet rs/a:1,b:2", false, func(o *Options) (any, any) { return o.ReplSet, "rs" }},
		{"auth", "--auth", false, func(o *Options) (any, any) { return o.AccessControl, true }},
		{"a key file means auth", "--keyFile k", false, func(o *Options) (any, any) { return o.AccessControl, true }},
		{"a mongos has no --auth, but key files", "--keyFile k --configdb c/h:1", true, func(o *Options) (any, any) { return o.AccessControl, true }},
		{"config servers", "--configdb c/h:1,h:2", true, func(o *Options) (any, any) { return o.ConfigDB, "c/h:1,h:2" }},
		{"TLS", "--tlsMode requireTLS --tlsCertificateKeyFile c.pem --tlsCAFile ca.pem --tlsAllowInvalidCertificates", false,
			func(o *Options) (any, any) {
				return o.TLS, TLSOptions{Mode: "require", CertificateFile: "c.pem", CAFile: "ca.pem", Invalid: true}
			}},
		{"TLS as it was called", "--sslMode preferSSL --sslPEMKeyFile c.pem --sslCAFile ca.pem --sslWeakCertificateValidation", false,
			func(o *Options) (any, any) {
				return o.TLS, TLSOptions{Mode: "prefer", CertificateFile: "c.pem", CAFile: "ca.pem", Weak: true}
			}},
		{"TLS without a mode", "--sslOnNormalPorts --sslPEMKeyFile c.pem", false, func(o *Options) (any, any) { return o.TLS.Mode, "require" }},
		{"TLS off, with its files", "--tlsMode disabled --tlsCertificateKeyFile c.pem", false, func(o *Options) (any, any) { return o.TLS.Mode, "" }},
		{"parameters with types", `--setParameter enableTestCommands=1 --setParameter authenticationMechanisms=SCRAM-SHA-1 --setParameter quiet=true`, false,
			func(o *Options) (any, any) {
				return o.Parameters, bson.D{{Key: "enableTestCommands", Value: int32(1)}, {Key: "authenticationMechanisms", Value: "SCRAM-SHA-1"}, {Key: "quiet", Value: true}}
			}},
		{"a parameter twice: the last counts", "--setParameter quiet=true --setParameter quiet=false", false,
			func(o *Options) (any, any) { return o.Parameters, bson.D{{Key: "quiet", Value: false}} }},
		{"a parameter that does nothing here", "--setParameter periodicNoopIntervalSecs=1", false,
			func(o *Options) (any, any) {
				return o.Inert, bson.D{{Key: "periodicNoopIntervalSecs", Value: int32(1)}}
			}},
		{"a feature flag", "--setParameter featureFlagAnything=true", false, func(o *Options) (any, any) { return len(o.Inert), 1 }},
		{"a port for load balancers", "--configdb c/h:1 --setParameter loadBalancerPort=27050", true, func(o *Options) (any, any) { return o.BalancedPort, 27050 }},
		{"the version", "--utrServerVersion 4.4", false, func(o *Options) (any, any) { return o.Profile.Text(), "4.4.29" }},
		{"options that do nothing", "--storageEngine wiredTiger --oplogSize 500 --enableMajorityReadConcern true --nojournal --networkMessageCompressors zstd,snappy --wiredTigerCacheSizeGB 0.5 --nounixsocket", false,
			func(o *Options) (any, any) { return o.Port, 27017 }},
		{"what getCmdLineOpts tells", "--port 5 --auth --nojournal -vv --replSet r --setParameter quiet=1 --tlsMode disabled --tlsCertificateKeyFilePassword secret", false,
			func(o *Options) (any, any) {
				d := func(pairs ...any) bson.D {
					out := bson.D{}
					for i := 0; i < len(pairs); i += 2 {
						out = append(out, bson.E{Key: pairs[i].(string), Value: pairs[i+1]})
					}
					return out
				}
				return o.Parsed, d("systemLog", d("verbosity", int32(2)), "net", d("port", int32(5), "tls", d("mode", "disabled", "certificateKeyFilePassword", "<password>")),
					"setParameter", d("quiet", "1"), "security", d("authorization", "enabled"), "replication", d("replSetName", "r"),
					"storage", d("journal", d("enabled", false)))
			}},
	} {
		o, err := Parse(row.mongos, words(row.line), "")
		if err != nil {
			t.Errorf("%s: %s: %v", row.reason, row.line, err)
			continue
		}
		if got, want := row.want(o); !cmp.Equal(got, want) {
			t.Errorf("%s: %s: %s", row.reason, row.line, cmp.Diff(want, got))
		}
	}
}

func TestCommandLinesThatAreRefused(t *testing.T) {
	for _, row := range []struct {
		reason, line string
		mongos       bool
		want         string
	}{
		{"an option that there is not", "--foo", false, "Error parsing command line: unrecognised option '--foo'\ntry 'mongod --help' for more information"},
		{"one of mongos alone", "--configdb c/h:1", false, "unrecognised option '--configdb'"},
		{"one of mongod alone", "--dbpath x --configdb c/h:1", true, "unrecognised option '--dbpath'\ntry 'mongos --help'"},
		{"a short one", "-z", false, "unrecognised option '-z'"},
		{"a value is missing", "--port", false, "the required argument for option '--port' is missing"},
		{"no number", "--port x", false, "the argument ('x') for option '--port' is invalid"},
		{"no port", "--port 70000", false, "bad --port number"},
		{"twice", "--port 1 --port 2", false, "option '--port' cannot be specified more than once"},
		{"a word too much", "--auth yes", false, "too many positional options have been specified on the command line"},
		{"no assignment", "--setParameter x", false, `Illegal option assignment: "x"`},
		{"a parameter that there is not", "--setParameter enabelTestCommands=1", false, "Unknown --setParameter 'enabelTestCommands'"},
		{"a mode that there is not", "--tlsMode sometimes", false, "unsupported value for tlsMode sometimes"},
		{"TLS without a certificate", "--tlsMode requireTLS", false, "need tlsCertificateKeyFile"},
		{"a certificate without TLS", "--tlsCertificateKeyFile c.pem", false, "need to enable TLS"},
		{"an engine that there is not", "--storageEngine heap", false, "unknown storage engine: heap"},
		{"a mongos without config servers", "", true, "Config server not specified"},
		{"config servers of old", "--configdb a:1,b:2,c:3", true, "mirrored config server connections are not supported"},
		{"two roles", "--shardsvr --configsvr", false, "mutually exclusive"},
		{"all addresses, and some", "--bind_ip_all --bind_ip h", false, "Can't specify both bind_ip and bind_ip_all"},
		{"a child without a log", "--fork", false, "--fork has to be used with --logpath or --syslog"},
		{"a version that we do not play", "--utrServerVersion 3.6", false, `server version "3.6"`},
		{"a file that is not there", "-f /no/such/file", false, "Error opening config file '/no/such/file': No such file or directory"},
	} {
		_, err := Parse(row.mongos, words(row.line), "")
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %q gives %v, not %q", row.reason, row.line, err, row.want)
		}
	}
}

func TestConfigurationFiles(t *testing.T) {
	for _, row := range []struct {
		reason, text string
		mongos       bool
		want         string // an error, or:
		check        func(*Options) bool
	}{
		{"as mongo-orchestration writes it",
			"oplogSize=100\nlogappend=true\nverbose=v\nbind_ip=127.0.0.1,::1\nreplSet=r\ndbpath=/d\nlogpath=/d/mongod.log\nport=1025\nnetworkMessageCompressors=zstd,zlib,snappy,noop\n" +
				"setParameter = enableTestCommands=1\nsetParameter = maxTransactionLockRequestTimeoutMillis=25\nsetParameter = periodicNoopIntervalSecs=1\nsetParameter = writePeriodicNoops=1",
			false, "", func(o *Options) bool {
				return o.Port == 1025 && o.ReplSet == "r" && o.LogAppend && o.Verbosity == 1 && len(o.Bind) == 2 && len(o.Parameters) == 2 && len(o.Inert) == 2 && o.DBPath == "/d"
			}},
		{"a switch that is off", "auth=false\nipv6=true", false, "", func(o *Options) bool { return !o.AccessControl && o.IPv6 }},
		{"comments and sections", "# of old\n[x]\nport = 7 # so", false, "", func(o *Options) bool { return o.Port == 7 }},
		{"v's as a name", "vvv = true", false, "", func(o *Options) bool { return o.Verbosity == 3 }},
		{"an unknown name", "prot=7", false, "Error parsing INI config file: unrecognised option 'prot'", nil},
		{"no assignment", "port=7\nnonsense", false, "invalid line 'nonsense'", nil},
		{"YAML", "net:\n  port: 7\n  bindIp: localhost,::1\n  tls: {mode: disabled}\nsecurity: {authorization: enabled}\nreplication:\n  replSetName: r\nsystemLog: {destination: file, path: /l, verbosity: 2}\n" +
			"storage: {dbPath: /d, journal: {enabled: true}}\nsetParameter: {enableTestCommands: 1, ingressRequestRateLimiterApplicationExemptions: {appNames: [a]}}\nsharding: {clusterRole: configsvr}",
			false, "", func(o *Options) bool {
				return o.Port == 7 && o.AccessControl && o.ReplSet == "r" && o.LogPath == "/l" && o.Verbosity == 2 && o.DBPath == "/d" && o.ConfigServer && len(o.Parameters) == 2
			}},
		{"YAML that switches off", "security: {authorization: disabled}", false, "", func(o *Options) bool { return !o.AccessControl }},
		{"YAML that names nothing we know", "net: {prot: 7}", false, "Unrecognized option: net.prot", nil},
		{"YAML with a value that there is not", "sharding: {clusterRole: king}", false, "Invalid value for sharding.clusterRole: king", nil},
		{"YAML of a mongos", "sharding: {configDB: 'c/h:1'}", true, "", func(o *Options) bool { return o.ConfigDB == "c/h:1" }},
		{"nothing", "", false, "", func(o *Options) bool { return o.Port == 27017 }},
	} {
		name := filepath.Join(t.TempDir(), "conf")
		if err := os.WriteFile(name, []byte(row.text), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := Parse(row.mongos, []string{"--config", name}, "8.2")
		switch {
		case row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)):
			t.Errorf("%s: got %v, not %q", row.reason, err, row.want)
		case row.want == "" && err != nil:
			t.Errorf("%s: %v", row.reason, err)
		case row.want == "" && !row.check(o):
			t.Errorf("%s: got %+v", row.reason, o)
		}
		if row.want == "" {
			o, err := Parse(row.mongos, []string{"-f", name, "--port", "99", "--configdb", "c/h:9"}[:4], "8.2")
			if err != nil || o.Port != 99 {
				t.Errorf("%s: the command line does not go before the file: %v", row.reason, err)
			}
		}
	}
}

// The table of options is consistent: no name or short form twice, and every
// option that code asks for is there.
func TestOptionTable(t *testing.T) {
	seen := map[string]bool{}
	for _, o := range optionTable {
		for _, name := range []string{o.name, "-" + o.short} {
			if name != "-" && seen[name] {
				t.Errorf("%s is there twice", name)
			}
			seen[name] = true
		}
	}
	source, err := os.ReadFile("options.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range []string{"given.on(", "given.text(", "given.number("} {
		for _, part := range strings.Split(string(source), call)[1:] {
			list, _, _ := strings.Cut(part, ")")
			for _, word := range strings.Split(list, ",") {
				name := strings.Trim(strings.TrimSpace(word), `"`)
				if strings.HasPrefix(strings.TrimSpace(word), `"`) && !seen[name] {
					t.Errorf("%s is asked for, and no option", name)
				}
			}
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	for _, row := range []struct {
		mongos bool
		want   string
	}{{false, "db version v7.0.22\n"}, {true, "mongos version v7.0.22\n"}} {
		o, err := Parse(row.mongos, []string{"--version"}, "7.0")
		if err != nil || !strings.HasPrefix(o.VersionText(), row.want) {
			t.Errorf("got %v, not %q", err, row.want)
		}
		if !strings.Contains(o.HelpText(), "--keyFile arg") || strings.Contains(o.HelpText(), "--dbpath") == row.mongos {
			t.Errorf("help: %s", o.HelpText())
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"--port 5 -vv", "--setParameter a=b", "net: {port: 1}", "port=7\nvvv=true", "-f", "--bind_ip=*", "setParameter: [1]", "a: &a [*a]", "-", "--", "-=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range []program{{"mongod", onMongod}, {"mongos", onMongos}} {
			if given, err := p.commandLine(words(s)); err == nil {
				_ = p.parsed(given)
			}
			name := filepath.Join(t.TempDir(), "conf")
			if err := os.WriteFile(name, []byte(s), 0o600); err != nil {
				t.Fatal(err)
			}
			given, err := p.file(name)
			var usage *UsageError
			if err != nil && !errors.As(err, &usage) {
				t.Errorf("%T: %v", err, err)
			}
			if err == nil {
				_ = p.parsed(given)
			}
		}
	})
}
