package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/unified-test-runner/utr/internal/testkit"
)

// changes are the fields of options that differ from those of a mongod, or of a
// mongos of c/h:1, which is told nothing.
func changes(t *testing.T, o *Options) string {
	t.Helper()
	var words []string
	if o.Mongos {
		words = []string{"--configdb", "c/h:1"}
	}
	plain, err := Parse(o.Mongos, words, "")
	testkit.Check(t, err)
	var out []string
	got, usual := reflect.ValueOf(*o), reflect.ValueOf(*plain)
	for i := range got.NumField() {
		name := got.Type().Field(i).Name
		if name == "Arguments" || name == "Parsed" || name == "Profile" || reflect.DeepEqual(got.Field(i).Interface(), usual.Field(i).Interface()) {
			continue
		}
		value := got.Field(i).Interface()
		if doc, ok := value.(bson.D); ok {
			text, _ := bson.MarshalExtJSON(doc, false, false)
			value = string(text)
		}
		out = append(out, fmt.Sprintf("%s=%v", name, value))
	}
	return strings.Join(out, " ")
}

// What a command line changes, or why it is refused. A line that begins with
// mongos is for that.
func TestCommandLines(t *testing.T) {
	const orchestration = "oplogSize=100\nlogappend=true\nverbose=v\nbind_ip=127.0.0.1,::1\nreplSet=r\ndbpath=/d\nlogpath=/d/l\nport=1025\n" +
		"networkMessageCompressors=zstd,zlib,snappy,noop\nsetParameter = enableTestCommands=1\nsetParameter = writePeriodicNoops=1"
	const yaml = "net:\n  port: 7\n  bindIp: localhost,::1\n  tls: {mode: disabled}\nsecurity: {authorization: enabled}\nreplication:\n  replSetName: r\n" +
		"systemLog: {destination: file, path: /l, verbosity: 2}\nstorage: {dbPath: /d, journal: {enabled: true}}\nsharding: {clusterRole: configsvr}\n" +
		"setParameter: {enableTestCommands: 1, ingressRequestRateLimiterApplicationExemptions: {appNames: [a]}}"
	for _, r := range []struct {
		reason, line string
		file         string // of --config, if there is one
		want         string // changes, or a part of the error
	}{
		{"the default ports of a shard's member", "--shardsvr --replSet s", "", "Port=27018 ReplSet=s"},
		{"and of a config server", "--configsvr --replSet c", "", "Port=27019 ReplSet=c ConfigServer=true"},
		{"a value in the next word", "--port 1025", "", "Port=1025"},
		{"a value in the same word", "--port=1025", "", "Port=1025"},
		{"several addresses", "--bind_ip 127.0.0.1,::1", "", "Bind=[127.0.0.1 ::1]"},
		{"an address, twice", "--bind_ip 127.0.0.1 --bind_ip ::1", "", "Bind=[127.0.0.1 ::1]"},
		{"a star", "--bind_ip *", "", "Bind=[0.0.0.0]"},
		{"all addresses", "--bind_ip_all --ipv6", "", "Bind=[0.0.0.0 ::] IPv6=true"},
		{"one v", "-v", "", "Verbosity=1"},
		{"more v's", "-vvv", "", "Verbosity=3"},
		{"a long v", "--verbose", "", "Verbosity=1"},
		{"a long v with a value", "--verbose=vv", "", "Verbosity=2"},
		{"an option after a bare verbose", "--verbose --port 3", "", "Port=3 Verbosity=1"},
		{"the seeds behind the name are of old", "--replSet rs/a:1,b:2", "", "ReplSet=rs"},
		{"auth", "--auth", "", "AccessControl=true"},
		{"a key file means auth", "--keyFile k", "", "AccessControl=true"},
		{"a mongos has no --auth, but key files", "mongos --keyFile k --configdb c/h:1", "", "AccessControl=true"},
		{"config servers", "mongos --configdb c/h:1,h:2", "", "ConfigDB=c/h:1,h:2"},
		{"TLS", "--tlsMode requireTLS --tlsCertificateKeyFile c.pem --tlsCAFile ca.pem --tlsAllowInvalidCertificates", "",
			"TLS={require c.pem  ca.pem false true}"},
		{"TLS as it was called", "--sslMode preferSSL --sslPEMKeyFile c.pem --sslCAFile ca.pem --sslWeakCertificateValidation", "",
			"TLS={prefer c.pem  ca.pem true false}"},
		{"TLS without a mode", "--sslOnNormalPorts --sslPEMKeyFile c.pem", "", "TLS={require c.pem   false false}"},
		{"TLS off, with its files", "--tlsMode disabled --tlsCertificateKeyFile c.pem", "", "TLS={ c.pem   false false}"},
		{"parameters with types", "--setParameter enableTestCommands=1 --setParameter authenticationMechanisms=SCRAM-SHA-1 --setParameter quiet=true", "",
			`Parameters={"enableTestCommands":1,"authenticationMechanisms":"SCRAM-SHA-1","quiet":true}`},
		{"a parameter twice: the last counts", "--setParameter quiet=true --setParameter quiet=false", "", `Parameters={"quiet":false}`},
		{"a parameter that does nothing here", "--setParameter periodicNoopIntervalSecs=1", "", `Inert={"periodicNoopIntervalSecs":1}`},
		{"a feature flag", "--setParameter featureFlagAnything=true", "", `Inert={"featureFlagAnything":true}`},
		{"a port for load balancers", "mongos --configdb c/h:1 --setParameter loadBalancerPort=27050", "", `BalancedPort=27050 Inert={"loadBalancerPort":27050}`},
		{"options that do nothing",
			"--storageEngine wiredTiger --oplogSize 500 --enableMajorityReadConcern true --nojournal --networkMessageCompressors zstd --nounixsocket", "", ""},
		{"an unknown option", "--foo", "", "error: Error parsing command line: unrecognised option '--foo'\ntry 'mongod --help' for more information"},
		{"one of mongos alone", "--configdb c/h:1", "", "error: Error parsing command line: unrecognised option '--configdb'"},
		{"one of mongod alone", "mongos --dbpath x --configdb c/h:1", "", "error: Error parsing command line: unrecognised option '--dbpath'\ntry 'mongos --help'"},
		{"an unknown short one", "-z", "", "error: Error parsing command line: unrecognised option '-z'"},
		{"a value is missing", "--port", "", "error: Error parsing command line: the required argument for option '--port' is missing"},
		{"not a number", "--port x", "", "error: Error parsing command line: the argument ('x') for option '--port' is invalid"},
		{"a number that is not a port", "--port 70000", "", "error: BadValue: bad --port number"},
		{"twice", "--port 1 --port 2", "", "error: Error parsing command line: option '--port' cannot be specified more than once"},
		{"a word too much", "--auth yes", "", "error: Error parsing command line: too many positional options have been specified on the command line"},
		{"a parameter without a value", "--setParameter x", "", `error: Illegal option assignment: "x"`},
		{"an unknown parameter", "--setParameter enabelTestCommands=1", "", "error: BadValue: Unknown --setParameter 'enabelTestCommands'"},
		{"an unknown mode", "--tlsMode sometimes", "", "error: BadValue: unsupported value for tlsMode sometimes"},
		{"TLS without a certificate", "--tlsMode requireTLS", "", "error: BadValue: need tlsCertificateKeyFile"},
		{"a certificate without TLS", "--tlsCertificateKeyFile c.pem", "", "error: BadValue: need to enable TLS"},
		{"an unknown engine", "--storageEngine heap", "", "error: Location18656: Cannot start server with an unknown storage engine: heap"},
		{"a mongos without config servers", "mongos", "", "error: BadValue: Config server not specified."},
		{"config servers of old", "mongos --configdb a:1,b:2,c:3", "", "error: FailedToParse: mirrored config server connections are not supported"},
		{"two roles", "--shardsvr --configsvr", "", "error: BadValue: --shardsvr and --configsvr are mutually exclusive"},
		{"all addresses, and some", "--bind_ip_all --bind_ip h", "", "error: BadValue: Can't specify both bind_ip and bind_ip_all"},
		{"a child without a log", "--fork", "", "error: BadValue: --fork has to be used with --logpath or --syslog"},
		{"a version that is not played", "--utrServerVersion 3.6", "", `error: server version "3.6": there are [4.2 4.4 4.9 5.0 6.0 7.0 8.0 8.2 9.0]`},
		{"a file that does not exist", "-f /no/such/file", "", "error: Error opening config file '/no/such/file': No such file or directory"},
		{"a file as mongo-orchestration writes it", "", orchestration,
			`Port=1025 Bind=[127.0.0.1 ::1] DBPath=/d LogPath=/d/l LogAppend=true Verbosity=1 ReplSet=r Parameters={"enableTestCommands":1} Inert={"writePeriodicNoops":1}`},
		{"the command line goes before the file", "--port 99", "port=7\nauth=true", "Port=99 AccessControl=true"},
		{"a switch that is off", "", "auth=false\nipv6=true", "IPv6=true"},
		{"comments and sections", "", "# of old\n[x]\nport = 7 # so", "Port=7"},
		{"v's as a name", "", "vvv = true", "Verbosity=3"},
		{"an unknown name", "", "prot=7", "error: Error parsing INI config file: unrecognised option 'prot'"},
		{"a line without a value", "", "port=7\nnonsense", "error: Error parsing INI config file: the options configuration file contains an invalid line 'nonsense'"},
		{"YAML", "", yaml,
			`Port=7 Bind=[localhost ::1] DBPath=/d LogPath=/l Verbosity=2 ReplSet=r ConfigServer=true AccessControl=true ` +
				`Parameters={"enableTestCommands":1,"ingressRequestRateLimiterApplicationExemptions":{"appNames":["a"]}}`},
		{"YAML that switches off", "--keyFile k", "security: {authorization: disabled}", ""},
		{"YAML with an unknown name", "", "net: {prot: 7}", "error: Unrecognized option: net.prot"},
		{"YAML with an unknown value", "", "sharding: {clusterRole: king}", "error: Invalid value for sharding.clusterRole: king"},
		{"YAML of a mongos", "mongos", "sharding: {configDB: 'c/h:2'}", "ConfigDB=c/h:2"},
	} {
		words := strings.Fields(r.line)
		if r.file != "" {
			name := filepath.Join(t.TempDir(), "conf")
			testkit.Check(t, os.WriteFile(name, []byte(r.file), 0o600))
			words = append(words, "--config", name)
		}
		mongos := strings.Contains(r.line, "mongos")
		if mongos {
			words = words[1:]
		}
		o, err := Parse(mongos, words, "8.2")
		var usage *UsageError
		switch {
		case err == nil && changes(t, o) != r.want:
			t.Errorf("%s: %q %q gives\n%s, want\n%s", r.reason, r.line, r.file, changes(t, o), r.want)
		case err != nil && (!errors.As(err, &usage) || !strings.Contains("error: "+err.Error(), r.want) || !strings.HasPrefix(r.want, "error: ")):
			t.Errorf("%s: %q %q gives %v, want %s", r.reason, r.line, r.file, err, r.want)
		}
	}
}

// What getCmdLineOpts answers, as the configuration file would say it, without
// a password.
func TestParsed(t *testing.T) {
	o, err := Parse(false, strings.Fields("--port 5 --auth --nojournal -vv --replSet r --setParameter quiet=1 "+
		"--tlsMode disabled --tlsCertificateKeyFilePassword secret"), "")
	testkit.Check(t, err)
	if plain, err := Parse(false, nil, ""); err != nil || plain.Port != 27017 || fmt.Sprint(plain.Bind) != "[localhost]" {
		t.Errorf("without options: %+v, %v", plain, err)
	}
	got, err := bson.MarshalExtJSON(o.Parsed, false, false)
	const want = `{"systemLog":{"verbosity":2},"net":{"port":5,"tls":{"mode":"disabled","certificateKeyFilePassword":"<password>"}},` +
		`"setParameter":{"quiet":"1"},"security":{"authorization":"enabled"},"replication":{"replSetName":"r"},"storage":{"journal":{"enabled":false}}}`
	if err != nil || string(got) != want {
		t.Errorf("%s, want %s, %v", got, want, err)
	}
}

// No name or short form of an option is taken twice, and every option that the
// code asks for exists.
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
	testkit.Check(t, err)
	for _, call := range regexp.MustCompile(`given\.(?:on|text|number)\(([^)]*)\)`).FindAllSubmatch(source, -1) {
		for _, name := range regexp.MustCompile(`"(\w+)"`).FindAllSubmatch(call[1], -1) {
			if !seen[string(name[1])] {
				t.Errorf("the code asks for %s, which is not an option", name[1])
			}
		}
	}
}

func TestVersionAndHelp(t *testing.T) {
	for mongos, want := range map[bool]string{false: "db version v7.0.22\n", true: "mongos version v7.0.22\n"} {
		o, err := Parse(mongos, []string{"--version", "--utrServerVersion", "7.0"}, "8.2")
		if err != nil || !strings.HasPrefix(o.VersionText(), want) {
			t.Errorf("got %v, not %q", err, want)
		}
		if !strings.Contains(o.HelpText(), "--keyFile arg") || strings.Contains(o.HelpText(), "--dbpath") == mongos {
			t.Errorf("help: %s", o.HelpText())
		}
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"--port 5 -vv", "--setParameter a=b", "net: {port: 1}", "port=7\nvvv=true", "-f", "--bind_ip=*",
		"setParameter: [1]", "a: &a [*a]", "-", "--", "-=x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, p := range []program{{"mongod", onMongod}, {"mongos", onMongos}} {
			if given, err := p.commandLine(strings.Fields(s)); err == nil {
				_ = p.parsed(given)
			}
			name := filepath.Join(t.TempDir(), "conf")
			testkit.Check(t, os.WriteFile(name, []byte(s), 0o600))
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
